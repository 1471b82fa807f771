"""A key-planning problem with checked arguments, and what a strategy answers."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from migration.errors import InvalidInput, InvalidWorkload, UnknownNode
from migration.keys.kernels.columns import Rows, find_differences, sum_loads
from migration.keys.kernels.standbys import complete_standbys, count_overrides, sum_standby_loads
from migration.keys.loads import Floats, KeyLoads, Nodes, is_amount
from migration.keys.standbys import KeyStandbys, NodeRows, no_standbys
from migration.model.plan import RELATIVE_EPSILON

DEFAULT_THETA = 0.08  # the paper's default: a node may carry 8 % more than the mean
DEFAULT_MOST_ENTRIES = 3_000  # the paper's default size of the routing table


class NotPlaced(Exception):
    """A strategy found no node that accepts the key in row `row` under the cap; `plan_keys` turns it into an error."""

    def __init__(self, row: int) -> None:
        self.row = row
        super().__init__(f"no node accepts key {row}")


class PinnedAboveCap(NotPlaced):
    """The pinned work of a node alone exceeds the cap, so no strategy succeeds; `row` is -1, as no key is the cause."""

    def __init__(self) -> None:
        super().__init__(-1)


@dataclass(frozen=True)
class KeyProblem:
    """Find a node for every key such that no node exceeds the cap and few keys are away from home.

    `pinned` is the work on every node that no plan moves. `cap` is `(1 + theta) * W / N`, with W all work, of keys and
    pinned, and N the number of `nodes`. Invariant: every home and current node exists; theta >= 0; most_entries >= 1;
    node names are distinct; `pinned` has a finite amount >= 0 for every node; `standbys` fit the loads.
    """

    loads: KeyLoads
    nodes: tuple[str, ...]
    theta: float
    most_entries: int
    pinned: tuple[float, ...]
    standbys: KeyStandbys | None = None

    @classmethod
    def of(
        cls,
        loads: KeyLoads,
        nodes: int | Iterable[str],
        theta: float,
        most_entries: int,
        pinned: Sequence[float] | Floats | None = None,
        standbys: KeyStandbys | None = None,
    ) -> Self:
        """Check the arguments; no work is pinned if `pinned` is None."""
        if not isinstance(loads, KeyLoads):
            raise InvalidInput(f"loads is {type(loads).__name__}. Give KeyLoads.")
        names = _check_nodes(nodes)
        for column, indices in (("home", loads.home), ("current", loads.current)):
            if indices.max() >= len(names):
                row = int(np.argmax(indices >= len(names)))
                raise UnknownNode(
                    str(indices[row]),
                    names,
                    f"It is the {column} of key {row}; give indices from 0 to {len(names) - 1}.",
                )
        amounts = _check_pinned(pinned, names, loads)
        if standbys is not None:
            if not isinstance(standbys, KeyStandbys):
                raise InvalidInput(f"standbys is {type(standbys).__name__}. Give KeyStandbys.")
            standbys.check_fits(loads, len(names))
        return cls(loads, names, check_theta(theta), check_count(most_entries, "most_entries"), amounts, standbys)

    def with_theta(self, theta: float) -> Self:
        return replace(self, theta=theta)

    def with_most_entries(self, most_entries: int) -> Self:
        return replace(self, most_entries=most_entries)

    @property
    def node_count(self) -> int:
        return len(self.nodes)

    @cached_property
    def total_work(self) -> float:
        """All work: of keys, of the standbys that they should have, and pinned."""
        work = self.loads.total_work + sum(self.pinned)
        if self.standbys is None:
            return work
        return work + self.standby_share * float((self.loads.work * self.standby_counts).sum())

    @property
    def standby_share(self) -> float:
        """The work of a standby as a share of its key's."""
        return 0.0 if self.standbys is None else self.standbys.share

    @cached_property
    def standby_counts(self) -> Nodes:
        """The number of standbys that every key should have."""
        return np.zeros(self.loads.keys, np.int32) if self.standbys is None else self.standbys.counts

    @cached_property
    def standby_homes(self) -> NodeRows:
        """Where the second hash leads to; no columns without standbys."""
        return no_standbys(self.loads.keys) if self.standbys is None else self.standbys.home

    @cached_property
    def start(self) -> NodeRows:
        """The standbys before any key goes elsewhere: those that exist, and the missing ones where they should be."""
        if self.standbys is None:
            return no_standbys(self.loads.keys)
        columns = self.loads.home, self.standbys.home, self.loads.current, self.standbys.current
        return np.asarray(complete_standbys(*columns, self.node_count))

    @property
    def pinned_loads(self) -> Floats:
        """The pinned work of every node, as a new array."""
        return np.array(self.pinned)

    @property
    def mean(self) -> float:
        """The work of a node if all carried the same."""
        return self.total_work / self.node_count

    @property
    def cap(self) -> float:
        """The most work a node may carry."""
        return (1 + self.theta) * self.mean

    @property
    def limit(self) -> float:
        """What strategies compare running loads with: the cap and half of the tolerance.

        The other half is for the rounding errors by which running loads differ from the sums in the plan.
        """
        return self.cap * (1 + RELATIVE_EPSILON / 2)

    @property
    def accepted(self) -> float:
        """What the loads of a plan are compared with: the cap and all of the tolerance."""
        return self.cap * (1 + RELATIVE_EPSILON)

    @cached_property
    def node_loads(self) -> Floats:
        """The work of every node now: its pinned work and standbys, and its keys added in the order of rows."""
        return self.loads_of(self.loads.current)

    def loads_of(self, destination: Nodes, standbys: NodeRows | None = None) -> Floats:
        """The work of every node if the key in row i is at `destination[i]`; standbys as now if None."""
        other = self.pinned_loads
        if self.standbys is not None:
            rows = self.standbys.current if standbys is None else standbys
            other = np.asarray(sum_standby_loads(rows, self.loads.work, self.standby_share, other))
        return sum_loads(destination, self.loads.work, other)

    def find_overrides(self, destination: Nodes, standbys: NodeRows | None = None) -> Rows:
        """The rows of keys that need an entry: they or their standbys are not where the hashes lead to."""
        if self.standbys is None or standbys is None:
            return find_differences(destination, self.loads.home)
        overridden = np.zeros(self.loads.keys, np.bool_)
        count_overrides(self.loads.home, self.standbys.home, destination, standbys, overridden)
        return np.flatnonzero(overridden)

    def sizes_of(self, rows: Rows, destination: Nodes) -> Floats:
        """The state that moves with each key in `rows`: nothing if it goes to a standby."""
        sizes = self.loads.size[rows]
        if self.standbys is None:
            return sizes
        return np.where((self.standbys.current[rows] == destination[rows, None]).any(axis=1), 0.0, sizes)

    def critical_size(self, destination: Nodes) -> float:
        """The state that has to move before keys can go on at `destination`."""
        return float(self.sizes_of(find_differences(destination, self.loads.current), destination).sum())

    @property
    def is_balanced(self) -> bool:
        """Whether no node exceeds the cap now."""
        return bool(self.node_loads.max() <= self.limit)

    @property
    def least_theta(self) -> float:
        """A bound for every strategy: below this theta the heaviest key or the pinned work of a node exceeds the cap.

        The key counts with the least pinned work of a node, because it has to be somewhere.
        """
        if not self.total_work:
            return 0.0
        heaviest = min(self.pinned) + float(self.loads.work.max())
        return max(heaviest / self.mean - 1, max(self.pinned) / self.mean - 1, 0.0)

    def refuse_pinned_excess(self) -> None:
        """Raise `PinnedAboveCap` if the pinned work of a node exceeds the cap: then no strategy can help."""
        if max(self.pinned) > self.limit:
            raise PinnedAboveCap


