"""Projected migration costs by brute force: all pairs of partitions, value iteration. Slow, obvious, the oracle.

It shares no code with the projections it checks. When in doubt what a projected cost is, read this file.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from mdp.process import DecisionProcess
from migration import Workload

Floats = NDArray[np.float64]
Partition = tuple[int, ...]


def projected_costs(process: DecisionProcess, tolerance: float = 1e-9) -> dict[int, dict[Partition, float]]:
    """C[P] of every balanced partition, by node count.

    C[P] = sum over n' of M[n, n'] * min over P' of cost(P, P') + gamma * C[P'], applied until no C[P] can be off by
    more than `tolerance`: gamma / (1 - gamma) times the last change.
    """
    partitions = all_partitions(process)
    costs = {
        (now, after): migration_costs(partitions[now], partitions[after], process.workload)
        for now in process.nodes
        for after in process.nodes
    }
    values = {nodes: np.zeros(len(partitions[nodes])) for nodes in process.nodes}
    while True:
        before = values
        values = {
            now: np.sum(
                [
                    process.matrix.probability(now, after)
                    * (costs[now, after] + process.gamma * before[after]).min(axis=1)
                    for after in process.nodes
                ],
                axis=0,
            )
            for now in process.nodes
        }
        change = max(float(np.abs(values[nodes] - before[nodes]).max()) for nodes in process.nodes)
        if process.gamma / (1 - process.gamma) * change <= tolerance:
            break
    return {nodes: dict(zip(partitions[nodes], values[nodes].tolist(), strict=True)) for nodes in process.nodes}


def best_target(
    process: DecisionProcess, values: Mapping[int, Mapping[Partition, float]], old: Sequence[int], nodes: int
) -> Partition:
    """The P' with the least cost(P, P') + gamma * C[P']."""
    candidates = list(values[nodes])
    costs = migration_costs([tuple(old)], candidates, process.workload)[0]
    scores = costs + process.gamma * np.array(list(values[nodes].values()))
    return candidates[int(np.argmin(scores))]


def all_partitions(process: DecisionProcess) -> dict[int, list[Partition]]:
    """Every way to cut the tasks into n non-empty intervals that are light enough, by node count."""
    tasks = process.tasks
    return {
        nodes: [
            (0, *inner, tasks)
            for inner in combinations(range(1, tasks), nodes - 1)
            if all(process.first[nodes][stop] <= start for start, stop in pairwise((0, *inner, tasks)))
        ]
        for nodes in process.nodes
    }


def migration_costs(old: Sequence[Partition], new: Sequence[Partition], workload: Workload) -> Floats:
    """cost(P, P') for all pairs: all state, less the heaviest matching of intervals that does not cross.

    The best matching of the first i old and j new intervals leaves out the last old one, or the last new one, or
    matches the two. (That no matching that crosses is heavier is tested against a real assignment problem.)
    """
    before = workload.state_prefix[np.array(old)][:, None, :]
    after = workload.state_prefix[np.array(new)][None, :, :]
    nothing = np.zeros((len(old), len(new)))
    best = [nothing] * after.shape[2]
    for i in range(before.shape[2] - 1):
        above, best = best, [nothing]
        for j in range(after.shape[2] - 1):
            start = np.maximum(before[..., i], after[..., j])
            stop = np.minimum(before[..., i + 1], after[..., j + 1])
            both = above[j] + np.maximum(stop - start, 0.0)
            best.append(np.maximum(both, np.maximum(above[j + 1], best[j])))
    return workload.total_state - best[-1]
