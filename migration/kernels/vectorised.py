"""The kernels without a compiler: NumPy over the positions of a layer, a loop over interval lengths.

O(band * window) element operations; a few milliseconds at 64 tasks, seconds at 65,536. Adds the same numbers in
the same order as the compiled kernels, so both give the same plans to the last bit.
"""

import numpy as np

from migration.kernels.shared import (
    Floats,
    Ints,
    band,
    intervals_used,
    label_layers,
    match,
    open_labels,
    stay,
    trace,
    trace_labels,
)

NAME = f"numpy {np.__version__}"

__all__ = [
    "NAME",
    "best_gains",
    "cheapest_sources",
    "label_partition",
    "lightest_starts",
    "match",
    "partition",
    "undominated",
]


def lightest_starts(work: Floats, most: float) -> Ints:
    """For every x the smallest a for which [a, x) weighs at most `most`; a = x if there is none below."""
    return work.searchsorted(work - most)


def best_gains(
    gain: Floats, first: Ints, old: Ints, parts: int, allow_idle: bool, boundary_cost: Floats, interval_cost: Floats
) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    """The band (low, high), where each layer starts in the flat arrays, and the best gains free and kept."""
    low, high = band(first, parts, allow_idle)
    offset = np.concatenate(([0], np.cumsum(np.maximum(high - low + 1, 0))))
    free = np.full(offset[-1], -np.inf)
    kept = np.full(offset[-1], -np.inf)
    if low[0] == 0:
        free[0] = 0.0
        for k in range(1, parts + 1):
            below = slice(offset[k - 1], offset[k])
            here = slice(offset[k], offset[k + 1])
            xs = np.arange(low[k], high[k] + 1)
            free[here], kept[here] = _layer(
                gain, first, old, low[k - 1], free[below], kept[below], xs, boundary_cost, interval_cost
            )
    return low, high, offset, free, kept


def partition(
    work: Floats,
    gain: Floats,
    first: Ints,
    old: Ints,
    parts: int,
    allow_idle: bool,
    boundary_cost: Floats,
    interval_cost: Floats,
) -> Ints:
    """Boundaries of the partition with the most gain less costs; empty if no partition is light enough."""
    low, high, offset, free, kept = best_gains(gain, first, old, parts, allow_idle, boundary_cost, interval_cost)
    used = intervals_used(low, high, offset, free, allow_idle)
    if used == 0:
        return np.empty(0, np.int64)
    return trace(work, gain, first, old, low, high, offset, free, kept, interval_cost, used)


def _layer(
    gain: Floats,
    first: Ints,
    old: Ints,
    lowest: int,
    free: Floats,
    kept: Floats,
    xs: Ints,
    boundary_cost: Floats,
    interval_cost: Floats,
) -> tuple[Floats, Floats]:
    """Best gains at positions `xs` from the layer below, which starts at `lowest`: all intervals [x - d, x), d by d."""
    chunk = np.searchsorted(old, xs, side="left") - 1  # the old interval that ends at or straddles x
    start = old[chunk]
    leave = np.full(len(xs), -np.inf)
    stays = np.full(len(xs), -np.inf)
    inside = np.zeros(len(xs))
    longest = int((xs - np.maximum(first[xs], lowest)).max(initial=0))
    for length in range(1, longest + 1):
        a = xs - length
        within = (a >= np.maximum(first[xs], lowest)) & (a < lowest + len(free))
        # A step to the left past a may reveal an old interval that starts at a + 1 and ends by `start`.
        revealed = (a + 1 < start) & (old[np.searchsorted(old, a + 1)] == a + 1)
        ends = np.searchsorted(old, np.where(revealed, a + 1, 0), side="right")
        inside = np.where(revealed, np.maximum(inside, gain[old[ends]] - gain[a + 1]), inside)
        if not within.any():
            continue
        at = np.where(within, a - lowest, 0)
        free_a = np.where(within, free[at], -np.inf)
        kept_a = np.where(within, kept[at], -np.inf)
        safe = np.maximum(a, 0)
        charge = interval_cost[safe, xs] if interval_cost.size else 0.0
        either = np.maximum(free_a, kept_a)
        same = a >= start
        holder_end = old[np.searchsorted(old, safe, side="right").clip(max=len(old) - 1)]
        claimed = np.where(same, (free_a - gain[safe]) + gain[xs], (either - gain[start]) + gain[xs])
        carried = np.where(same, kept_a, -np.inf)
        left = np.where(same, free_a, np.maximum(either + inside, (free_a - gain[safe]) + gain[holder_end]))
        stays = np.maximum(stays, np.maximum(claimed, carried) - charge)
        leave = np.maximum(leave, left - charge)
    ends_old = xs == old[chunk + 1]
    leave = np.where(ends_old, np.maximum(leave, stays), leave)
    stays = np.where(ends_old, -np.inf, stays)
    return leave - boundary_cost[xs], stays - boundary_cost[xs]


