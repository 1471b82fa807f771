"""The kernels compiled by numba, with sliding windows where the objective allows them."""

import numba
import numpy as np

from migration.compiling import compiled
from migration.kernels import shared
from migration.kernels.shared import Floats, Ints

NAME = f"numba {numba.__version__}"

_band = compiled(shared.band)
_trace = compiled(shared.trace)
_stay = compiled(shared.stay)
_intervals_used = compiled(shared.intervals_used)
_open_labels = compiled(shared.open_labels)
_label_layers = compiled(shared.label_layers)
_trace_labels = compiled(shared.trace_labels)
match = compiled(shared.match)


@compiled
def lightest_starts(work: Floats, most: float) -> Ints:
    """For every x the smallest a for which [a, x) weighs at most `most`; a = x if there is none below."""
    starts = np.empty(len(work), np.int64)
    a = 0
    for x in range(len(work)):
        while work[a] < work[x] - most:
            a += 1
        starts[x] = a
    return starts


@compiled
def _forward_by_windows(
    gain: Floats,
    first: Ints,
    old: Ints,
    low: Ints,
    high: Ints,
    offset: Ints,
    boundary_cost: Floats,
    free: Floats,
    kept: Floats,
) -> None:
    """Best gains of every state in O(1) amortised each: O(band * (1 + old intervals per window)).

    For x in one old interval the best left end is a maximum over the window [first[x], x). It is split at an
    anchor: suffix maxima to its left, scanned once, and running maxima to its right. A new anchor is set when
    the window has slid past the old one, or x enters the next old interval. Three maxima are kept, by what they
    do to the old interval that ends at or straddles x: `claim` lets this edge keep it (gain[x] is added),
    `carry` has it kept by an earlier edge, `leave` leaves it free.
    """
    parts = len(low) - 1
    claim_left = np.empty(len(first), np.float64)
    carry_left = np.empty(len(first), np.float64)
    leave_left = np.empty(len(first), np.float64)
    chunk_at_low = 0
    for k in range(1, parts + 1):
        left = low[k - 1]
        right = high[k - 1]
        base = offset[k - 1] - left
        here = offset[k] - low[k]
        while old[chunk_at_low + 1] < low[k]:  # low rises with k
            chunk_at_low += 1
        chunk = chunk_at_low
        anchor = -1
        claim = -np.inf
        carry = -np.inf
        leave = -np.inf
        for x in range(low[k], high[k] + 1):
            entered = old[chunk + 1] < x
            if entered:
                chunk += 1
            start = old[chunk]
            earliest = max(first[x], left)
            if anchor < 0 or entered or earliest > anchor:
                anchor = x
                claim = -np.inf
                carry = -np.inf
                leave = -np.inf
                inner = chunk
                inside = 0.0
                for a in range(min(x - 1, right), earliest - 1, -1):
                    free_a = free[base + a]
                    kept_a = kept[base + a]
                    if a >= start:
                        claim = max(claim, free_a - gain[a])
                        carry = max(carry, kept_a)
                        leave = max(leave, free_a)
                    else:
                        while old[inner] > a:
                            if inner < chunk:
                                inside = max(inside, gain[old[inner + 1]] - gain[old[inner]])
                            inner -= 1
                        either = max(free_a, kept_a)
                        claim = max(claim, either - gain[start])
                        leave = max(leave, either + inside, (free_a - gain[a]) + gain[old[inner + 1]])
                    claim_left[a] = claim
                    carry_left[a] = carry
                    leave_left[a] = leave
                claim = -np.inf
                carry = -np.inf
                leave = -np.inf
            elif left <= x - 1 <= right:
                free_a = free[base + x - 1]
                claim = max(claim, free_a - gain[x - 1])
                carry = max(carry, kept[base + x - 1])
                leave = max(leave, free_a)
            best_claim = claim
            best_carry = carry
            best_leave = leave
            if earliest < anchor and earliest <= right:
                best_claim = max(best_claim, claim_left[earliest])
                best_carry = max(best_carry, carry_left[earliest])
                best_leave = max(best_leave, leave_left[earliest])
            stays = max(best_claim + gain[x], best_carry)
            if x == old[chunk + 1]:
                best_leave = max(best_leave, stays)
                stays = -np.inf
            free[here + x] = best_leave - boundary_cost[x]
            kept[here + x] = stays - boundary_cost[x]


