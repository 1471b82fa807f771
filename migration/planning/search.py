"""Search for the best balanced partition, and rank the next best ones."""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import count
from typing import NamedTuple

import numpy as np

from migration.kernels import Floats, Ints, best_gains, partition


def best_partition(
    work: Floats,
    gain: Floats,
    first: Ints,
    old: Ints,
    parts: int,
    allow_idle: bool = False,
    boundary_cost: Floats | None = None,
    interval_cost: Floats | None = None,
) -> Ints | None:
    """The boundaries that maximise the gain that stays less the costs of boundaries and intervals, or None.

    A dynamic program over (intervals used, boundary, one bit); see `migration.kernels.shared` for the state and
    `migration.kernels.compiled` for how sliding windows make it O(band * (1 + old intervals per window)).
    """
    boundary_cost, interval_cost = _costs(len(first) - 1, boundary_cost, interval_cost)
    boundaries = partition(work, gain, first, old, parts, allow_idle, boundary_cost, interval_cost)
    return boundaries if len(boundaries) else None


class RankedPartition(NamedTuple):
    """A partition and its gain: the state that stays, less what its boundaries and intervals cost."""

    gain: float
    boundaries: tuple[int, ...]


class _Prefix(NamedTuple):
    """Boundaries chosen so far; `free` and `kept` are gains as in the dynamic program. Ordered by bound in a heap."""

    negated_bound: float
    tiebreak: int
    boundaries: tuple[int, ...]
    free: float
    kept: float


def rank_partitions(
    gain: Floats,
    first: Ints,
    old: Ints,
    parts: int,
    boundary_cost: Floats | None = None,
    interval_cost: Floats | None = None,
) -> Iterator[RankedPartition]:
    """Yield balanced partitions in order of falling gain, each once.

    Best-first search over boundaries from left to right. The bound is exact: the same dynamic program run from the
    right tells the most that any completion gains, so no prefix is opened that does not lead to an answer in turn.
    """
    tasks = len(first) - 1
    boundary_cost, interval_cost = _costs(tasks, boundary_cost, interval_cost)
    furthest = np.searchsorted(first, np.arange(tasks + 1), side="right") - 1
    low, high, offset, free, kept = best_gains(
        _read_only(gain[-1] - gain[::-1]),
        np.ascontiguousarray(tasks - furthest[::-1]),
        np.ascontiguousarray(tasks - old[::-1]),
        parts,
        False,
        _read_only(boundary_cost[::-1]),
        _read_only(interval_cost.T[::-1, ::-1]),
    )
    if (low > high).any():
        return
    steps, tiebreak = _Steps(gain, old, interval_cost), count()

    def prefix(boundaries: tuple[int, ...], free_gain: float, kept_gain: float) -> _Prefix:
        layer, position = parts - len(boundaries) + 1, tasks - boundaries[-1]
        if not low[layer] <= position <= high[layer]:
            return _Prefix(np.inf, 0, boundaries, free_gain, kept_gain)
        at = offset[layer] + position - low[layer]
        rest = max(free_gain + max(free[at], kept[at]), kept_gain + free[at])
        # Both halves were charged for this boundary.
        return _Prefix(-float(rest + boundary_cost[boundaries[-1]]), next(tiebreak), boundaries, free_gain, kept_gain)

    heap = [prefix((0,), 0.0, -np.inf)]
    while heap:
        best = heapq.heappop(heap)
        start = best.boundaries[-1]
        if len(best.boundaries) == parts + 1:
            yield RankedPartition(best.free, best.boundaries)
            continue
        for stop in range(start + 1, int(furthest[start]) + 1):
            free_gain, kept_gain = steps.extend(best.free, best.kept, start, stop)
            charge = float(boundary_cost[stop])
            candidate = prefix((*best.boundaries, stop), free_gain - charge, kept_gain - charge)
            if candidate.negated_bound < np.inf:
                heapq.heappush(heap, candidate)


def _costs(tasks: int, boundary_cost: Floats | None, interval_cost: Floats | None) -> tuple[Floats, Floats]:
    return (
        _no_boundary_cost(tasks) if boundary_cost is None else _read_only(boundary_cost),
        _NO_INTERVAL_COST if interval_cost is None else _read_only(interval_cost),
    )


def _read_only(array: Floats) -> Floats:
    """A copy of the one array type the kernels are compiled for: contiguous and read-only, like a workload's sums."""
    copy = array.copy(order="C")
    copy.setflags(write=False)
    return copy


@lru_cache(maxsize=8)
def _no_boundary_cost(tasks: int) -> Floats:
    return _read_only(np.zeros(tasks + 1))


_NO_INTERVAL_COST = _read_only(np.empty((0, 0)))


class _Steps:
    """One edge [a, x) of the dynamic program, in plain numbers."""

    def __init__(self, gain: Floats, old: Ints, interval_cost: Floats) -> None:
        self.gain: list[float] = gain.tolist()
        self.old: list[int] = old.tolist()
        self.interval_cost = interval_cost

    def extend(self, free: float, kept: float, a: int, x: int) -> tuple[float, float]:
        """The gains (free, kept) at x when the interval [a, x) is added to a prefix with these gains at a."""
        gain, old = self.gain, self.old
        chunk = bisect_left(old, x) - 1
        start = old[chunk]
        if a >= start:
            leave, stays = free, max((free - gain[a]) + gain[x], kept)
        else:
            holder = bisect_right(old, a) - 1
            inside = max((gain[old[i + 1]] - gain[old[i]] for i in range(holder + 1, chunk)), default=0.0)
            either = max(free, kept)
            stays = (either - gain[start]) + gain[x]
            leave = max(either + inside, (free - gain[a]) + gain[old[holder + 1]])
        if self.interval_cost.size:
            charge = float(self.interval_cost[a, x])
            leave, stays = leave - charge, stays - charge
        return (max(leave, stays), -np.inf) if x == old[chunk + 1] else (leave, stays)
