"""A key plan: which keys move where, the routing table that results, what it costs, and how balanced it is."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from migration.errors import InvalidPlan
from migration.keys.html import key_plan_to_html
from migration.keys.kernels.columns import Rows, find_differences
from migration.keys.loads import Floats, Hashes, KeyLoads, Nodes
from migration.keys.problem import KeyProblem
from migration.keys.rendering import render_key_plan
from migration.keys.standbys import NOWHERE, KeyStandbys, NodeRows, widen_rows
from migration.model.documents import parse_json, refuse_malformed
from migration.model.plan import RELATIVE_EPSILON, NodeLoad


class KeyMove(NamedTuple):
    """A key, by its hash, that moves from one node to another, with its state size."""

    hash: int
    source: str
    target: str
    size: float


class KeyEntry(NamedTuple):
    """An entry of the routing table: the node of a key that is not at home."""

    hash: int
    node: str


@dataclass(frozen=True, eq=False)
class KeyMoves:
    """Moves as columns, in the order of the keys; `sources` and `targets` are indices into `nodes`.

    Iterating yields a `KeyMove` for every row.
    """

    nodes: tuple[str, ...]
    hashes: Hashes
    sources: Nodes
    targets: Nodes
    sizes: Floats

    def __len__(self) -> int:
        return len(self.hashes)

    def __iter__(self) -> Iterator[KeyMove]:
        rows = (self.hashes.tolist(), self.sources.tolist(), self.targets.tolist(), self.sizes.tolist())
        for key, source, target, size in zip(*rows, strict=True):
            yield KeyMove(key, self.nodes[source], self.nodes[target], size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyMoves) and [*self] == [*other]

    def __hash__(self) -> int:
        return hash((self.hashes.tobytes(), self.sources.tobytes(), self.targets.tobytes()))


@dataclass(frozen=True, eq=False)
class KeyEntries:
    """The routing table as columns, in the order of the keys; `targets` are indices into `nodes`.

    With standbys an entry also has a row of their nodes, -1 where there is none. Iterating yields a `KeyEntry` for
    every row.
    """

    nodes: tuple[str, ...]
    hashes: Hashes
    targets: Nodes
    standbys: NodeRows | None = None

    def __len__(self) -> int:
        return len(self.hashes)

    def __iter__(self) -> Iterator[KeyEntry]:
        for key, target in zip(self.hashes.tolist(), self.targets.tolist(), strict=True):
            yield KeyEntry(key, self.nodes[target])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KeyEntries) or [*self] != [*other]:
            return False
        if self.standbys is None or other.standbys is None:
            return self.standbys is other.standbys
        return bool(self.standbys.tolist() == other.standbys.tolist())  # an empty table has no number of columns

    def __hash__(self) -> int:
        return hash((self.hashes.tobytes(), self.targets.tobytes()))

    def route(self, hashes: Hashes, home: Nodes, standby_home: NodeRows) -> tuple[Nodes, NodeRows]:
        """Algorithm 1 of paper 002: the node of each hash and of its standbys, by its entry, else by the two hashes.

        O(hashes * log entries).
        """
        order = np.argsort(self.hashes)
        place = np.searchsorted(self.hashes, hashes, sorter=order).clip(max=max(len(self) - 1, 0))
        targets, given = np.array(home), 0 if self.standbys is None else self.standbys.shape[1]
        standbys = widen_rows(standby_home, max(standby_home.shape[1], given))
        if len(self):
            entry = order[place]
            found = self.hashes[entry] == hashes
            targets[found] = self.targets[entry[found]]
            if self.standbys is not None:
                standbys[found] = widen_rows(self.standbys, standbys.shape[1])[entry[found]]
        return targets, standbys


@dataclass(frozen=True, eq=False)
class KeyCopies:
    """Copies that have to be made as columns, in the order of the keys; `targets` are indices into `nodes`."""

    nodes: tuple[str, ...]
    hashes: Hashes
    targets: Nodes
    sizes: Floats

    def __len__(self) -> int:
        return len(self.hashes)

    def __eq__(self, other: object) -> bool:
        mine, theirs = (
            (copies.nodes, copies.hashes.tolist(), copies.targets.tolist(), copies.sizes.tolist())
            if isinstance(copies, KeyCopies)
            else None
            for copies in (self, other)
        )
        return mine == theirs

    def __hash__(self) -> int:
        return hash((self.hashes.tobytes(), self.targets.tobytes()))


@dataclass(frozen=True, slots=True)
class KeyPlan:
    """The whole decision; the command line, the log, the page and the tests read the same object.

    `entries` is the whole routing table after the plan. `cost` is the state that moves and `lower_bound` what every
    plan under this cap has to move. `theta` is what the caller asked for, `cap` the most work a node may carry (above
    what theta allows if `relaxed`, below it with a margin; the `reason` says so), and `loads_before` and `loads_after`
    the work of `nodes` in their order. `pinned` is the part of these loads that no plan moves, empty if there is none.
    `note` is for the caller, and so is `overhead`: what the moves take besides the state, where the caller says.

    With standbys, `cost` is what has to move before keys can go on elsewhere: a move to a standby has size 0, and there
    are `switches` of them. `copies` are those that have to be made in the background, None if there are no standbys.
    """

    strategy: str
    nodes: tuple[str, ...]
    keys: int
    moves: KeyMoves
    entries: KeyEntries
    cost: float
    total_state: float
    lower_bound: float
    theta: float
    cap: float
    most_entries: int
    loads_before: tuple[float, ...]
    loads_after: tuple[float, ...]
    relaxed: bool = False
    reason: str = ""
    note: str = ""
    pinned: tuple[float, ...] = ()
    switches: int = 0
    copies: KeyCopies | None = None
    overhead: float = 0.0

    @classmethod
    def of(cls, problem: KeyProblem, destination: Nodes, standbys: NodeRows | None = None, **decision: Any) -> Self:
        """Make the plan that puts the key in row i on node `destination[i]`, with the same arithmetic for all."""
        loads = problem.loads
        moved = find_differences(destination, loads.current)
        away = problem.find_overrides(destination, standbys)
        sizes, switches, copies = problem.sizes_of(moved, destination), 0, None
        if problem.standbys is not None and standbys is not None:
            switches = int((problem.standbys.current[moved] == destination[moved, None]).any(axis=1).sum())
            rows, targets = find_new_copies(problem.standbys, loads, standbys)
            copies = KeyCopies(problem.nodes, loads.hashes[rows], targets, loads.size[rows])
        return cls(
            nodes=problem.nodes,
            keys=loads.keys,
            moves=KeyMoves(problem.nodes, loads.hashes[moved], loads.current[moved], destination[moved], sizes),
            entries=KeyEntries(
                problem.nodes, loads.hashes[away], destination[away], None if standbys is None else standbys[away]
            ),
            cost=float(sizes.sum()),
            total_state=loads.total_size,
            cap=problem.cap,
            loads_before=tuple(problem.node_loads.tolist()),
            loads_after=tuple(problem.loads_of(destination, standbys).tolist()),
            pinned=problem.pinned if any(problem.pinned) else (),
            switches=switches,
            copies=copies,
            **decision,
        )

    @property
    def cost_share(self) -> float:
        """The cost as a share of all state, 0 to 1."""
        return self.cost / self.total_state if self.total_state else 0.0

    @property
    def background_cost(self) -> float:
        """The state of all copies that have to be made."""
        return 0.0 if self.copies is None else float(self.copies.sizes.sum())

    @property
    def ratio(self) -> float:
        """The cost in multiples of the lower bound; 1 if nothing moves, infinite if nothing had to."""
        if self.lower_bound:
            return self.cost / self.lower_bound
        return math.inf if self.cost else 1.0

    @property
    def heaviest(self) -> NodeLoad:
        """The node with the most work after the plan; the first of them on a tie."""
        index = max(range(len(self.loads_after)), key=self.loads_after.__getitem__)
        return NodeLoad(self.nodes[index], self.loads_after[index])

    @property
    def theta_before(self) -> float:
        """The overload before the plan: max / mean - 1."""
        return _overload(self.loads_before)

    @property
    def theta_reached(self) -> float:
        """The overload after the plan: max / mean - 1."""
        return _overload(self.loads_after)

    @property
    def balanced(self) -> bool:
        """Whether no node carries more than the cap."""
        return self.heaviest.work <= self.cap * (1 + RELATIVE_EPSILON)

    def __str__(self) -> str:
        return render_key_plan(self)

    def __repr__(self) -> str:
        """One line; `str` has the whole plan."""
        verdict = "balanced" if self.balanced else "above the cap"
        return (
            f"KeyPlan({self.strategy}, {len(self.nodes)} nodes, keys={self.keys}, moves={len(self.moves)}, "
            f"entries={len(self.entries)}, cost={self.cost:g}, {verdict})"
        )

    def _repr_html_(self) -> str:
        """Return what notebooks show."""
        return key_plan_to_html(self)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: moves and entries as columns, with nodes by their index."""
        return {
            "strategy": self.strategy,
            "nodes": list(self.nodes),
            "keys": self.keys,
            "moves": {name: getattr(self.moves, name).tolist() for name in ("hashes", "sources", "targets", "sizes")},
            "entries": {name: getattr(self.entries, name).tolist() for name in ("hashes", "targets")},
            "cost": self.cost,
            "cost_share": self.cost_share,
            "overhead": self.overhead,
            "total_state": self.total_state,
            "lower_bound": self.lower_bound,
            "ratio": self.ratio if math.isfinite(self.ratio) else None,  # JSON has no infinity
            "theta": self.theta,
            "theta_before": self.theta_before,
            "theta_reached": self.theta_reached,
            "cap": self.cap,
            "most_entries": self.most_entries,
            "loads_before": list(self.loads_before),
            "loads_after": list(self.loads_after),
            "pinned": list(self.pinned),
            "heaviest": self.heaviest._asdict(),
            "balanced": self.balanced,
            "relaxed": self.relaxed,
            "reason": self.reason,
            "note": self.note,
            **self._standby_fields(),
        }

    def _standby_fields(self) -> dict[str, Any]:
        """Return the additional fields of a plan with standbys."""
        if self.copies is None or self.entries.standbys is None:
            return {}
        columns = {name: getattr(self.copies, name).tolist() for name in ("hashes", "targets", "sizes")}
        return {
            "switches": self.switches,
            "copies": columns,
            "background_cost": self.background_cost,
            "entry_standbys": self.entries.standbys.tolist(),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote; raise `InvalidPlan` if its parts contradict each other."""
        with refuse_malformed("a key plan", InvalidPlan):
            nodes = tuple(str(node) for node in document["nodes"])
            moves, entries = document["moves"], document["entries"]
            plan = cls(
                strategy=str(document["strategy"]),
                nodes=nodes,
                keys=int(document["keys"]),
                moves=KeyMoves(
                    nodes,
                    np.array(moves["hashes"], np.int64),
                    np.array(moves["sources"], np.int32),
                    np.array(moves["targets"], np.int32),
                    np.array(moves["sizes"], np.float64),
                ),
                entries=KeyEntries(
                    nodes,
                    np.array(entries["hashes"], np.int64),
                    np.array(entries["targets"], np.int32),
                    _read_entry_standbys(document),
                ),
                cost=float(document["cost"]),
                total_state=float(document["total_state"]),
                lower_bound=float(document["lower_bound"]),
                theta=float(document["theta"]),
                cap=float(document["cap"]),
                most_entries=int(document["most_entries"]),
                loads_before=tuple(float(load) for load in document["loads_before"]),
                loads_after=tuple(float(load) for load in document["loads_after"]),
                relaxed=bool(document["relaxed"]),
                reason=str(document["reason"]),
                note=str(document["note"]),
                pinned=tuple(float(work) for work in document.get("pinned", ())),  # older documents lack it
                switches=int(document.get("switches", 0)),
                copies=_read_copies(nodes, document),
                overhead=float(document.get("overhead", 0.0)),
            )
        plan._refuse_contradictions()
        return plan

    def to_json(self) -> str:
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls.from_dict(parse_json(text, InvalidPlan))

    def _refuse_contradictions(self) -> None:
        moves, entries, count = self.moves, self.entries, len(self.nodes)
        for name, columns in (
            ("moves", (moves.hashes, moves.sources, moves.targets, moves.sizes)),
            ("entries", (entries.hashes, entries.targets)),
        ):
            if any(column.shape != columns[0].shape or column.ndim != 1 for column in columns):
                raise InvalidPlan(f"the columns of its {name} differ in length. Plan again instead of editing plans.")
            if len(np.unique(columns[0])) != len(columns[0]):
                raise InvalidPlan(f"its {name} name a key twice. Plan again instead of editing plans.")
        for indices in (moves.sources, moves.targets, entries.targets):
            if len(indices) and not (indices.min() >= 0 and indices.max() < count):
                raise InvalidPlan(
                    f"it names nodes beyond the {count} that it has. Plan again instead of editing plans."
                )
        self._refuse_wrong_copies(count)
        if (moves.sources == moves.targets).any():
            raise InvalidPlan("one of its moves stays where it is. Plan again instead of editing plans.")
        if not math.isclose(self.cost, math.fsum(moves.sizes.tolist()), rel_tol=RELATIVE_EPSILON):
            raise InvalidPlan(f"its cost {self.cost:g} is not the size of its moves. Plan again.")
        self._refuse_wrong_loads(count)

    def _refuse_wrong_copies(self, count: int) -> None:
        copies, standbys = self.copies, self.entries.standbys
        if (copies is None) != (standbys is None) or not 0 <= self.switches <= len(self.moves):
            raise InvalidPlan("it has copies, switches or standbys of entries, and not all of them. Plan again.")
        if copies is None or standbys is None:
            return
        if not copies.hashes.shape == copies.targets.shape == copies.sizes.shape or len(standbys) != len(self.entries):
            raise InvalidPlan("the columns of its copies differ in length. Plan again instead of editing plans.")
        for nodes in (copies.targets, standbys):
            if nodes.size and not (nodes.min() >= -1 and nodes.max() < count):
                raise InvalidPlan(f"it names nodes beyond the {count} that it has. Plan again.")
        if (standbys == self.entries.targets[:, None]).any():
            raise InvalidPlan("a key of its table has a standby on its own node. Plan again.")
        if np.count_nonzero(self.moves.sizes == 0) < self.switches:
            raise InvalidPlan("it has more switches than moves without a size. Plan again.")

    def _refuse_wrong_loads(self, count: int) -> None:
        if not len(self.loads_before) == len(self.loads_after) == count or not count:
            raise InvalidPlan(f"it has {len(self.loads_after)} loads for {count} nodes. Plan again.")
        if self.pinned and len(self.pinned) != count:
            raise InvalidPlan(f"it has {len(self.pinned)} amounts of pinned work for {count} nodes. Plan again.")
        for node, pinned, *loads in zip(self.nodes, self.pinned, self.loads_before, self.loads_after, strict=False):
            if not 0 <= pinned <= min(loads):
                raise InvalidPlan(f"the pinned work {pinned:g} of {node!r} is not a part of its load. Plan again.")


def find_new_copies(before: KeyStandbys, loads: KeyLoads, standbys: NodeRows) -> tuple[Rows, Nodes]:
    """The rows of keys with a standby where they had no copy before, and that standby's node."""
    is_new = standbys != NOWHERE
    is_new &= standbys != loads.current[:, None]
    for column in range(before.current.shape[1]):
        is_new &= standbys != before.current[:, column : column + 1]
    rows, columns = np.nonzero(is_new)
    return rows, standbys[rows, columns]


def _read_copies(nodes: tuple[str, ...], document: Mapping[str, Any]) -> KeyCopies | None:
    if "copies" not in document:
        return None
    copies = document["copies"]
    return KeyCopies(
        nodes,
        np.array(copies["hashes"], np.int64),
        np.array(copies["targets"], np.int32),
        np.array(copies["sizes"], np.float64),
    )


def _read_entry_standbys(document: Mapping[str, Any]) -> NodeRows | None:
    if "entry_standbys" not in document:
        return None
    rows = document["entry_standbys"]
    return np.array(rows, np.int32).reshape(len(rows), -1 if rows else 0)


def _overload(loads: tuple[float, ...]) -> float:
    mean = math.fsum(loads) / len(loads)
    return max(loads) / mean - 1 if mean else 0.0
