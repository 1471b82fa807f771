"""Arrays with room to grow."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_LEAST = 64  # entries; a job has many tasks, and most of them may be small


def grown(array: NDArray[Any], used: int, needed: int, fill: Any = None) -> NDArray[Any]:
    """An array with the first `used` entries of this one and room for at least `needed`, doubled where that is more.

    So adding entries one by one costs O(1) each. The old memory stays as it is for whoever still looks at it.
    """
    capacity = max(needed, 2 * len(array), _LEAST)
    if fill is None:
        larger = np.empty(capacity, array.dtype)
    elif not np.any(fill):
        larger = np.zeros(capacity, array.dtype)  # pages that are never touched take no memory
    else:
        larger = np.full(capacity, fill, array.dtype)
    larger[:used] = array[:used]
    return larger


def expected_rows(count: int, new: int, done: int, left: int) -> int:
    """How many rows to make room for, when `done` keys of a batch gave `new` rows, and `left` keys are to come.

    If the rest is like the beginning; but at least twice and at most eight times what there is, since a batch that
    begins with different keys may go on with the same ones.
    """
    return min(max(count + left * new // max(done, 1), 2 * count, _LEAST), max(8 * count, _LEAST))


def slots_for(rows: int) -> NDArray[np.uint64]:
    """An empty index with room for that many rows."""
    size = 2 * _LEAST
    while room_in(size) < rows:
        size *= 2
    return np.zeros(size, np.uint64)


def room_in(slots: int) -> int:
    """How many rows an index may hold: beyond two thirds, probing takes long."""
    return slots * 2 // 3


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.setflags(write=False)
    return view
