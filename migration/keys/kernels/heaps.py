"""Heaps of keys in two arrays, `values` and `rows`; the first key is at 0.

A key comes before another if its value is higher, then if its work is higher, then if its row is lower.
"""

import numpy as np
from numpy.typing import NDArray

from migration.keys.loads import Floats
from migration.optional_compiling import compiled

Rows = NDArray[np.int32]


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
