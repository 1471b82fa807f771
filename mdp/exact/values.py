"""The projected cost of any partition, from the values of all balanced ones."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Self

import numpy as np

from mdp.errors import UnknownPartition
from mdp.exact.guide import EdgeGuide
from mdp.kernels.guide import slack_to_the_left
from mdp.kernels.minimum import solve_one
from mdp.kernels.paths import Floats, Ints
from mdp.lattice import Lattice
from mdp.process import DecisionProcess


class ExactValues:
    """C[P] of partitions that were balanced at projection time; for others, the definition of C applied once.

    The definition needs values of balanced targets only, so it also covers partitions that drifted into or out of
    balance. A look-up takes about a microsecond, the definition one inner minimum per successor count.
    """

    def __init__(self, process: DecisionProcess, values: Mapping[int, Floats], guides: Mapping[int, EdgeGuide]) -> None:
        self._process = process
        self._values = values
        self._guides = guides

    @classmethod
    def fit(cls, process: DecisionProcess, values: Mapping[int, Floats]) -> Self:
        """With guides fitted to the values."""
        lattices = {nodes: Lattice(nodes, process.first[nodes]) for nodes in process.nodes}
        guides = {nodes: EdgeGuide.fit(lattice, values[nodes]) for nodes, lattice in lattices.items()}
        return cls(process, values, guides)

    def value(self, boundaries: Sequence[int]) -> float:
        nodes = len(boundaries) - 1
        self._check(boundaries)
        lattice = self._lattices[nodes]
        return (
            float(self._values[nodes][lattice.rank(boundaries)]) if boundaries in lattice else self.backup(boundaries)
        )

    def backup(self, boundaries: Sequence[int]) -> float:
        """sum over n' of M[n, n'] * min over balanced P' of cost(P, P') + gamma * C[P']."""
        self._check(boundaries)
        matrix = self._process.matrix
        nodes, total = len(boundaries) - 1, self._process.workload.total_state
        chances = {after: matrix.probability(nodes, after) for after in matrix.nodes}
        return sum(chance * (total - self.best(boundaries, n)[1]) for n, chance in chances.items() if chance > 0)

    def __call__(self, boundaries: Ints, nodes: int) -> Ints:
        """As a policy: the best target. n nodes that stay n stay as they are."""
        if len(boundaries) == nodes + 1:
            return boundaries
        return np.array(self._lattices[nodes].partition(self.best(boundaries, nodes)[0]), np.int64)

    def best(self, boundaries: Sequence[int] | Ints, after: int) -> tuple[int, float]:
        """Rank and score of the best target onto `after` nodes; scores are state that stays - gamma * C[P']."""
        process, lattice, guide = self._process, self._lattices[after], self._guides[after]
        rank, score = solve_one(
            process.workload.state_prefix,
            process.gamma,
            np.asarray(boundaries, np.int64),
            lattice.low,
            lattice.high,
            lattice.edge_at,
            lattice.begin,
            process.gamma * guide.term,
            lattice.edge_rank,
            process.gamma * guide.above,
            self._slack_left[after],
            self._values[after],
        )
        return int(rank), float(score)

    @cached_property
    def _lattices(self) -> dict[int, Lattice]:
        return {nodes: Lattice(nodes, self._process.first[nodes]) for nodes in self._process.nodes}

    @cached_property
    def _slack_left(self) -> dict[int, Floats]:
        return {
            nodes: slack_to_the_left(
                self._process.gamma * self._guides[nodes].above,
                lattice.low,
                lattice.high,
                lattice.edge_at,
                lattice.begin,
            )
            for nodes, lattice in self._lattices.items()
        }

    def _check(self, boundaries: Sequence[int]) -> None:
        tasks, nodes = self._process.tasks, len(boundaries) - 1
        if nodes not in self._process.nodes or boundaries[0] != 0 or boundaries[-1] != tasks:
            known = f"{self._process.nodes[0]} to {self._process.nodes[-1]}"
            raise UnknownPartition(
                f"{tuple(boundaries)} is no partition of {tasks} tasks onto {known} nodes. "
                "Project with a matrix over the node counts that you use."
            )