class KeyProposal(NamedTuple):
    """The answer of a strategy: the index of the node of every key, and why.

    `bound` is what every plan for the same problem has to move, if the strategy found out; at least `quick_bound`.
    `standbys` are the nodes of every key's standbys, None if the problem has none.
    """

    destination: Nodes
    reason: str
    bound: float = 0.0
    standbys: NodeRows | None = None


def check_theta(theta: float) -> float:
    """Return theta as a float; raise for NaN, infinity and negative values."""
    if not is_amount(theta):
        raise InvalidInput(
            f"theta is {theta!r}. Give the allowed overload as a number >= 0; 0.08 allows 8 % above the mean."
        )
    return float(theta)


def check_margin(margin: float) -> float:
    """Return the margin as a float; raise for NaN, infinity and negative values."""
    if not is_amount(margin):
        raise InvalidInput(f"margin is {margin!r}. Give what a plan stays below theta as a number >= 0; 0 is none.")
    return float(margin)


def check_count(value: object, what: str) -> int:
    """Return a whole number of at least one; raise for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidInput(f"{what} is {value!r}. Give a whole number >= 1.")
    return int(value)


def _check_nodes(nodes: int | Iterable[str]) -> tuple[str, ...]:
    if isinstance(nodes, str):
        raise InvalidInput(f"nodes is the string {nodes!r}. Give a count, or a list of names.")
    if not isinstance(nodes, Iterable):
        return tuple(f"node-{number}" for number in range(1, check_count(nodes, "nodes") + 1))
    names = tuple(nodes)
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise InvalidInput(f"nodes is {names!r}. Give at least one name, and every node its own.")
    return names


def _check_pinned(
    pinned: Sequence[float] | Floats | None, names: tuple[str, ...], loads: KeyLoads
) -> tuple[float, ...]:
    if pinned is None:
        return (0.0,) * len(names)
    amounts = pinned.tolist() if isinstance(pinned, np.ndarray) else pinned
    if isinstance(amounts, str) or not isinstance(amounts, Sequence):
        raise InvalidWorkload(f"pinned is {pinned!r}. Give a list with the pinned work of every node, or None.")
    if len(amounts) != len(names):
        raise InvalidWorkload(
            f"pinned has {len(amounts)} values and there are {len(names)} nodes. Give one value for every node."
        )
    for name, amount in zip(names, amounts, strict=True):
        if not is_amount(amount):
            raise InvalidWorkload(
                f"the pinned work of node {name!r} is {amount!r}. Give finite numbers that are not negative."
            )
    checked = tuple(float(amount) for amount in amounts)
    if not math.isfinite(sum(checked) + loads.total_work):
        raise InvalidWorkload("the sum of work and pinned work overflows. Use a larger unit.")
    return checked
