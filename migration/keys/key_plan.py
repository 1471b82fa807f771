"""A key plan: which keys move where, the routing table that results, what it costs, and how balanced it is."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from migration.errors import InvalidInput, InvalidPlan
from migration.keys.kernels.columns import find_differences
from migration.keys.loads import Floats, Hashes, Nodes
from migration.keys.problem import KeyProblem
from migration.keys.rendering import render_key_plan
from migration.model.documents import parse_json
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

    Iterating yields a `KeyEntry` for every row.
    """

    nodes: tuple[str, ...]
    hashes: Hashes
    targets: Nodes

    def __len__(self) -> int:
        return len(self.hashes)

    def __iter__(self) -> Iterator[KeyEntry]:
        for key, target in zip(self.hashes.tolist(), self.targets.tolist(), strict=True):
            yield KeyEntry(key, self.nodes[target])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyEntries) and [*self] == [*other]

    def __hash__(self) -> int:
        return hash((self.hashes.tobytes(), self.targets.tobytes()))


@dataclass(frozen=True, slots=True)
class KeyPlan:
    """The whole decision; the command line, the log, the page and the tests read the same object.

    `entries` is the whole routing table after the plan. `cost` is the state that moves and `lower_bound` what every
    plan under this cap has to move. `theta` is what the caller asked for, `cap` the most work a node may carry (above
    what theta allows if `relaxed`, below it with a margin; the `reason` says so), and `loads_before` and `loads_after`
    the work of `nodes` in their order. `pinned` is the part of these loads that no plan moves, empty if there is none.
    `note` is for the caller.
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

    @classmethod
    def of(cls, problem: KeyProblem, destination: Nodes, **decision: Any) -> Self:
        """Make the plan that puts the key in row i on node `destination[i]`, with the same arithmetic for all."""
        loads = problem.loads
        moved = find_differences(destination, loads.current)
        away = find_differences(destination, loads.home)
        sizes = loads.size[moved]
        return cls(
            nodes=problem.nodes,
            keys=loads.keys,
            moves=KeyMoves(problem.nodes, loads.hashes[moved], loads.current[moved], destination[moved], sizes),
            entries=KeyEntries(problem.nodes, loads.hashes[away], destination[away]),
            cost=float(sizes.sum()),
            total_state=loads.total_size,
            cap=problem.cap,
            loads_before=tuple(problem.node_loads.tolist()),
            loads_after=tuple(problem.loads_of(destination).tolist()),
            pinned=problem.pinned if any(problem.pinned) else (),
            **decision,
        )

    @property
    def cost_share(self) -> float:
        """The cost as a share of all state, 0 to 1."""
        return self.cost / self.total_state if self.total_state else 0.0

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
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote; raise `InvalidPlan` if its parts contradict each other."""
        try:
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
                    nodes, np.array(entries["hashes"], np.int64), np.array(entries["targets"], np.int32)
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
            )
        except (KeyError, TypeError, ValueError, OverflowError) as cause:
            if isinstance(cause, InvalidInput):
                raise
            raise InvalidPlan(f"not a key plan document: {cause!r}. Write plans with to_json().") from cause
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
        if (moves.sources == moves.targets).any():
            raise InvalidPlan("one of its moves stays where it is. Plan again instead of editing plans.")
        if not math.isclose(self.cost, math.fsum(moves.sizes.tolist()), rel_tol=RELATIVE_EPSILON):
            raise InvalidPlan(f"its cost {self.cost:g} is not the size of its moves. Plan again.")
        self._refuse_wrong_loads(count)

    def _refuse_wrong_loads(self, count: int) -> None:
        if not len(self.loads_before) == len(self.loads_after) == count or not count:
            raise InvalidPlan(f"it has {len(self.loads_after)} loads for {count} nodes. Plan again.")
        if self.pinned and len(self.pinned) != count:
            raise InvalidPlan(f"it has {len(self.pinned)} amounts of pinned work for {count} nodes. Plan again.")
        for node, pinned, *loads in zip(self.nodes, self.pinned, self.loads_before, self.loads_after, strict=False):
            if not 0 <= pinned <= min(loads):
                raise InvalidPlan(f"the pinned work {pinned:g} of {node!r} is not a part of its load. Plan again.")


def _overload(loads: tuple[float, ...]) -> float:
    mean = math.fsum(loads) / len(loads)
    return max(loads) / mean - 1 if mean else 0.0
