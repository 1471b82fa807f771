"""The loop of `two_choices` and parts of others, compiled by numba; imported only if numba is installed."""

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
def scale_high(mixed: np.uint64, count: int) -> np.int64:
    """Map the upper 32 bits to a number below `count`, without a division."""
    return np.int64((mixed >> np.uint64(32)) * np.uint64(count) >> np.uint64(32))


@compiled
def scale_low(mixed: np.uint64, count: int) -> np.int64:
    """Do the same with the lower 32 bits."""
    return np.int64((mixed & np.uint64(0xFFFFFFFF)) * np.uint64(count) >> np.uint64(32))


@compiled
def choose_second(mixed: np.uint64, owner: np.int64, starts: Numbers, m: int) -> np.int64:
    """Return the position of a target of another worker."""
    end: np.int64 = starts[np.uint64(owner + 1)]
    second = end + scale_low(mixed, m - (end - starts[np.uint64(owner)]))
    return second - m if second >= m else second


@compiled
def choose_of_two(mixed: np.uint64, workers: Numbers, starts: Numbers, loads: Numbers) -> np.int64:
    """Return the position of the choice with the less loaded worker, the first one on a tie."""
    first = scale_high(mixed, len(workers))
    owner = workers[first]
    second = choose_second(mixed, owner, starts, len(workers))
    return second if loads[workers[second]] < loads[owner] else first


@compiled
def route_rows(
    hashes: npt.NDArray[np.uint64], seed: np.uint64, arrays: TargetArrays, loads: Numbers, chosen: Numbers
) -> None:
    """Send each row to the less loaded of its two choices, the first one on a tie, and count it.

    Two loops over blocks of rows, each twice as fast as one loop over all: the first depends on no load, so the
    processor computes several rows at a time; the second has no branch, since a choice cannot be predicted.
    """
    targets, workers, starts = arrays
    firsts, seconds, owners, others = np.empty((4, _BLOCK), np.uint64)
    for start in range(0, len(hashes), _BLOCK):
        rows = min(_BLOCK, len(hashes) - start)
        for i in range(rows):
            mixed = mix(hashes[start + i], seed)
            first = scale_high(mixed, len(targets))
            owner = workers[np.uint64(first)]
            second = choose_second(mixed, owner, starts, len(targets))
            firsts[i], seconds[i] = np.uint64(first), np.uint64(second)
            owners[i], others[i] = np.uint64(owner), np.uint64(workers[np.uint64(second)])
        for i in range(rows):
            is_second = np.uint64(loads[others[i]] < loads[owners[i]])
            loads[owners[i] + (others[i] - owners[i]) * is_second] += 1
            chosen[start + i] = targets[firsts[i] + (seconds[i] - firsts[i]) * is_second]


@compiled
def next_least_loaded(loads: Numbers, level: int, worker: int) -> tuple[int, int]:
    """Return the smallest load, and the first worker that has it.

    Called with what it returned before, or with (-1, 0). All workers before that one have more load than the level, and
    loads only grow, so the search continues from there: W steps for every load that the minimum takes, thus O(1) per
    row.
    """
    while loads[np.uint64(worker)] > level:
        worker += 1
        if worker == len(loads):
            worker, level = 0, loads[0]
            for load in loads:
                level = min(level, load)
    return level, worker
