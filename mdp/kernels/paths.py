"""Balanced partitions as paths through layers of boundaries: ranks, and the next path after one.

Layer k holds the positions low[k]..high[k] that boundary k can take. Every position there lies on some path, so a walk
never meets a dead end. `before[k, x]` is the number of ways to go on to the end from the positions of layer k that are
smaller than x; the rank of a path in lexicographic order is a sum of such numbers, one an edge.
"""

import numpy as np
from numpy.typing import NDArray

from migration.optional_compiling import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@compiled
def ways_before(low: Ints, high: Ints, furthest: Ints) -> Ints:
    """`before`, with one column more than positions: before[k, m + 1] counts all of layer k. O(parts * m)."""
    parts, tasks = len(low) - 1, len(furthest) - 1
    before = np.zeros((parts + 1, tasks + 2), np.int64)
    for k in range(parts, -1, -1):
        for x in range(tasks + 1):
            ways = 0
            if low[k] <= x <= high[k]:
                if k == parts:
                    ways = 1
                else:
                    begin = max(x + 1, low[k + 1])
                    end = min(furthest[x], high[k + 1])
                    ways = before[k + 1, end + 1] - before[k + 1, begin]
            before[k, x + 1] = before[k, x] + ways
    return before


@compiled
def rank_of(path: Ints, low: Ints, before: Ints) -> int:
    """Return the number of paths before this one. O(parts)."""
    rank = 0
    for k in range(1, len(path)):
        rank += before[k, path[k]] - before[k, max(path[k - 1] + 1, low[k])]
    return rank


@compiled
def path_of(rank: int, low: Ints, before: Ints, path: Ints) -> None:
    """Write the path of a rank. O(parts + m)."""
    path[0] = 0
    left = rank
    for k in range(1, len(path)):
        x = max(path[k - 1] + 1, low[k])
        left += before[k, x]
        while before[k, x + 1] <= left:
            x += 1
        left -= before[k, x]
        path[k] = x


@compiled
def advance(path: Ints, low: Ints, high: Ints, furthest: Ints) -> int:
    """Make it the next path; the first boundary that changed, or 0 if it was the last path."""
    parts = len(path) - 1
    k = parts - 1
    while k > 0 and path[k] + 1 > min(furthest[path[k - 1]], high[k]):
        k -= 1
    if k > 0:
        path[k] += 1
        for later in range(k + 1, parts + 1):
            path[later] = max(path[later - 1] + 1, low[later])
    return k


@compiled
def edge_starts(low: Ints, high: Ints, first: Ints) -> tuple[Ints, Ints]:
    """Number the edges: those into (k, x) are edge_at[k, x] + a - begin[k, x] for a = begin[k, x]..; and how many.

    The last entry of the flattened `edge_at` is one past all edges.
    """
    parts, tasks = len(low) - 1, len(first) - 1
    edge_at = np.zeros((parts + 1, tasks + 2), np.int64)
    begin = np.zeros((parts + 1, tasks + 2), np.int64)
    count = 0
    for k in range(1, parts + 1):
        for x in range(tasks + 1):
            edge_at[k, x] = count
            if low[k] <= x <= high[k]:
                begin[k, x] = max(first[x], low[k - 1])
                count += max(min(x - 1, high[k - 1]) - begin[k, x] + 1, 0)
        edge_at[k, tasks + 1] = count
    return edge_at, begin


@compiled
def edge_ranks(low: Ints, high: Ints, before: Ints, edge_at: Ints, begin: Ints) -> Ints:
    """Return the amount that every edge adds to the rank of the paths that use it."""
    parts, tasks = len(low) - 1, before.shape[1] - 2
    ranks = np.empty(edge_at[parts, tasks + 1], np.int64)
    for k in range(1, parts + 1):
        for x in range(low[k], high[k] + 1):
            for a in range(begin[k, x], min(x - 1, high[k - 1]) + 1):
                ranks[edge_at[k, x] + a - begin[k, x]] = before[k, x] - before[k, max(a + 1, low[k])]
    return ranks
