"""A key-planning problem with checked arguments, and what a strategy answers."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import NamedTuple, Self

import numpy as np

from migration.errors import InvalidInput, UnknownNode
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


@dataclass(frozen=True)
class KeyProblem:
    """Find a node for every key such that no node exceeds the cap and few keys are away from home.

    `cap` is `(1 + theta) * W / N`, with W all work and N the number of `nodes`. Invariant: every home and current node
    exists; theta >= 0; most_entries >= 1; node names are distinct.
    """

    loads: KeyLoads
    nodes: tuple[str, ...]
    theta: float
    most_entries: int

    @classmethod
    def of(cls, loads: KeyLoads, nodes: int | Iterable[str], theta: float, most_entries: int) -> Self:
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
        return cls(loads, names, check_theta(theta), check_count(most_entries, "most_entries"))

    def with_theta(self, theta: float) -> Self:
        return replace(self, theta=theta)

    def with_most_entries(self, most_entries: int) -> Self:
        return replace(self, most_entries=most_entries)

    @property
    def node_count(self) -> int:
        return len(self.nodes)

    @cached_property
    def total_work(self) -> float:
        return self.loads.total_work

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
        """The work of every node now, added in the order of rows."""
        return self.loads_of(self.loads.current)

    def loads_of(self, destination: Nodes) -> Floats:
        """The work of every node if the key in row i is at `destination[i]`."""
        return sum_loads(destination, self.loads.work, self.node_count)

    @property
    def is_balanced(self) -> bool:
        """Whether no node exceeds the cap now."""
        return bool(self.node_loads.max() <= self.limit)

    @property
    def least_theta(self) -> float:
        """A bound for every strategy: below this theta the heaviest key alone exceeds the cap."""
        if not self.total_work:
            return 0.0
        return max(float(self.loads.work.max()) / self.mean - 1, 0.0)


class KeyProposal(NamedTuple):
    """What a strategy answers: the index of the node of every key, and why.

    `bound` is what every plan for the same problem has to move, if the strategy found out; at least `quick_bound`.
    """

    destination: Nodes
    reason: str
    bound: float = 0.0


def is_amount(value: object) -> bool:
    """Whether a value is a finite number that is not negative."""
    return not isinstance(value, bool) and isinstance(value, Real) and 0 <= float(value) < math.inf


def check_theta(theta: float) -> float:
    """Return theta as a float; raise for NaN, infinity and negative values."""
    if not is_amount(theta):
        raise InvalidInput(
            f"theta is {theta!r}. Give the allowed overload as a number >= 0; 0.08 allows 8 % above the mean."
        )
    return float(theta)


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
