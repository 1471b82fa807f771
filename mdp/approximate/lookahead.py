"""Two steps of foresight: score the best targets by V again, by one step with V from each."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np

from mdp.approximate.foresight import Foresight
from mdp.kernels.paths import Ints
from mdp.process import DecisionProcess
from migration import Workload
from migration.planning.values import AdditiveValue, SearchGuide, ValueFunction

DEFAULT_CANDIDATES = 20


@dataclass(frozen=True, eq=False)
class Lookahead:
    """value(P) = one application of the definition of C at P, with V for C: a dynamic program per successor count.

    A value function for the planner, with V as its guide and no bound. As a policy it chooses as the planner does.
    """

    process: DecisionProcess
    additive: AdditiveValue
    candidates: int = DEFAULT_CANDIDATES

    @property
    def gamma(self) -> float:
        return self.process.gamma

    def fit_to(self, workload: Workload, nodes: int, tau: float) -> ValueFunction:
        self.additive.fit_to(workload, nodes, tau)
        return self

    def value(self, boundaries: Sequence[int]) -> float:
        return float(self._foresight.backup(np.array([boundaries], np.int64), len(boundaries) - 1)[0])

    def guide(self, nodes: int) -> SearchGuide:
        return SearchGuide(self.additive.by_nodes[nodes], inf, lazy=True, most_candidates=self.candidates)

    def __call__(self, boundaries: Ints, nodes: int) -> Ints:
        if len(boundaries) == nodes + 1:
            return boundaries
        targets, costs = self._foresight.best_candidates(boundaries, nodes, self.candidates)
        chosen: Ints = targets[int(np.argmin(costs + self.gamma * self._foresight.backup(targets, nodes)))]
        return chosen

    @cached_property
    def _foresight(self) -> Foresight:
        return Foresight(self.process, self.additive)
