"""Count and enumerate balanced partitions."""

from itertools import accumulate

import numpy as np

from migration.kernels import Ints
from migration.kernels.shared import band


def count_partitions(first: Ints, parts: int) -> int:
    """Count the partitions into `parts` non-empty intervals that are light enough. Exact, O(band) additions."""
    low, high = band(first, parts, False)
    if (low > high).any():
        return 0
    starts = first.tolist()
    paths, bottom = [1], 0
    for k in range(1, parts + 1):
        sums = [0, *accumulate(paths)]
        top = bottom + len(paths)
        ways = []
        for x in range(int(low[k]), int(high[k]) + 1):
            left, right = max(starts[x], bottom), min(x, top)
            ways.append(sums[right - bottom] - sums[left - bottom] if left < right else 0)
        paths, bottom = ways, int(low[k])
    return paths[-1]


def all_partitions(first: Ints, parts: int) -> Ints:
    """Every such partition as a row of parts + 1 boundaries, in lexicographic order. Count first: rows are memory."""
    low, high = band(first, parts, False)
    if (low > high).any():
        return np.empty((0, parts + 1), np.int64)
    furthest = np.searchsorted(first, np.arange(len(first)), side="right") - 1
    rows = np.zeros((1, 1), np.int64)
    for k in range(1, parts + 1):
        last = rows[:, -1]
        begin = np.maximum(last + 1, low[k])
        choices = np.maximum(np.minimum(furthest[last], high[k]) - begin + 1, 0)
        parent = np.repeat(np.arange(len(rows)), choices)
        nth = np.arange(len(parent)) - np.repeat(np.cumsum(choices) - choices, choices)
        rows = np.column_stack((rows[parent], begin[parent] + nth))
    return rows
