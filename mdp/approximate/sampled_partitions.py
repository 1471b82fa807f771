"""Partitions to learn from: those that policies pass or nearly choose, solved as a smaller decision process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isqrt

import numpy as np

from mdp.approximate.foresight import Foresight
from mdp.kernels.additive import all_costs, uniform_paths
from mdp.kernels.paths import Floats, Ints
from mdp.process import DecisionProcess
from mdp.workers import LocalWorkers, Workers
from migration.kernels import cheapest_sources
from migration.kernels.shared import band
from migration.planning.partitions import all_partitions, count_partitions

NEARBY = 6  # targets kept per decision
DECISIONS = 150  # partitions per node count whose decisions are considered
MIN_SAMPLED_PARTITIONS = 30  # per node count, also where policies rarely pass
MAX_PAIRS = 8_000_000  # of sampled partitions whose costs are kept: 64 MB
_MAX_IMPROVEMENTS = 50
_MAX_EVALUATIONS = 2_000
_SETTLED = 1e-9  # of all state


@dataclass(frozen=True, eq=False)
class SampledPartitions:
    """The decision process with some partitions as its only targets, solved.

    values[n][i] = sum over n' of M[n, n'] * min over sampled Q onto n' of cost(P, Q) + gamma * value(Q), for the i-th
    sampled partition P onto n nodes. That is the value of a real policy, so none is below C[P]; partitions that good
    policies pass make it nearly as small. Unlike an additive value, these values have no errors that a minimum selects.
    """

    process: DecisionProcess
    rows: Mapping[int, Ints]
    values: Mapping[int, Floats]

    @classmethod
    def solve(cls, process: DecisionProcess, rows: Mapping[int, Ints]) -> "SampledPartitions":
        """Solve by policy iteration over all pairs: O(pairs * n) once, then O(pairs) per improvement."""
        pairs = [(nodes, after) for nodes in process.nodes for after in process.successors(nodes)]
        # Computed in this process: sending the partitions to workers would take longer.
        found = LocalWorkers().map(partial(_costs, process, rows), pairs)
        costs = dict(zip(pairs, found, strict=True))
        values = {nodes: np.zeros(len(rows[nodes])) for nodes in process.nodes}
        choices: dict[tuple[int, int], Ints] = {}
        for _ in range(_MAX_IMPROVEMENTS):
            before = choices
            choices = {
                (nodes, after): np.argmin(cost + process.gamma * values[after], axis=1)
                for (nodes, after), cost in costs.items()
            }
            if before and all((choices[pair] == before[pair]).all() for pair in pairs):
                break
            values = _evaluate_choices(process, costs, choices, values)
        return cls(process, rows, values)

    def expected(self, rows: Ints, nodes: int) -> Floats:
        """Apply the definition of C to other partitions onto `nodes` nodes, with sampled partitions as only targets."""
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


def _evaluate_choices(
    process: DecisionProcess,
    costs: Mapping[tuple[int, int], Floats],
    choices: Mapping[tuple[int, int], Ints],
    values: Mapping[int, Floats],
) -> dict[int, Floats]:
    """The cost of following these choices forever, iterated from `values`."""
    gamma, matrix = process.gamma, process.matrix
    scale = {nodes: 1 / (1 - gamma * matrix.probability(nodes, nodes)) for nodes in values}
    base = {nodes: np.zeros(len(values[nodes])) for nodes in values}
    for (nodes, after), choice in choices.items():
        cost = np.take_along_axis(costs[nodes, after], choice[:, None], axis=1)[:, 0]
        base[nodes] += scale[nodes] * matrix.probability(nodes, after) * cost
    settled = _SETTLED * process.workload.total_state
    for _ in range(_MAX_EVALUATIONS):
        found = {nodes: base[nodes].copy() for nodes in values}
        for (nodes, after), choice in choices.items():
            found[nodes] += gamma * scale[nodes] * matrix.probability(nodes, after) * values[after][choice]
        change = max(float(np.abs(found[nodes] - values[nodes]).max(initial=0.0)) for nodes in values)
        values = found
        if change <= settled:
            break
    return dict(values)


def max_sampled_partitions(process: DecisionProcess) -> int:
    """The most partitions per node count for which the costs of all pairs fit into memory."""
    pairs = sum(len(process.successors(nodes)) for nodes in process.nodes)
    return isqrt(MAX_PAIRS // max(pairs, 1))


def choose_partitions(
    foresight: Foresight,
    visited: Mapping[int, Sequence[Ints]],
    most: int,
    rng: np.random.Generator,
    workers: Workers,
) -> dict[int, Ints]:
    """Choose rows of boundaries by node count: all balanced partitions if there are at most `most`.

    Otherwise the most visited ones first, then the best targets of decisions on the way, which were nearly chosen.
    """
    process = foresight.process
    seen = {nodes: _most_frequent(visited[nodes], nodes) for nodes in process.nodes}
    pairs = [(nodes, after) for nodes in process.nodes for after in process.successors(nodes)]
    nearby = workers.map(
        partial(_best_candidates, foresight), [(seen[nodes][:DECISIONS], after) for nodes, after in pairs]
    )
    found = {}
    for nodes in process.nodes:
        if count_partitions(process.first[nodes], nodes) <= most:
            found[nodes] = all_partitions(process.first[nodes], nodes)
            continue
        targets = [rows for (_, after), rows in zip(pairs, nearby, strict=True) if after == nodes]
        near = rng.permutation(np.concatenate([np.empty((0, nodes + 1), np.int64), *targets]))
        rest = draw_partitions(process, nodes, MIN_SAMPLED_PARTITIONS, rng)[len(seen[nodes]) + len(near) :]
        found[nodes] = _distinct(np.concatenate((seen[nodes], near, rest)))[:most]
    return found


def draw_other_partitions(sampled: SampledPartitions, count: int, rng: np.random.Generator) -> dict[int, Ints]:
    """Draw `count` balanced partitions for every node count; none where all of them are sampled already."""
    process, found = sampled.process, {}
    for nodes, rows in sampled.rows.items():
        complete = len(rows) == count_partitions(process.first[nodes], nodes)
        found[nodes] = draw_partitions(process, nodes, 0 if complete else count, rng)
    return found


def draw_partitions(process: DecisionProcess, nodes: int, count: int, rng: np.random.Generator) -> Ints:
    """Draw `count` balanced partitions uniformly from all of them."""
    first = process.first[nodes]
    low, high = band(first, nodes, False)
    furthest = np.searchsorted(first, np.arange(len(first)), side="right") - 1
    return uniform_paths(low, high, furthest, rng.random((count, nodes)))


def _best_candidates(foresight: Foresight, question: tuple[Ints, int]) -> Ints:
    rows, after = question
    targets = [foresight.best_candidates(row, after, NEARBY)[0] for row in rows]
    return np.concatenate([np.empty((0, after + 1), np.int64), *targets])


def _most_frequent(rows: Sequence[Ints], nodes: int) -> Ints:
    distinct, counts = np.unique(np.array(rows, np.int64).reshape(-1, nodes + 1), axis=0, return_counts=True)
    return np.ascontiguousarray(distinct[np.argsort(-counts, kind="stable")])


def _distinct(rows: Ints) -> Ints:
    """Every row once, at its first place."""
    _, places = np.unique(rows, axis=0, return_index=True)
    return np.ascontiguousarray(rows[np.sort(places)])
