"""Kernels written once in the subset of Python that both the interpreter and the compiler run.

All of them work on prefix sums and boundaries only. `gain` is a prefix sum over tasks of the state that would
stay if the task stays; `old` and `new` are rising boundaries without empty intervals. The state of the dynamic
program is (k, x, u): k intervals cover [0, x), and u = 1 if the old interval that straddles x has already kept
its owner. `free[k, x]` and `kept[k, x]` are the best gains with u = 0 and u = 1. Overlaps of two interval
partitions form a staircase, so a best matching never crosses and that one bit is all the past a partition needs.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def band(first: Ints, parts: int, allow_idle: bool) -> tuple[Ints, Ints]:
    """The positions low[k]..high[k] that boundary k can take when no interval is heavier than allowed.

    `first[x]` is the smallest a for which [a, x) is light enough. Boundary k must leave enough tasks for k
    intervals on its left and, unless idle nodes are allowed, for parts - k on its right. O(parts + tasks).
    No balanced partition exists if some low[k] > high[k].
    """
    tasks = len(first) - 1
    low = np.empty(parts + 1, np.int64)
    high = np.empty(parts + 1, np.int64)
    low[parts] = tasks
    for k in range(parts - 1, -1, -1):
        low[k] = max(first[low[k + 1]], k)
    high[0] = 0
    reach = 0
    for k in range(1, parts + 1):
        while reach < tasks and first[reach + 1] <= high[k - 1]:
            reach += 1
        high[k] = reach if allow_idle else min(reach, tasks - (parts - k))
    return low, high


def intervals_used(low: Ints, high: Ints, offset: Ints, free: Floats, allow_idle: bool) -> int:
    """How many intervals the best partition has: all of them, or fewer if nodes may idle; 0 if there is none."""
    parts = len(low) - 1
    for k in range(parts + 1):
        if low[k] > high[k]:
            return 0
    used = parts
    if allow_idle:
        tasks = low[parts]
        for k in range(parts - 1, 0, -1):
            if high[k] == tasks and free[offset[k + 1] - 1] > free[offset[used + 1] - 1]:
                used = k
    return used


def trace(
    work: Floats,
    gain: Floats,
    first: Ints,
    old: Ints,
    low: Ints,
    high: Ints,
    offset: Ints,
    free: Floats,
    kept: Floats,
    interval_cost: Floats,
    parts: int,
) -> Ints:
    """Walk back from (parts, m) along best edges; the boundaries of one best partition. O(parts * window).

    The forward pass stores values only: each edge on the one path needed is found again here. Among equally
    good edges the interval whose work is nearest to the mean wins, then the shortest.
    """
    tasks = len(first) - 1
    mean = work[tasks] / parts
    boundaries = np.empty(parts + 1, np.int64)
    boundaries[parts] = tasks
    x = tasks
    used = 0
    chunk = len(old) - 2
    for k in range(parts, 0, -1):
        while old[chunk] >= x:
            chunk -= 1
        start = old[chunk]
        at_old_boundary = x == old[chunk + 1]
        base = offset[k - 1] - low[k - 1]
        best = -np.inf
        best_distance = np.inf
        best_start = -1
        best_used = 0
        inner = chunk  # the old interval that holds a
        inside = 0.0  # the heaviest old interval wholly within [a, start)
        for a in range(min(x - 1, high[k - 1]), max(first[x], low[k - 1]) - 1, -1):
            free_a = free[base + a]
            kept_a = kept[base + a]
            candidate = -np.inf
            previous = 0
            if a >= start:
                if used == 1 or at_old_boundary:
                    candidate = (free_a - gain[a]) + gain[x]
                    if kept_a > candidate:
                        candidate = kept_a
                        previous = 1
                if (used == 0 or at_old_boundary) and free_a > candidate:
                    candidate = free_a
                    previous = 0
            else:
                while old[inner] > a:
                    if inner < chunk:
                        inside = max(inside, gain[old[inner + 1]] - gain[old[inner]])
                    inner -= 1
                either = free_a if free_a >= kept_a else kept_a
                either_used = 0 if free_a >= kept_a else 1
                if used == 1 or at_old_boundary:
                    candidate = (either - gain[start]) + gain[x]
                    previous = either_used
                if used == 0 or at_old_boundary:
                    straddled = (free_a - gain[a]) + gain[old[inner + 1]]
                    if straddled > candidate:
                        candidate = straddled
                        previous = 0
                    if either + inside > candidate:
                        candidate = either + inside
                        previous = either_used
            if interval_cost.size > 0:
                candidate -= interval_cost[a, x]
            distance = abs(work[x] - work[a] - mean)
            if candidate > best or (candidate == best and distance < best_distance):
                best = candidate
                best_distance = distance
                best_start = a
                best_used = previous
        x = best_start
        used = best_used
        boundaries[k - 1] = x
    return boundaries


def match(gain: Floats, old: Ints, new: Ints) -> Ints:
    """For every new interval the old interval whose owner keeps it, or -1: a heaviest matching of overlaps.

    A linear merge over both boundary lists. Consecutive overlaps share an old or a new interval; `unused` and
    `used` are the best gains so far with that shared interval still free or already matched. O(n + n').
    """
    olds = len(old) - 1
    news = len(new) - 1
    most = olds + news
    old_at = np.empty(most, np.int64)
    new_at = np.empty(most, np.int64)
    unused_before = np.empty(most, np.float64)
    used_before = np.empty(most, np.float64)
    take = np.empty(most, np.float64)
    # How the next overlap relates to this one: 0 the same old interval goes on, 1 the same new one, 2 neither.
    step = np.empty(most, np.int64)
    steps = 0
    i = 0
    j = 0
    position = 0
    unused = 0.0
    used = -np.inf
    shared = 2
    while i < olds and j < news:
        stop = min(old[i + 1], new[j + 1])
        old_at[steps] = i
        new_at[steps] = j
        unused_before[steps] = unused
        used_before[steps] = used
        chosen = unused + (gain[stop] - gain[position])
        take[steps] = chosen
        relation = 2
        if old[i + 1] != stop:
            relation = 0
        elif new[j + 1] != stop:
            relation = 1
        step[steps] = relation
        if relation == 2:
            unused = max(unused, used, chosen)
            used = -np.inf
        elif relation == shared:
            used = max(used, chosen)
        else:
            unused = max(unused, used)
            used = chosen
        shared = relation
        if old[i + 1] == stop:
            i += 1
        if new[j + 1] == stop:
            j += 1
        position = stop
        steps += 1

    keeper = np.full(news, -1, np.int64)
    # Walk back: `want_used` says whether the interval shared with the next overlap must come out matched.
    want_used = False
    after = 2
    for s in range(steps - 1, -1, -1):
        before = step[s - 1] if s > 0 else 2
        skip = max(unused_before[s], used_before[s])
        if after == 2:
            choose = take[s] >= skip
            shared_used = used_before[s] > unused_before[s]
        elif after == before:
            choose = want_used and take[s] >= used_before[s]
            shared_used = want_used
        else:
            choose = want_used
            shared_used = used_before[s] > unused_before[s]
        if choose:
            keeper[new_at[s]] = old_at[s]
            shared_used = False
        want_used = shared_used
        after = before
    return keeper


def stay(gain: Floats, old: Ints, new: Ints) -> float:
    """The most state that can stay when `old` becomes `new`: the value of `match` without the matching. O(n + n')."""
    olds = len(old) - 1
    news = len(new) - 1
    i = 0
    j = 0
    position = 0
    unused = 0.0
    used = -np.inf
    shared = 2
    while i < olds and j < news:
        old_stop = old[i + 1]
        new_stop = new[j + 1]
        stop = min(old_stop, new_stop)
        chosen = unused + (gain[stop] - gain[position])
        if old_stop == new_stop:
            unused = max(unused, used, chosen)
            used = -np.inf
            shared = 2
            i += 1
            j += 1
        elif stop == new_stop:
            if shared == 0:
                used = max(used, chosen)
            else:
                unused = max(unused, used)
                used = chosen
            shared = 0
            j += 1
        else:
            if shared == 1:
                used = max(used, chosen)
            else:
                unused = max(unused, used)
                used = chosen
            shared = 1
            i += 1
        position = stop
    return unused


def open_labels(starts: Ints, ends: Ints, tasks: int) -> tuple[Ints, Ints, Ints]:
    """The labels that matter at a boundary x, and where the states of x start when those of all x follow one another.

    Label q is a node that holds copies within [starts[q - 1], ends[q - 1]). At x the first `closed[x]` labels hold
    nothing further right and those after `opened[x]` nothing further left, so the last label used is one of
    closed[x]..opened[x], whatever it was before. O(tasks + labels).
    """
    labels = len(starts)
    closed = np.zeros(tasks + 1, np.int64)
    opened = np.zeros(tasks + 1, np.int64)
    place = np.zeros(tasks + 2, np.int64)
    for q in range(1, labels + 1):
        opened[starts[q - 1] + 1] = q  # the last one that starts there wins
    for x in range(1, tasks + 1):
        opened[x] = max(opened[x], opened[x - 1])
    done = 0
    for x in range(tasks + 1):
        while done < labels and ends[done] <= x:
            done += 1
        closed[x] = done
        place[x + 1] = place[x] + opened[x] - closed[x] + 1
    return closed, opened, place


def label_layers(low: Ints, high: Ints, place: Ints) -> Ints:
    """Where each layer of (k, x, label) starts in the flat array of best gains."""
    layer = np.zeros(len(low) + 1, np.int64)
    for k in range(len(low)):
        layer[k + 1] = layer[k] + max(place[high[k] + 1] - place[low[k]], 0)
    return layer


def trace_labels(
    work: Floats,
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
    parts: int,
) -> tuple[float, Ints, Ints]:
    """Walk back from (parts, m) along best edges: the gain, the boundaries, and the label of every interval or 0.

    Edges are found again from values, as in `trace`, and ties are broken alike: the interval whose work is nearest to
    the mean, then the shortest, then the one with a label, the lowest. O(parts * window * labels open).
    """
    tasks = len(first) - 1
    mean = work[tasks] / parts
    boundaries = np.empty(parts + 1, np.int64)
    labels = np.zeros(parts, np.int64)
    boundaries[parts] = tasks
    x = tasks
    last = opened[tasks]
    gain = best[layer[parts] + place[x] - place[low[parts]] + last - closed[x]]
    for k in range(parts, 0, -1):
        most = -np.inf
        most_distance = np.inf
        most_start = -1
        most_label = 0
        for a in range(min(x - 1, high[k - 1]), max(first[x], low[k - 1]) - 1, -1):
            distance = abs(work[x] - work[a] - mean)
            here = layer[k - 1] + place[a] - place[low[k - 1]] - closed[a]
            for q in range(closed[a] + 1, last + 1):
                if starts[q - 1] < x and a < ends[q - 1]:
                    before = best[here + min(q - 1, opened[a])]
                    candidate = (before - held[q - 1, a]) + held[q - 1, x]
                    if candidate > most or (candidate == most and distance < most_distance):
                        most = candidate
                        most_distance = distance
                        most_start = a
                        most_label = q
            candidate = best[here + min(last, opened[a])]
            if candidate > most or (candidate == most and distance < most_distance):
                most = candidate
                most_distance = distance
                most_start = a
                most_label = 0
        x = most_start
        last = min(last if most_label == 0 else most_label - 1, opened[x])
        labels[k - 1] = most_label
        boundaries[k - 1] = x
    return gain, boundaries, labels
