"""An additive value as arrays for the kernels, and the one-step policy that follows from it."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mdp.kernels.additive import best_scores, best_targets, most_promising
from mdp.kernels.paths import Floats, Ints
from mdp.process import DecisionProcess
from migration.planning.values import AdditiveTerms, AdditiveValue

_NO_TERMS = np.empty((0, 0))
_NO_TERMS.setflags(write=False)


@dataclass(frozen=True, eq=False)
class Foresight:
    """The best targets if V is the future cost; without a V that is `ssm`.

    Called as a policy it takes one step: the best target by cost(P, P') + gamma * V(P'). n nodes that stay n stay as
    they are: cost is a metric and |C[P] - C[Q]| <= cost(P, Q), so a move gains nothing, whatever V says.
    """

    process: DecisionProcess
    additive: AdditiveValue | None = None
    _costs: dict[int, tuple[Floats, Floats]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        costs = {nodes: self._to_costs(nodes) for nodes in self.process.nodes}
        object.__setattr__(self, "_costs", costs)

    def __call__(self, boundaries: Ints, nodes: int) -> Ints:
        if len(boundaries) == nodes + 1:
            return boundaries
        best: Ints = self.targets(boundaries[None, :], nodes)[0][0]
        return best

    def targets(self, sources: Ints, nodes: int) -> tuple[Ints, Floats]:
        """For every row of boundaries the best target onto `nodes` nodes, and the state that stays."""
        workload, first = self.process.workload, self.process.first[nodes]
        return best_targets(
            workload.work_prefix, workload.state_prefix, first, _rows(sources), nodes, *self._costs[nodes]
        )

    def least(self, sources: Ints, nodes: int) -> Floats:
        """For every row of boundaries the least cost(P, P') + gamma * V(P') over targets onto `nodes` nodes."""
        workload, first = self.process.workload, self.process.first[nodes]
        scores = best_scores(workload.state_prefix, first, _rows(sources), nodes, *self._costs[nodes])
        return workload.total_state + self.process.gamma * self.constant(nodes) - scores

    def best_candidates(self, boundaries: Ints, nodes: int, most: int) -> tuple[Ints, Floats]:
        """The `most` best targets onto `nodes` nodes, best first, by cost(P, P') + gamma * V(P'); and cost(P, P')."""
        workload, first = self.process.workload, self.process.first[nodes]
        old = np.array(boundaries, np.int64)
        targets, stays = most_promising(workload.state_prefix, first, old, nodes, *self._costs[nodes], most)
        return targets, workload.total_state - stays

    def backup(self, sources: Ints, nodes: int) -> Floats:
        """Apply the definition of C once to every row of boundaries onto `nodes` nodes, with V for C.

        Staying at n nodes costs nothing and leads to the same partition, so the equation is solved for its value.
        """
        matrix, expected = self.process.matrix, np.zeros(len(sources))
        for after in self.process.successors(nodes):
            expected += matrix.probability(nodes, after) * self.least(sources, after)
        return expected / (1 - self.process.gamma * matrix.probability(nodes, nodes))

    def constant(self, nodes: int) -> float:
        return 0.0 if self.additive is None else self.additive.by_nodes[nodes].constant

    def __reduce__(self) -> tuple[Any, ...]:
        # Rebuilding keeps arrays read-only, which the kernels are compiled for.
        return type(self), (self.process, self.additive)

    def _to_costs(self, nodes: int) -> tuple[Floats, Floats]:
        nothing = AdditiveTerms(np.zeros(self.process.tasks + 1))
        terms = nothing if self.additive is None else self.additive.by_nodes[nodes]
        boundary = self.process.gamma * terms.boundary
        boundary[[0, -1]] = 0.0  # only inner boundaries count
        boundary.setflags(write=False)
        if terms.interval is None:
            return boundary, _NO_TERMS
        interval = self.process.gamma * terms.interval
        interval.setflags(write=False)
        return boundary, interval


def _rows(sources: Ints) -> Ints:
    """Convert to the one array type that the kernels are compiled for."""
    return np.array(sources, np.int64, order="C", ndmin=2)
