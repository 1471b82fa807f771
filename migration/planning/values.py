"""What a planner may know of the future: a value for every partition, handed in by whoever learned it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from migration.errors import InvalidInput
from migration.kernels import Floats


@dataclass(frozen=True, eq=False)
class AdditiveTerms:
    """V(P) = constant + sum of `boundary[x]` over inner boundaries x + sum of `interval[a, x]` over intervals [a, x).

    `boundary` has m + 1 entries (the two ends are not counted); `interval` is (m + 1) x (m + 1), or None.
    Because terms belong to boundaries and edges of the planner's dynamic program, the best partition is found exactly.
    """

    boundary: Floats
    interval: Floats | None = None
    constant: float = 0.0

    def __post_init__(self) -> None:
        boundary = _finite("boundary", self.boundary, 1)
        object.__setattr__(self, "boundary", boundary)
        if self.interval is not None:
            interval = _finite("interval", self.interval, 2)
            if interval.shape != (len(boundary), len(boundary)):
                raise InvalidInput(
                    f"interval terms have shape {interval.shape}. Give {len(boundary)} x {len(boundary)}."
                )
            object.__setattr__(self, "interval", interval)

    @property
    def tasks(self) -> int:
        return len(self.boundary) - 1

    def value(self, boundaries: Sequence[int]) -> float:
        total = self.constant + float(self.boundary[list(boundaries[1:-1])].sum())
        if self.interval is not None:
            total += float(sum(self.interval[start, stop] for start, stop in pairwise(boundaries)))
        return total


class ValueFunction(Protocol):
    """The projected migration cost of a partition, in the unit of state sizes.

    Only the partition matters, not which node owns which interval (paper 003, Lemma 4.2).
    """

    def value(self, boundaries: Sequence[int]) -> float:
        """The value of one partition, given by its boundaries 0..m."""
        ...

    def at_least(self, nodes: int) -> float:
        """A bound that no partition onto `nodes` nodes is below; projected costs are never below 0."""
        ...

    def terms(self, nodes: int) -> AdditiveTerms | None:
        """The value of partitions onto `nodes` nodes as additive terms, or None if it is not a sum of such."""
        ...


@dataclass(frozen=True)
class AdditiveValue:
    """A value function that is additive for every node count it knows."""

    by_nodes: Mapping[int, AdditiveTerms] = field(default_factory=dict)

    def value(self, boundaries: Sequence[int]) -> float:
        return self.terms(len(boundaries) - 1).value(boundaries)

    def at_least(self, nodes: int) -> float:
        """The sum of the smallest terms a partition could have."""
        terms = self.terms(nodes)
        least = terms.constant + (nodes - 1) * float(terms.boundary.min())
        return least + (nodes * float(terms.interval.min()) if terms.interval is not None else 0.0)

    def terms(self, nodes: int) -> AdditiveTerms:
        if nodes not in self.by_nodes:
            known = ", ".join(str(count) for count in sorted(self.by_nodes)) or "none"
            raise InvalidInput(f"the value function knows {known} nodes, not {nodes}. Use strategy 'ssm'.")
        return self.by_nodes[nodes]


def _finite(name: str, values: Any, dimensions: int) -> Floats:
    array = np.array(values, dtype=np.float64)
    if array.ndim != dimensions or not np.isfinite(array).all():
        raise InvalidInput(f"{name} terms must be finite and have {dimensions} dimension(s). Check the value function.")
    array.setflags(write=False)
    return array
