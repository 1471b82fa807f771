"""The loops of `space_saving` and `head_choices`, compiled by numba; imported only if numba is installed."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from elastic.routing.splitting.compiled_choices import choose_of_two, mix, next_least_loaded, scale_high, scale_low
from elastic.routing.splitting.targets import Numbers, TargetArrays
from migration.compiling import compiled

# Tasks are chosen by the low bits of a hash, so those may be the same for many keys of a sender.
_SHIFT = np.uint64(20)
USED, ROWS, LEVEL, CURSOR = range(4)  # places in `SketchArrays.state`


class SketchArrays(NamedTuple):
    """A `SpaceSaving` sketch: counters, a hash table with linear probing over them, and four numbers.

    `index` has the number of a counter plus one, or zero. LEVEL and CURSOR are where the search for the smallest counter
    goes on: it is at least LEVEL, and more before CURSOR.
    """

    hashes: npt.NDArray[np.uint64]
    counts: Numbers
    errors: Numbers
    index: npt.NDArray[np.int32]
    state: Numbers


@compiled
def _find(key_hash: np.uint64, hashes: npt.NDArray[np.uint64], index: npt.NDArray[np.int32]) -> int:
    """Return the slot of a hash, or the empty one where it belongs."""
    mask = len(index) - 1
    slot = np.int64(key_hash >> _SHIFT & np.uint64(mask))
    while index[slot] != 0 and hashes[index[slot] - 1] != key_hash:
        slot = (slot + 1) & mask
    return slot


@compiled
def _remove(slot: int, hashes: npt.NDArray[np.uint64], index: npt.NDArray[np.int32]) -> None:
    """Empty a slot, and move up the entries behind it that would no longer be found."""
    mask = len(index) - 1
    probe = (slot + 1) & mask
    while index[probe] != 0:
        home = np.int64(hashes[index[probe] - 1] >> _SHIFT & np.uint64(mask))
        if ((probe - home) & mask) >= ((probe - slot) & mask):
            index[slot] = index[probe]
            slot = probe
        probe = (probe + 1) & mask
    index[slot] = 0


@compiled
def count_row(key_hash: np.uint64, sketch: SketchArrays) -> int:
    """Count one row, and return the counter of its key. O(1) on average: see `next_least_loaded`."""
    sketch.state[ROWS] += 1
    slot = _find(key_hash, sketch.hashes, sketch.index)
    counter = sketch.index[slot] - 1
    if counter < 0:
        if sketch.state[USED] < len(sketch.hashes):
            counter = sketch.state[USED]
            sketch.state[USED] += 1
        else:
            level, counter = next_least_loaded(sketch.counts, sketch.state[LEVEL], sketch.state[CURSOR])
            sketch.state[LEVEL], sketch.state[CURSOR] = level, counter
            sketch.errors[counter] = sketch.counts[counter]
            _remove(_find(sketch.hashes[counter], sketch.hashes, sketch.index), sketch.hashes, sketch.index)
            slot = _find(key_hash, sketch.hashes, sketch.index)
        sketch.hashes[counter] = key_hash
        sketch.index[slot] = counter + 1
    sketch.counts[counter] += 1
    return counter


@compiled
def count_rows(hashes: npt.NDArray[np.uint64], sketch: SketchArrays) -> None:
    for row in range(len(hashes)):
        count_row(hashes[row], sketch)


@compiled
def fill_index(sketch: SketchArrays) -> None:
    """Enter all counters in use into an empty hash table."""
    for counter in range(sketch.state[USED]):
        slot = _find(sketch.hashes[counter], sketch.hashes, sketch.index)
        sketch.index[slot] = counter + 1


@compiled
def choose_of_many(
    key_hash: np.uint64, choices: int, seed: np.uint64, arrays: TargetArrays, loads: Numbers, position: int
) -> int:
    """Return the position of the least loaded of `choices` choices, given that of the first two; the earliest on a tie."""
    for number in range(2, choices):
        other = scale_high(mix(key_hash, seed + np.uint64(number)), len(arrays.targets))
        if loads[arrays.workers[other]] < loads[arrays.workers[position]]:
            position = other
    return position


@compiled
def route_rows(
    hashes: npt.NDArray[np.uint64],
    head_share: float,
    choices: int,
    seed: np.uint64,
    arrays: TargetArrays,
    loads: Numbers,
    sketch: SketchArrays,
    chosen: Numbers,
) -> None:
    """Send rows of the head to the least loaded of `choices` choices (0: of all workers), others to one of two."""
    level, worker = -1, 0
    for row in range(len(hashes)):
        counter = count_row(hashes[row], sketch)
        is_head = sketch.counts[counter] >= head_share * sketch.state[ROWS]
        mixed = mix(hashes[row], seed)
        if is_head and choices == 0:
            level, worker = next_least_loaded(loads, level, worker)
            first = arrays.starts[worker]
            position = first + scale_low(mixed, arrays.starts[worker + 1] - first)
        else:
            position = choose_of_two(mixed, arrays, loads)
            if is_head:
                position = choose_of_many(hashes[row], choices, seed, arrays, loads, position)
        loads[arrays.workers[position]] += 1
        chosen[row] = arrays.targets[position]