@compiled
def _forward_by_edges(
    gain: Floats,
    first: Ints,
    old: Ints,
    low: Ints,
    high: Ints,
    offset: Ints,
    boundary_cost: Floats,
    interval_cost: Floats,
    free: Floats,
    kept: Floats,
) -> None:
    """The same best gains when every interval [a, x) has a cost of its own: O(band * window)."""
    parts = len(low) - 1
    for k in range(1, parts + 1):
        left = low[k - 1]
        base = offset[k - 1] - left
        here = offset[k] - low[k]
        chunk = 0
        while old[chunk + 1] < low[k]:
            chunk += 1
        for x in range(low[k], high[k] + 1):
            if old[chunk + 1] < x:
                chunk += 1
            start = old[chunk]
            stays = -np.inf
            leave = -np.inf
            inner = chunk
            inside = 0.0
            for a in range(min(x - 1, high[k - 1]), max(first[x], left) - 1, -1):
                free_a = free[base + a]
                kept_a = kept[base + a]
                if a >= start:
                    stays = max(stays, (free_a - gain[a]) + gain[x] - interval_cost[a, x], kept_a - interval_cost[a, x])
                    leave = max(leave, free_a - interval_cost[a, x])
                else:
                    while old[inner] > a:
                        if inner < chunk:
                            inside = max(inside, gain[old[inner + 1]] - gain[old[inner]])
                        inner -= 1
                    either = max(free_a, kept_a)
                    stays = max(stays, (either - gain[start]) + gain[x] - interval_cost[a, x])
                    straddled = (free_a - gain[a]) + gain[old[inner + 1]]
                    leave = max(leave, max(either + inside, straddled) - interval_cost[a, x])
            if x == old[chunk + 1]:
                leave = max(leave, stays)
                stays = -np.inf
            free[here + x] = leave - boundary_cost[x]
            kept[here + x] = stays - boundary_cost[x]


@compiled
def best_gains(
    gain: Floats, first: Ints, old: Ints, parts: int, allow_idle: bool, boundary_cost: Floats, interval_cost: Floats
) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    """The band (low, high), where each layer starts in the flat arrays, and the best gains free and kept."""
    low, high = _band(first, parts, allow_idle)
    # Memory is the sum of the band's widths, not m * parts.
    offset = np.zeros(parts + 2, np.int64)
    for k in range(parts + 1):
        offset[k + 1] = offset[k] + max(high[k] - low[k] + 1, 0)
    free = np.full(offset[-1], -np.inf)
    kept = np.full(offset[-1], -np.inf)
    if low[0] == 0:
        free[0] = 0.0
        if interval_cost.size > 0:
            _forward_by_edges(gain, first, old, low, high, offset, boundary_cost, interval_cost, free, kept)
        else:
            _forward_by_windows(gain, first, old, low, high, offset, boundary_cost, free, kept)
    return low, high, offset, free, kept


@compiled
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
    used = _intervals_used(low, high, offset, free, allow_idle)
    if used == 0:
        return np.empty(0, np.int64)
    return _trace(work, gain, first, old, low, high, offset, free, kept, interval_cost, used)


@compiled
def cheapest_sources(gain: Floats, sources: Ints, spent: Floats, targets: Ints) -> tuple[Floats, Ints]:
    """For every target partition the least `spent[source] + cost(source, target)`, and that source's row."""
    total = gain[-1]
    least = np.full(len(targets), np.inf)
    source = np.zeros(len(targets), np.int64)
    for column in range(len(targets)):
        for row in range(len(sources)):
            cost = spent[row] + (total - _stay(gain, sources[row], targets[column]))
            if cost < least[column]:
                least[column] = cost
                source[column] = row
    return least, source


@compiled
def undominated(gain: Floats, partitions: Ints, spent: Floats, slack: float) -> Ints:
    """Rows (cheapest first) that no other row reaches at no extra expense; `spent` must ascend.

    Row p is superfluous if some row q has spent[q] + cost(q, p) <= spent[p]: cost is a metric, so whatever comes
    after p can come after q for no more.
    """
    total = gain[-1]
    rows = np.empty(len(partitions), np.int64)
    count = 0
    for candidate in range(len(partitions)):
        needed = True
        for kept_row in rows[:count]:
            detour = total - _stay(gain, partitions[kept_row], partitions[candidate])
            if spent[kept_row] + detour <= spent[candidate] + slack:
                needed = False
                break
        if needed:
            rows[count] = candidate
            count += 1
    return rows[:count].copy()


