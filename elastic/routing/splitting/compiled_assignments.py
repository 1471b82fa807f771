"""The loops of `key_assignments`, compiled by numba; imported only if numba is installed."""

import numpy as np
import numpy.typing as npt

from elastic.routing.splitting.compiled_choices import choose_of_two, mix, next_least_loaded, scale_low
from elastic.routing.splitting.targets import Numbers, TargetArrays
from migration.compiling import compiled


@compiled
def _find(key_hash: np.uint64, mixed: np.uint64, slots: npt.NDArray[np.uint64], positions: Numbers) -> np.int64:
    """Return the slot of a key, or the empty one where it belongs; there is always an empty slot."""
    mask = len(slots) - 1
    slot = np.int64(mixed & np.uint64(mask))
    while positions[slot] >= 0 and slots[slot] != key_hash:
        slot = (slot + 1) & mask
    return slot


@compiled
def enter_keys(
    hashes: npt.NDArray[np.uint64],
    entered: Numbers,
    seed: np.uint64,
    slots: npt.NDArray[np.uint64],
    positions: Numbers,
) -> None:
    """Enter keys with their positions into a hash table that has room for them."""
    for key in range(len(hashes)):
        slot = _find(hashes[key], mix(hashes[key], seed), slots, positions)
        slots[slot], positions[slot] = hashes[key], entered[key]


@compiled
def assign_rows(
    hashes: npt.NDArray[np.uint64],
    start: int,
    room: int,
    is_greedy: bool,
    seed: np.uint64,
    arrays: TargetArrays,
    loads: Numbers,
    slots: npt.NDArray[np.uint64],
    positions: Numbers,
    chosen: Numbers,
) -> tuple[int, int]:
    """Send each row from `start` on to the target of its key until there are more than `room` new keys.

    A new key gets the less loaded of its two choices, or the least loaded of all workers. Returns the first row that
    was not sent, and the number of new keys.
    """
    targets, workers, starts = arrays
    used, level, worker = 0, -1, 0
    for row in range(start, len(hashes)):
        mixed = mix(hashes[row], seed)
        slot = _find(hashes[row], mixed, slots, positions)
        if positions[slot] < 0:
            if used == room:
                return row, used
            used += 1
            if is_greedy:
                level, worker = next_least_loaded(loads, level, worker)
                position = starts[worker] + scale_low(mixed, starts[worker + 1] - starts[worker])
            else:
                position = choose_of_two(mixed, workers, starts, loads)
            slots[slot], positions[slot] = hashes[row], position
        position = positions[slot]
        loads[workers[position]] += 1
        chosen[row] = targets[position]
    return len(hashes), used


@compiled
def assign_in_order(counts: Numbers, workers: int) -> Numbers:
    """Give each key, with its number of rows, to the worker with the fewest rows so far."""
    loads = np.zeros(workers, np.int64)
    chosen = np.empty(len(counts), np.int64)
    for key in range(len(counts)):
        worker = np.argmin(loads)
        loads[worker] += counts[key]
        chosen[key] = worker
    return chosen
