"""Partitions that a policy passes through, and what they cost if it may stop nowhere else."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from mdp.kernels.additive import all_costs
from mdp.kernels.paths import Floats, Ints
from mdp.process import DecisionProcess
from mdp.workers import Here
from migration.kernels import cheapest_sources

_MOST_IMPROVEMENTS = 50
_MOST_EVALUATIONS = 2_000
_SETTLED = 1e-9  # of all state


@dataclass(frozen=True, eq=False)
class Stations:
    """The decision process with some partitions as its only targets, solved.

    values[n][i] = sum over n' of M[n, n'] * min over stations Q onto n' of cost(P, Q) + gamma * value(Q), for station i
    onto n nodes. Such a policy exists, so no value is below C[P]; stations that good policies pass through make it
    nearly as small. Unlike an additive value, these have no errors for a minimum to fall for.
    """

    process: DecisionProcess
    rows: Mapping[int, Ints]
    values: Mapping[int, Floats]

    @classmethod
    def of(cls, process: DecisionProcess, rows: Mapping[int, Ints]) -> "Stations":
        """Policy iteration over all pairs of stations: O(pairs * n) once, then O(pairs) an improvement."""
        pairs = [(nodes, after) for nodes in process.nodes for after in process.successors(nodes)]
        # Computed in this process, whoever the workers are: to send them would take longer.
        found = Here().map(partial(_costs, process, rows), pairs)
        costs = dict(zip(pairs, found, strict=True))
        values = {nodes: np.zeros(len(rows[nodes])) for nodes in process.nodes}
        choices: dict[tuple[int, int], Ints] = {}
        for _ in range(_MOST_IMPROVEMENTS):
            before = choices
            choices = {
                (nodes, after): np.argmin(cost + process.gamma * values[after], axis=1)
                for (nodes, after), cost in costs.items()
            }
            if before and all((choices[pair] == before[pair]).all() for pair in pairs):
                break
            values = _evaluated(process, costs, choices, values)
        return cls(process, rows, values)

    def expected(self, rows: Ints, nodes: int) -> Floats:
        """What the definition of C says of other partitions onto `nodes` nodes, with stations as its only targets."""
        process, total = self.process, np.zeros(len(rows))
        for after in process.successors(nodes):
            # A cost is the same in both directions.
            spent = process.gamma * self.values[after]
            least, _ = cheapest_sources(process.workload.state_prefix, self.rows[after], spent, rows)
            total += process.matrix.probability(nodes, after) * least
        return total / (1 - process.gamma * process.matrix.probability(nodes, nodes))


def _costs(process: DecisionProcess, rows: Mapping[int, Ints], pair: tuple[int, int]) -> Floats:
    now, after = pair
    found: Floats = all_costs(process.workload.state_prefix, rows[now], rows[after])
    return found


def _evaluated(
    process: DecisionProcess,
    costs: Mapping[tuple[int, int], Floats],
    choices: Mapping[tuple[int, int], Ints],
    values: Mapping[int, Floats],
) -> dict[int, Floats]:
    """What it costs to make these choices for ever; `values` is where to begin."""
    gamma, matrix = process.gamma, process.matrix
    scale = {nodes: 1 / (1 - gamma * matrix.probability(nodes, nodes)) for nodes in values}
    base = {nodes: np.zeros(len(values[nodes])) for nodes in values}
    for (nodes, after), choice in choices.items():
        cost = np.take_along_axis(costs[nodes, after], choice[:, None], axis=1)[:, 0]
        base[nodes] += scale[nodes] * matrix.probability(nodes, after) * cost
    settled = _SETTLED * process.workload.total_state
    for _ in range(_MOST_EVALUATIONS):
        found = {nodes: base[nodes].copy() for nodes in values}
        for (nodes, after), choice in choices.items():
            found[nodes] += gamma * scale[nodes] * matrix.probability(nodes, after) * values[after][choice]
        change = max(float(np.abs(found[nodes] - values[nodes]).max(initial=0.0)) for nodes in values)
        values = found
        if change <= settled:
            break
    return dict(values)
