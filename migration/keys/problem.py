"""A key-planning problem with checked arguments, and what a strategy answers."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import NamedTuple, Self

import numpy as np

from migration.errors import InvalidInput, InvalidWorkload, UnknownNode
from migration.keys.kernels.columns import sum_loads
from migration.keys.loads import Floats, KeyLoads, Nodes
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
    node names are distinct; `pinned` has a finite amount >= 0 for every node.
    """

    loads: KeyLoads
    nodes: tuple[str, ...]
    theta: float
    most_entries: int
    pinned: tuple[float, ...]

    @classmethod
    def of(
        cls,
        loads: KeyLoads,
        nodes: int | Iterable[str],
        theta: float,
        most_entries: int,
        pinned: Sequence[float] | Floats | None = None,
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
        return cls(loads, names, check_theta(theta), check_count(most_entries, "most_entries"), amounts)

    def with_theta(self, theta: float) -> Self:
        return replace(self, theta=theta)

    def with_most_entries(self, most_entries: int) -> Self:
        return replace(self, most_entries=most_entries)

    @property
    def node_count(self) -> int:
        return len(self.nodes)

    @cached_property
    def total_work(self) -> float:
        """All work, of keys and pinned."""
        return self.loads.total_work + sum(self.pinned)

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

    @cached_property
    def node_loads(self) -> Floats:
        """The work of every node now: its pinned work, and its keys added in the order of rows."""
        return self.loads_of(self.loads.current)

    def loads_of(self, destination: Nodes) -> Floats:
        """The work of every node if the key in row i is at `destination[i]`."""
        return sum_loads(destination, self.loads.work, self.pinned_loads)

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
    """What a strategy answers: the index of the node of every key, and why.

    `bound` is what every plan for the same problem has to move, if the strategy found out; at least `quick_bound`.
    """

    destination: Nodes
    reason: str
    bound: float = 0.0


def is_amount(value: object) -> bool:
    """Whether a value is a finite number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return 0 <= float(value) < math.inf
    except OverflowError:  # a whole number beyond all floats
        return False


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
