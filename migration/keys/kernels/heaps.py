"""Heaps of keys in two arrays, `values` and `rows`; the first key is at 0.

A key comes before another if its value is higher, then if its work is higher, then if its row is lower.
"""

import math

import numpy as np
from numpy.typing import NDArray

from migration.keys.loads import Floats, Nodes
from migration.optional_compiling import compiled

Rows = NDArray[np.int32]
Places = NDArray[np.int64]
Flags = NDArray[np.bool_]


@compiled
def comes_before(value: float, row: int, other_value: float, other_row: int, work: Floats) -> bool:
    if value != other_value:
        return value > other_value
    if work[row] != work[other_row]:
        return bool(work[row] > work[other_row])
    return row < other_row


@compiled
def sift_down(values: Floats, rows: Rows, count: int, place: int, work: Floats) -> None:
    """Move the key at `place` down to where it belongs among `count` keys. O(log count)."""
    value, row = values[place], rows[place]
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        if child + 1 < count and comes_before(values[child + 1], rows[child + 1], values[child], rows[child], work):
            child += 1
        if not comes_before(values[child], rows[child], value, row, work):
            break
        values[place], rows[place] = values[child], rows[child]
        place = child
    values[place], rows[place] = value, row


@compiled
def heapify(values: Floats, rows: Rows, count: int, work: Floats) -> None:
    """O(count)."""
    for place in range(count // 2 - 1, -1, -1):
        sift_down(values, rows, count, place, work)


@compiled
def remove_first(values: Floats, rows: Rows, count: int, work: Floats) -> None:
    """Remove the first of `count` keys; `count - 1` remain. O(log count)."""
    values[0], rows[0] = values[count - 1], rows[count - 1]
    sift_down(values, rows, count - 1, 0, work)


@compiled
def push(values: Floats, rows: Rows, count: int, value: float, row: int, work: Floats) -> None:
    """Add a key to a heap of `count` keys. O(log count)."""
    place = count
    while place > 0:
        parent = (place - 1) // 2
        if not comes_before(value, row, values[parent], rows[parent], work):
            break
        values[place], rows[place] = values[parent], rows[parent]
        place = parent
    values[place], rows[place] = value, row


@compiled
def priority(work: float, size: float, beta: float) -> float:
    """gamma(k) = c^beta / S: infinite for a key without state, which moves for nothing; 0 for a key without work."""
    if work == 0:
        return 0.0
    if size == 0:
        return np.inf
    # The usual powers without the power function, which takes longer than everything else about a row.
    if beta == 1.5:
        return work * math.sqrt(work) / size
    if beta == 1:
        return work / size
    return float(work**beta / size)


@compiled
def group_rows(destination: Nodes, chosen: Flags, ends: Places, work: Floats, taken: Flags, rows: Rows) -> None:
    """Append the stationary rows of chosen nodes to their groups: that of node d goes on at `rows[ends[d]]`.

    Rows without work are left out, because moving them relieves no node.
    """
    for row in range(len(destination)):
        node = destination[row]
        if chosen[node] and work[row] > 0 and not taken[row]:
            rows[ends[node]] = row
            ends[node] += 1


@compiled
def rank_rows(
    group: Rows, taken: Flags, work: Floats, size: Floats, by_work: bool, beta: float, values: Floats, rows: Rows
) -> int:
    """Make a heap, highest work or priority first, of the stationary rows of a group; return its length."""
    count = 0
    for row in group:
        if not taken[row]:
            values[count] = work[row] if by_work else priority(work[row], size[row], beta)
            rows[count] = row
            count += 1
    heapify(values, rows, count, work)
    return count
