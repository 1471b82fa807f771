"""Value functions: what a planner may know of future costs, as an argument of the caller."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from migration.errors import InvalidInput, ValueDoesNotFit
from migration.kernels import Floats
from migration.model.workload import Workload

DEFAULT_GAMMA = 0.8  # the paper's discount: a migration one step later counts four fifths
DEFAULT_MOST_CANDIDATES = 20_000  # partitions scored before a search ends without a proof


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
        boundary = _check_finite("boundary", self.boundary, 1)
        object.__setattr__(self, "boundary", boundary)
        if self.interval is not None:
            interval = _check_finite("interval", self.interval, 2)
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


class SearchGuide(NamedTuple):
    """Additive terms V that approximate a value function during the search over partitions onto one node count.

    Invariant: value(P) >= V(P) - above for every partition. Candidates come in order of cost now plus discounted V, and
    `above` tells when none that is left can be better. With `exact`, V is the value: the dynamic program alone answers.
    `above` = inf promises nothing: the `most_candidates` best ones by V are scored, and the best of them is taken.
    `lazy` says that values are projected costs, or meant to be: two of them differ by no more than it costs to get from
    one partition to the other, so a balanced assignment that keeps its nodes is left alone.
    """

    terms: AdditiveTerms
    above: float
    exact: bool = False
    lazy: bool = False
    most_candidates: int = DEFAULT_MOST_CANDIDATES


class ValueFunction(Protocol):
    """The projected migration cost of a partition, in the unit of state sizes.

    Only the partition matters, not which node owns which interval (paper 003, Lemma 4.2).
    """

    @property
    def gamma(self) -> float:
        """The discount of the projection; the planner's default."""
        ...

    def fit_to(self, workload: Workload, nodes: int, tau: float) -> "ValueFunction":
        """Return the value function in the unit of that workload's states, for plans onto `nodes` nodes.

        Raises `ValueDoesNotFit` if it does not cover them. The value function decides how far a workload may drift from
        the one it was made for.
        """
        ...

    def value(self, boundaries: Sequence[int]) -> float:
        """The value of one partition, given by its boundaries 0..m."""
        ...

    def guide(self, nodes: int) -> SearchGuide:
        """The guide for partitions onto `nodes` nodes; called only after `fit_to` succeeded."""
        ...


@dataclass(frozen=True)
class AdditiveValue:
    """A value function that is additive for every node count it knows."""

    by_nodes: Mapping[int, AdditiveTerms] = field(default_factory=dict)
    gamma: float = DEFAULT_GAMMA

    def fit_to(self, workload: Workload, nodes: int, tau: float) -> "ValueFunction":  # noqa: ARG002
        if nodes not in self.by_nodes:
            known = ", ".join(str(count) for count in sorted(self.by_nodes)) or "none"
            raise ValueDoesNotFit(f"the value function knows {known} nodes, not {nodes}", nodes=nodes)
        tasks = self.by_nodes[nodes].tasks
        if tasks != workload.tasks:
            raise ValueDoesNotFit(
                f"the value function is for {tasks} tasks, the workload has {workload.tasks}",
                made_for_tasks=tasks,
                tasks=workload.tasks,
            )
        return self

    def value(self, boundaries: Sequence[int]) -> float:
        return self.by_nodes[len(boundaries) - 1].value(boundaries)

    def guide(self, nodes: int) -> SearchGuide:
        return SearchGuide(self.by_nodes[nodes], above=0.0, exact=True)


def _check_finite(name: str, values: Any, dimensions: int) -> Floats:
    array = np.array(values, dtype=np.float64)
    if array.ndim != dimensions or not np.isfinite(array).all():
        raise InvalidInput(f"{name} terms must be finite and have {dimensions} dimension(s). Check the value function.")
    array.setflags(write=False)
    return array
