"""The loops of `two_choices` and `key_assignments`, compiled by numba; imported only if numba is installed."""

import numpy as np
import numpy.typing as npt

from elastic.routing.splitting.targets import Numbers, TargetArrays
from elastic.routing.xxh64 import PRIME_1, PRIME_2, PRIME_3
from migration.compiling import compiled

_BLOCK = 256  # rows whose choices stay in the processor's nearest cache


@compiled
def mix(key_hash: np.uint64, seed: np.uint64) -> np.uint64:
    mixed = key_hash ^ (seed * PRIME_1)
    mixed ^= mixed >> np.uint64(33)
    mixed *= PRIME_2
    mixed ^= mixed >> np.uint64(29)
    mixed *= PRIME_3
    return mixed ^ (mixed >> np.uint64(32))


@compiled
def scale_high(mixed: np.uint64, count: int) -> int:
    """Map the upper 32 bits to a number below `count`, without a division."""
    return np.int64((mixed >> np.uint64(32)) * np.uint64(count) >> np.uint64(32))


@compiled
def scale_low(mixed: np.uint64, count: int) -> int:
    """Do the same with the lower 32 bits."""
    return np.int64((mixed & np.uint64(0xFFFFFFFF)) * np.uint64(count) >> np.uint64(32))


@compiled
def choose_second(mixed: np.uint64, owner: int, starts: Numbers, m: int) -> int:
    """Return the position of a target of another worker."""
    end = starts[np.uint64(owner + 1)]
    second = end + scale_low(mixed, m - (end - starts[np.uint64(owner)]))
    return second - m if second >= m else second


@compiled
def choose_of_two(mixed: np.uint64, arrays: TargetArrays, loads: Numbers) -> int:
    """Return the position of the choice with the less loaded worker, the first one on a tie."""
    m = len(arrays.targets)
    first = scale_high(mixed, m)
    owner = arrays.workers[first]
    second = choose_second(mixed, owner, arrays.starts, m)
    return second if loads[arrays.workers[second]] < loads[owner] else first


@compiled
def route_rows(
    hashes: npt.NDArray[np.uint64], seed: np.uint64, arrays: TargetArrays, loads: Numbers, chosen: Numbers
) -> None:
    """Send each row to the less loaded of its two choices, the first one on a tie, and count it.

    Two loops over blocks of rows, each twice as fast as one loop over all: the first depends on no load, so the
    processor computes several rows at a time; the second has no branch, since a choice cannot be predicted.
    """
    firsts, seconds, owners, others = np.empty((4, _BLOCK), np.uint64)
    for start in range(0, len(hashes), _BLOCK):
        rows = min(_BLOCK, len(hashes) - start)
        for i in range(rows):
            mixed = mix(hashes[start + i], seed)
            first = scale_high(mixed, len(arrays.targets))
            owner = arrays.workers[np.uint64(first)]
            second = choose_second(mixed, owner, arrays.starts, len(arrays.targets))
            firsts[i], seconds[i] = np.uint64(first), np.uint64(second)
            owners[i], others[i] = np.uint64(owner), np.uint64(arrays.workers[np.uint64(second)])
        for i in range(rows):
            is_second = np.uint64(loads[others[i]] < loads[owners[i]])
            loads[owners[i] + (others[i] - owners[i]) * is_second] += 1
            chosen[start + i] = arrays.targets[firsts[i] + (seconds[i] - firsts[i]) * is_second]


@compiled
def next_least_loaded(loads: Numbers, level: int, worker: int) -> tuple[int, int]:
    """Return the smallest load, and the first worker that has it.

    Called with what it returned before, or with (-1, 0). All workers before that one have more load than the level, and
    loads only grow, so the search goes on from there: W steps for every load that the minimum takes, thus O(1) per row.
    """
    while loads[worker] > level:
        worker += 1
        if worker == len(loads):
            worker, level = 0, loads.min()
    return level, worker


@compiled
def _find(key_hash: np.uint64, mixed: np.uint64, slots: npt.NDArray[np.uint64], positions: Numbers) -> int:
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

    A new key gets the less loaded of its two choices, or the least loaded of all workers. Returns the first row that was
    not sent, and the number of new keys.
    """
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
                first = arrays.starts[worker]
                position = first + scale_low(mixed, arrays.starts[worker + 1] - first)
            else:
                position = choose_of_two(mixed, arrays, loads)
            slots[slot], positions[slot] = hashes[row], position
        position = positions[slot]
        loads[arrays.workers[position]] += 1
        chosen[row] = arrays.targets[position]
    return len(hashes), used


@compiled
def assign_in_order(counts: Numbers, workers: int) -> Numbers:
    """Give each key, with so many rows, to the worker with the fewest rows so far."""
    loads = np.zeros(workers, np.int64)
    chosen = np.empty(len(counts), np.int64)
    for key in range(len(counts)):
        worker = np.argmin(loads)
        loads[worker] += counts[key]
        chosen[key] = worker
    return chosen
