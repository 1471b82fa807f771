"""Fit values of partitions by a sum over the edges of their paths, and bound the error of that sum."""

import numpy as np

from mdp.kernels.paths import Floats, Ints, advance, path_of
from migration.optional_compiling import compiled


@compiled
def normal_equations(
    values: Floats, stride: int, low: Ints, before: Ints, edge_at: Ints, begin: Ints
) -> tuple[Floats, Floats]:
    """Of least squares over every `stride`-th partition: how often two edges meet, and the values that meet an edge."""
    parts = len(low) - 1
    size = edge_at[parts, before.shape[1] - 1]
    meetings = np.zeros((size, size))
    sums = np.zeros(size)
    path = np.empty(parts + 1, np.int64)
    edges = np.empty(parts, np.int64)
    for rank in range(0, len(values), stride):
        path_of(rank, low, before, path)
        for k in range(1, parts + 1):
            edges[k - 1] = edge_at[k, path[k]] + path[k - 1] - begin[k, path[k]]
        for one in edges:
            sums[one] += values[rank]
            for other in edges:
                meetings[one, other] += 1.0
    return meetings, sums


@compiled
def worst_errors(
    values: Floats, edge_value: Floats, low: Ints, high: Ints, furthest: Ints, edge_at: Ints, begin: Ints
) -> Floats:
    """For every edge the most by which the sum is above the value of a partition with the edge. O(partitions * n)."""
    parts = len(low) - 1
    worst = np.full(len(edge_value), -np.inf)
    path = np.zeros(parts + 1, np.int64)
    for k in range(1, parts + 1):
        path[k] = max(path[k - 1] + 1, low[k])
    edges = np.empty(parts + 1, np.int64)
    sums = np.zeros(parts + 1)
    changed = 1
    for rank in range(len(values)):
        for k in range(changed, parts + 1):
            edges[k] = edge_at[k, path[k]] + path[k - 1] - begin[k, path[k]]
            sums[k] = sums[k - 1] + edge_value[edges[k]]
        error = sums[parts] - values[rank]
        for k in range(1, parts + 1):
            worst[edges[k]] = max(worst[edges[k]], error)
        changed = advance(path, low, high, furthest)
    return worst


@compiled
def slack_to_the_left(slack: Floats, low: Ints, high: Ints, edge_at: Ints, begin: Ints) -> Floats:
    """For every (k, x) the most that the smallest slack on a path from the left to there can be."""
    parts, tasks = len(low) - 1, edge_at.shape[1] - 2
    left = np.full((parts + 1, tasks + 1), -np.inf)
    left[0, 0] = np.inf
    for k in range(1, parts + 1):
        for x in range(low[k], high[k] + 1):
            for a in range(begin[k, x], min(x - 1, high[k - 1]) + 1):
                left[k, x] = max(left[k, x], min(left[k - 1, a], slack[edge_at[k, x] + a - begin[k, x]]))
    return left


@compiled
def path_sums(
    edge_value: Floats, count: int, low: Ints, high: Ints, furthest: Ints, edge_at: Ints, begin: Ints
) -> Floats:
    """The sum over edges for every partition, in order of their ranks. O(partitions)."""
    parts = len(low) - 1
    found = np.empty(count)
    path = np.zeros(parts + 1, np.int64)
    for k in range(1, parts + 1):
        path[k] = max(path[k - 1] + 1, low[k])
    sums = np.zeros(parts + 1)
    changed = 1
    for rank in range(count):
        for k in range(changed, parts + 1):
            sums[k] = sums[k - 1] + edge_value[edge_at[k, path[k]] + path[k - 1] - begin[k, path[k]]]
        found[rank] = sums[parts]
        changed = advance(path, low, high, furthest)
    return found
