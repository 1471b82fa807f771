"""The loops of `space_saving` and `head_choices`, compiled by numba; imported only if numba is installed."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from elastic.routing.splitting.compiled_choices import choose_of_two, mix, next_least_loaded, scale_high, scale_low
from elastic.routing.splitting.targets import Numbers, TargetArrays
from migration.compiling import compiled

# Tasks are chosen by the low bits of a hash, so those may be the same for many keys of a sender.
_SHIFT = np.uint64(20)
_BLOCK = 256  # rows that are counted, and then routed


class SketchArrays(NamedTuple):
    """A `SpaceSaving` sketch: counters, a hash table with linear probing over them, and four numbers.

    `slots` has the number of a counter plus one, or zero. `state` has the counters in use, the rows, and where the
    search for the smallest counter continues: its count is at least `state[2]`, and it is not before counter
    `state[3]`.
    """

    hashes: npt.NDArray[np.uint64]
    counts: Numbers
    errors: Numbers
    slots: npt.NDArray[np.int32]
    state: Numbers


@compiled
def _find(key_hash: np.uint64, hashes: npt.NDArray[np.uint64], slots: npt.NDArray[np.int32]) -> np.uint64:
    """Return the slot of a hash, or the empty one where it belongs."""
    mask = np.uint64(len(slots) - 1)
    slot = key_hash >> _SHIFT & mask
    while slots[slot] != 0 and hashes[np.uint64(slots[slot] - 1)] != key_hash:
        slot = slot + np.uint64(1) & mask
    return slot


@compiled
def _remove(slot: np.uint64, hashes: npt.NDArray[np.uint64], slots: npt.NDArray[np.int32]) -> None:
    """Empty a slot, and move up the entries behind it that would no longer be found."""
    mask = np.uint64(len(slots) - 1)
    probe = slot + np.uint64(1) & mask
    while slots[probe] != 0:
        home = hashes[np.uint64(slots[probe] - 1)] >> _SHIFT & mask
        if (probe - home & mask) >= (probe - slot & mask):
            slots[slot] = slots[probe]
            slot = probe
        probe = probe + np.uint64(1) & mask
    slots[slot] = 0


@compiled
def count_rows(rows: npt.NDArray[np.uint64], sketch: SketchArrays, row_counts: Numbers) -> None:
    """Count rows by their hashes, and fill `row_counts` with the count of each row's key so far.

    O(1) per row on average: the search for the smallest counter continues as in `next_least_loaded`.
    """
    hashes, counts, errors, slots, state = sketch
    used, seen, level, smallest = state
    for row in range(len(rows)):
        slot = _find(rows[row], hashes, slots)
        counter = np.int64(slots[slot]) - 1
        if counter < 0:
            if used < len(hashes):
                counter = used
                used += 1
            else:
                level, smallest = next_least_loaded(counts, level, smallest)
                counter = np.int64(smallest)
                errors[counter] = counts[counter]
                _remove(_find(hashes[counter], hashes, slots), hashes, slots)
                slot = _find(rows[row], hashes, slots)
            hashes[counter], slots[slot] = rows[row], counter + 1
        counts[counter] += 1
        row_counts[row] = counts[counter]
    state[0], state[1], state[2], state[3] = used, seen + len(rows), level, smallest


@compiled
def fill_slots(sketch: SketchArrays) -> None:
    """Enter all counters in use into an empty hash table."""
    for counter in range(sketch.state[0]):
        sketch.slots[_find(sketch.hashes[counter], sketch.hashes, sketch.slots)] = counter + 1


@compiled
def _choose_of_many(
    key_hash: np.uint64, choices: int, seed: np.uint64, workers: Numbers, loads: Numbers, position: np.int64
) -> np.int64:
    """Return the position of the least loaded of `choices` choices, the earliest on a tie, given that of two."""
    for number in range(2, choices):
        other = scale_high(mix(key_hash, seed + np.uint64(number)), len(workers))
        if loads[workers[other]] < loads[workers[position]]:
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
    targets, workers, starts = arrays
    counts = np.empty(_BLOCK, np.int64)
    level, worker = -1, 0
    for start in range(0, len(hashes), _BLOCK):
        block = hashes[start : start + _BLOCK]
        seen = sketch.state[1]
        count_rows(block, sketch, counts)
        for i in range(len(block)):
            mixed = mix(block[i], seed)
            is_head = counts[i] >= head_share * (seen + i + 1)
            if is_head and choices == 0:
                level, worker = next_least_loaded(loads, level, worker)
                position = starts[worker] + scale_low(mixed, starts[worker + 1] - starts[worker])
            else:
                position = choose_of_two(mixed, workers, starts, loads)
                if is_head:
                    position = _choose_of_many(block[i], choices, seed, workers, loads, position)
            loads[workers[position]] += 1
            chosen[start + i] = targets[position]
