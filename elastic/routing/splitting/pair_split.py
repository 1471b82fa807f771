"""Two choices for a whole batch at once, with NumPy: how many rows of each pair of workers go to which of the two.

Rows with the same two workers are interchangeable, so it suffices to count them and to level the loads of the two
workers, pair by pair, until nothing moves. Unlike the loop over rows this finds the best division of a batch, and costs
35 to 60 ns per row without a compiler. Within a batch, rows of a pair go to one worker first and then to the other.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from elastic.routing.splitting.space_saving import SpaceSaving
from elastic.routing.splitting.targets import Hashes, Numbers, Targets

CHUNK = 1 << 17  # rows at a time; more would leave the processor's cache, and fewer level too often
_FILTER_BITS = 16


def split_pairs(hashes: Hashes, targets: Targets, loads: Numbers, chunk: int = CHUNK) -> Numbers:
    """Return the target of each row, one of its two choices, and add the rows to the loads of workers."""
    chosen = np.empty(len(hashes), np.int64)
    for start in range(0, len(hashes), chunk):
        chosen[start : start + chunk] = _split_chunk(hashes[start : start + chunk], targets, loads)
    return chosen


def split_with_heads(
    hashes: Hashes, targets: Targets, loads: Numbers, sketch: SpaceSaving, head_share: float, chunk: int = CHUNK
) -> Numbers:
    """Do the same, except that rows of keys with at least `head_share` of all rows go wherever load is least."""
    chosen = np.empty(len(hashes), np.int64)
    for start in range(0, len(hashes), chunk):
        some = hashes[start : start + chunk]
        sketch.add_batch(some)
        is_head = is_among_few(some, sketch.heaviest(head_share * sketch.rows).hashes)
        part = chosen[start : start + chunk]
        part[~is_head] = _split_chunk(some[~is_head], targets, loads)
        amounts = fill_up(loads, int(np.count_nonzero(is_head)))
        loads += amounts
        part[is_head] = targets.of_worker(some[is_head], np.repeat(np.arange(len(loads)), amounts))
    return chosen


def _split_chunk(hashes: Hashes, targets: Targets, loads: Numbers) -> Numbers:
    first, second = targets.pairs(hashes)
    owner, other = targets.arrays.workers[first], targets.arrays.workers[second]
    pairs = np.minimum(owner, other) * targets.workers + np.maximum(owner, other)
    found = np.bincount(pairs, minlength=targets.workers**2)
    to_low = level_pairs(found.reshape(targets.workers, targets.workers), loads).ravel()
    used = np.flatnonzero(found)
    workers = np.stack(np.divmod(used, targets.workers), axis=1)
    amounts = np.stack([to_low[used], (found - to_low)[used]], axis=1)
    chosen = np.empty_like(owner)
    order = np.argsort(pairs.astype(np.min_scalar_type(targets.workers**2 - 1)), kind="stable")
    chosen[order] = np.repeat(workers.ravel(), amounts.ravel())
    return targets.arrays.targets[np.where(chosen == owner, first, second)]


def level_pairs(found: Numbers, loads: Numbers) -> Numbers:
    """Return how many of the `found[a, b]` rows of workers a <= b go to a, and add all rows to the loads.

    Coordinate descent on the sum of squared loads: each pair in turn levels its two loads as far as its rows allow.
    Rounds are those of a tournament, so that the pairs of a round have no worker in common and are levelled at once. It
    ends when a sweep over all pairs lowers the largest load by no more than one row.
    """
    lows, highs = list_rounds(len(loads))
    rows = found[lows, highs]
    to_low = rows // 2
    loads += found.diagonal()
    np.add.at(loads, lows, to_low)
    np.add.at(loads, highs, rows - to_low)
    previous = loads.max() + 2
    while loads.max() < previous - 1:
        previous = loads.max()
        for low, high, count, flow in zip(lows, highs, rows, to_low, strict=True):
            load_low, load_high = loads[low], loads[high]
            shift = load_high - load_low >> 1
            np.minimum(shift, count - flow, out=shift)
            np.maximum(shift, -flow, out=shift)
            flow += shift
            loads[low] = load_low + shift
            loads[high] = load_high - shift
    divided = np.zeros_like(found)
    divided[lows, highs] = to_low
    return divided


@lru_cache(maxsize=16)
def list_rounds(workers: int) -> tuple[Numbers, Numbers]:
    """Return the rounds of a tournament as arrays of the lower and of the higher workers: every pair meets once.

    By the circle method. An odd number of workers has a round more, in each of which one worker rests.
    """
    circle = workers - 1 + workers % 2
    rounds, places = np.ogrid[:circle, : circle // 2]
    one, other = (rounds + places + 1) % circle, (rounds - places - 1) % circle
    if workers % 2 == 0:
        one, other = np.hstack([rounds, one]), np.hstack([np.full_like(rounds, circle), other])
    return np.minimum(one, other), np.maximum(one, other)


def fill_up(loads: Numbers, rows: int) -> Numbers:
    """Return how many of the rows each worker gets if each goes to the least loaded one, the first of equals."""
    order = np.argsort(loads, kind="stable")
    ascending = loads[order]
    # Raising the i + 1 lowest loads to that of the next one takes needed[i] rows.
    needed = np.arange(1, len(loads)) * np.diff(ascending)
    workers = 1 + int(np.searchsorted(np.cumsum(needed), rows))
    raised = order[:workers]
    level, left = divmod(rows + int(loads[raised].sum()), workers)
    amounts = np.zeros_like(loads)
    amounts[raised] = level - loads[raised]
    amounts[np.sort(raised)[:left]] += 1
    return amounts


def is_among_few(hashes: Hashes, few: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Return for each hash whether it is one of a few; most others are excluded by their upper bits alone."""
    words = hashes.view(np.uint64)
    shift = np.uint64(64 - _FILTER_BITS)
    passes = np.zeros(1 << _FILTER_BITS, np.bool_)
    passes[few >> shift] = True
    is_found: npt.NDArray[np.bool_] = passes[words >> shift]
    rows = np.flatnonzero(is_found)
    is_found[rows] = np.isin(words[rows], few)
    return is_found