def cheapest_sources(gain: Floats, sources: Ints, spent: Floats, targets: Ints) -> tuple[Floats, Ints]:
    """For every target partition the least `spent[source] + cost(source, target)`, and that source's row."""
    total = gain[-1]
    costs = np.array([[total - stay(gain, source, target) for target in targets] for source in sources])
    costs = costs.reshape(len(sources), len(targets)) + spent[:, None]
    source = costs.argmin(axis=0)
    return costs[source, np.arange(len(targets))], source


def undominated(gain: Floats, partitions: Ints, spent: Floats, slack: float) -> Ints:
    """Rows (cheapest first) that no other row reaches at no extra expense; `spent` must ascend."""
    total = gain[-1]
    rows: list[int] = []
    for candidate, partition_ in enumerate(partitions):
        if not any(
            spent[row] + (total - stay(gain, partitions[row], partition_)) <= spent[candidate] + slack for row in rows
        ):
            rows.append(candidate)
    return np.array(rows, dtype=np.int64)


def label_partition(
    work: Floats, held: Floats, starts: Ints, ends: Ints, first: Ints, parts: int, allow_idle: bool
) -> tuple[float, Ints, Ints]:
    """The most gain, and a partition with labels that has it; no boundaries if no partition is light enough."""
    low, high = band(first, parts, allow_idle)
    closed, opened, place = open_labels(starts, ends, len(first) - 1)
    layer = label_layers(low, high, place)
    best = np.full(layer[-1], -np.inf)
    if low[0] == 0:
        best[0] = 0.0
        gains = np.zeros((len(starts) + 1, 1))  # by last label and position, whether or not the label matters there
        for k in range(1, parts + 1):
            xs = np.arange(low[k], high[k] + 1)
            gains = _label_layer(held, starts, ends, first, low[k - 1], gains, xs)
            for x in xs:
                here = slice(layer[k] + place[x] - place[low[k]], layer[k] + place[x + 1] - place[low[k]])
                best[here] = gains[closed[x] : opened[x] + 1, x - low[k]]
    used = intervals_used(low, high, layer, best, allow_idle)
    if used == 0:
        return -np.inf, np.empty(0, np.int64), np.empty(0, np.int64)
    return trace_labels(work, held, starts, ends, first, low, high, closed, opened, place, layer, best, used)


def _label_layer(held: Floats, starts: Ints, ends: Ints, first: Ints, lowest: int, gains: Floats, xs: Ints) -> Floats:
    """Best gains by last label at positions `xs` from the layer below: all intervals [x - d, x), d by d."""
    result = np.full((len(gains), len(xs)), -np.inf)
    earliest = np.maximum(first[xs], lowest)
    for length in range(1, int((xs - earliest).max(initial=0)) + 1):
        a = xs - length
        within = (a >= earliest) & (a < lowest + gains.shape[1])
        safe, at = np.maximum(a, 0), np.where(within, a - lowest, 0)
        below = np.where(within, gains[:, at], -np.inf)
        result = np.maximum(result, below)
        holds = (starts[:, None] < xs) & (a < ends[:, None])
        labelled = np.where(holds, (below[:-1] - held[:, safe]) + held[:, xs], -np.inf)
        result[1:] = np.maximum(result[1:], labelled)
    return np.maximum.accumulate(result, axis=0)
