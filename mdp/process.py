"""The decision process behind projected migration costs (paper 003, section 4.2), with checked arguments."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdp.errors import InvalidProjection, NothingBalanced
from mdp.matrix import TransitionMatrix
from migration import Workload
from migration.planning import balance
from migration.planning.partitions import count_partitions

Ints = NDArray[np.int64]

DEFAULT_TAU = 0.2
DEFAULT_GAMMA = 0.8  # the paper's discount: a migration one step later weighs four fifths


@dataclass(frozen=True, eq=False)
class DecisionProcess:
    """C[P] = sum over n' of M[n, n'] * min over balanced P' with n' intervals of cost(P, P') + gamma * C[P'].

    Invariant: every node count of the matrix has a balanced partition, and 0 <= gamma < 1.
    `first[n][x]` is the smallest a for which [a, x) is light enough for one of n nodes. With `relax`, a node count
    that has no balanced partition gets the smallest cap that has one, as `migration.plan(relax=True)` would give it.
    """

    workload: Workload
    matrix: TransitionMatrix
    tau: float = DEFAULT_TAU
    gamma: float = DEFAULT_GAMMA
    relax: bool = False
    first: Mapping[int, Ints] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.gamma) and 0 <= self.gamma < 1):
            raise InvalidProjection(f"gamma is {self.gamma!r}. Give a discount of at least 0 and below 1.")
        if not (math.isfinite(self.tau) and self.tau >= 0):
            raise InvalidProjection(f"tau is {self.tau!r}. Give the allowed overload as a number >= 0.")
        for name in ("tau", "gamma"):
            object.__setattr__(self, name, float(getattr(self, name)))
        most = self.matrix.nodes[-1]
        if most > self.workload.tasks:
            raise InvalidProjection(
                f"the matrix has {most} nodes, the workload {self.workload.tasks} tasks. Use at most one node a task."
            )
        first = {nodes: self._starts_within(self.cap(nodes)) for nodes in self.matrix.nodes}
        if infeasible := [nodes for nodes in self.matrix.nodes if not count_partitions(first[nodes], nodes)]:
            if not self.relax:
                smallest = max(balance.infeasible_error(self.workload, n, self.tau).smallest_tau for n in infeasible)
                raise NothingBalanced(infeasible, self.tau, smallest)
            first |= {n: self._starts_within(balance.smallest_cap(self.workload, n)) for n in infeasible}
        object.__setattr__(self, "first", first)

    @property
    def nodes(self) -> tuple[int, ...]:
        return self.matrix.nodes

    @property
    def tasks(self) -> int:
        return self.workload.tasks

    def successors(self, nodes: int) -> list[int]:
        """The node counts that may follow and need a decision.

        Staying at n nodes needs none: cost is a metric and |C[P] - C[Q]| <= cost(P, Q), so staying is best.
        """
        row = self.matrix.probabilities[self.matrix.index(nodes)]
        return [after for after, chance in zip(self.nodes, row, strict=True) if chance > 0 and after != nodes]

    def cap(self, nodes: int) -> float:
        """The cap that tau allows, before it is relaxed."""
        return balance.cap(self.workload, nodes, self.tau)

    def partitions(self) -> dict[int, int]:
        """Count the balanced partitions by node count; O(band), without enumerating them."""
        return {nodes: count_partitions(self.first[nodes], nodes) for nodes in self.nodes}

    def to_dict(self) -> dict[str, Any]:
        return {
            "workload": self.workload.to_dict(),
            "matrix": self.matrix.to_dict(),
            "tau": self.tau,
            "gamma": self.gamma,
            "relax": self.relax,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.workload, self.matrix, self.tau, self.gamma, self.relax)

    def _starts_within(self, cap: float) -> Ints:
        return balance.earliest_starts(self.workload, cap)