@compiled
def _forward_by_labels(
    held: Floats,
    starts: Ints,
    ends: Ints,
    first: Ints,
    low: Ints,
    high: Ints,
    closed: Ints,
    opened: Ints,
    place: Ints,
    layer: Ints,
    best: Floats,
) -> None:
    """Best gains of every state (k, x, last label used) in O(1) amortised each.

    For one label the best left end is a maximum over a window that slides to the right with x: what the label gains
    is a term of the left end and one of the right end. Each window is a queue of falling values.
    """
    tasks = len(first) - 1
    queue = np.empty(tasks + 1, np.int64)
    values = np.empty(tasks + 1, np.float64)
    labelled = np.empty(tasks + 1, np.float64)  # the most that labels up to the present one gain, by x
    for k in range(1, len(low)):
        left = low[k - 1]
        right = high[k - 1]
        here = layer[k - 1] - place[left]
        there = layer[k] - place[low[k]]
        for x in range(low[k], high[k] + 1):
            labelled[x] = -np.inf
        lowest = closed[max(first[low[k]], left)]
        for q in range(lowest, opened[high[k]] + 1):
            if q > lowest:
                _slide_labelled(
                    q, held, starts, ends, first, low[k], high[k], left, right, closed, opened, place, here, best,
                    queue, values, labelled,
                )  # fmt: skip
            head = 0
            tail = 0
            ahead = -1
            for x in range(low[k], high[k] + 1):
                if closed[x] > q:
                    break
                if opened[x] < q:
                    continue
                earliest = max(first[x], left)
                if ahead < earliest:
                    ahead = earliest
                    head = 0
                    tail = 0
                while ahead < x and ahead <= right:
                    value = best[here + place[ahead] - closed[ahead] + min(q, opened[ahead])]
                    while tail > head and values[tail - 1] <= value:
                        tail -= 1
                    queue[tail] = ahead
                    values[tail] = value
                    tail += 1
                    ahead += 1
                while head < tail and queue[head] < earliest:
                    head += 1
                gain = labelled[x]
                if head < tail:
                    gain = max(gain, values[head])
                best[there + place[x] - closed[x] + q] = gain


@compiled
def _slide_labelled(
    q: int,
    held: Floats,
    starts: Ints,
    ends: Ints,
    first: Ints,
    lowest: int,
    highest: int,
    left: int,
    right: int,
    closed: Ints,
    opened: Ints,
    place: Ints,
    here: int,
    best: Floats,
    queue: Ints,
    values: Floats,
    labelled: Floats,
) -> None:
    """Raise `labelled[x]` to what intervals that end at x gain with label q."""
    until = min(right, ends[q - 1] - 1)
    head = 0
    tail = 0
    ahead = -1
    for x in range(max(lowest, starts[q - 1] + 1), highest + 1):
        earliest = max(first[x], left)
        if earliest > until:
            break
        if ahead < earliest:
            ahead = earliest
            head = 0
            tail = 0
        while ahead < x and ahead <= until:
            before = best[here + place[ahead] - closed[ahead] + min(q - 1, opened[ahead])]
            value = before - held[q - 1, ahead]
            while tail > head and values[tail - 1] <= value:
                tail -= 1
            queue[tail] = ahead
            values[tail] = value
            tail += 1
            ahead += 1
        while head < tail and queue[head] < earliest:
            head += 1
        if head < tail:
            labelled[x] = max(labelled[x], values[head] + held[q - 1, x])


@compiled
def label_partition(
    work: Floats, held: Floats, starts: Ints, ends: Ints, first: Ints, parts: int, allow_idle: bool
) -> tuple[float, Ints, Ints]:
    """The most gain, and a partition with labels that has it; no boundaries if no partition is light enough."""
    low, high = _band(first, parts, allow_idle)
    closed, opened, place = _open_labels(starts, ends, len(first) - 1)
    layer = _label_layers(low, high, place)
    best = np.full(layer[-1], -np.inf)
    if low[0] == 0:
        best[0] = 0.0
        _forward_by_labels(held, starts, ends, first, low, high, closed, opened, place, layer, best)
    used = _intervals_used(low, high, layer, best, allow_idle)
    if used == 0:
        return -np.inf, np.empty(0, np.int64), np.empty(0, np.int64)
    return _trace_labels(work, held, starts, ends, first, low, high, closed, opened, place, layer, best, used)
