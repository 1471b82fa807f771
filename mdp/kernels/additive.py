"""The planner's dynamic program with an additive value, for many old partitions in one call.

`boundary_cost` and `interval_cost` are gamma * V without its constant, as the planner takes them; `interval_cost` is
empty if there are only boundary terms. A score is the state that stays less these costs, so the least of
cost(P, P') + gamma * V(P') is all state less the best score.
"""

from heapq import heappop, heappush

import numpy as np

from mdp.kernels.paths import Floats, Ints
from migration.kernels import best_gains, partition, shared
from migration.optional_compiling import compiled

stay = compiled(shared.stay)


@compiled
def best_targets(
    work: Floats, state: Floats, first: Ints, sources: Ints, parts: int, boundary_cost: Floats, interval_cost: Floats
) -> tuple[Ints, Floats]:
    """For every row of boundaries its best target into `parts` intervals, and the state that stays."""
    targets = np.empty((len(sources), parts + 1), np.int64)
    stays = np.empty(len(sources))
    for row in range(len(sources)):
        targets[row] = partition(work, state, first, sources[row], parts, False, boundary_cost, interval_cost)
        stays[row] = stay(state, sources[row], targets[row])
    return targets, stays


@compiled
def best_scores(
    state: Floats, first: Ints, sources: Ints, parts: int, boundary_cost: Floats, interval_cost: Floats
) -> Floats:
    """For every row of boundaries the best score of a target, without the target: half the time of finding it."""
    scores = np.empty(len(sources))
    for row in range(len(sources)):
        free = best_gains(state, first, sources[row], parts, False, boundary_cost, interval_cost)[3]
        scores[row] = free[-1]
    return scores


@compiled
def all_costs(state: Floats, old: Ints, new: Ints) -> Floats:
    """cost(P, P') for every row of `old` and every row of `new`."""
    costs = np.empty((len(old), len(new)))
    for row in range(len(old)):
        for column in range(len(new)):
            costs[row, column] = state[-1] - stay(state, old[row], new[column])
    return costs


@compiled
def with_interval_in_front(
    state: Floats, old: Ints, chunk: int, a: int, x: int, may: float, may_not: float
) -> tuple[float, float]:
    """The gains of intervals that cover [x, m) after [a, x) is put in front of them.

    `may` is the most state that stays with them if one of them may keep the old interval that straddles their front,
    `may_not` if what comes before keeps it; the two are the same at an old boundary. `chunk` is the old interval that
    ends at x or straddles it.
    """
    start = old[chunk]
    if a >= start:
        keeps = max(state[x] - state[a] + may_not, may)
        return (keeps, keeps) if a == start else (keeps, may_not)
    holder = chunk - 1
    inside = 0.0
    while old[holder] > a:
        inside = max(inside, state[old[holder + 1]] - state[old[holder]])
        holder -= 1
    # It keeps of the old interval at its right end, the heaviest one inside, or of the one at its left end.
    right_or_inside = max(state[x] - state[start] + may_not, inside + may)
    keeps = max(right_or_inside, state[old[holder + 1]] - state[a] + may)
    return (keeps, keeps) if a == old[holder] else (keeps, right_or_inside)


@compiled
def most_promising(
    state: Floats, first: Ints, old: Ints, parts: int, boundary_cost: Floats, interval_cost: Floats, most: int
) -> tuple[Ints, Floats]:
    """The `most` targets with the best scores (or all, if there are fewer), best first, and the state that stays.

    Best-first search over boundaries from right to left. The dynamic program tells the most that any prefix adds, so
    the bound of a suffix is exact and only suffixes of answers are opened: O(most * parts * window * log).
    """
    tasks = len(state) - 1
    low, high, offset, free, kept = best_gains(state, first, old, parts, False, boundary_cost, interval_cost)
    targets = np.empty((most, parts + 1), np.int64)
    stays = np.empty(most)
    found = 0
    # A suffix: where it starts, the old interval that ends at or straddles that place (or a later one), its gains, the
    # costs of its terms, and the suffix it extends. Ties are opened at their left end first.
    suffixes = [(tasks, len(old) - 2, 0.0, 0.0, 0.0, -1)]
    open_ones = [(-free[-1], parts, 0)]
    while len(open_ones) > 0 and found < most:
        _, k, index = heappop(open_ones)
        x, chunk, may, may_not, spent, _ = suffixes[index]
        if k == 0:
            stays[found] = may
            for place in range(parts + 1):
                targets[found, place] = suffixes[index][0]
                index = suffixes[index][5]
            found += 1
            continue
        while old[chunk] >= x:
            chunk -= 1
        if k < parts:
            spent += boundary_cost[x]
        base = offset[k - 1] - low[k - 1]
        for a in range(max(first[x], low[k - 1]), min(x - 1, high[k - 1]) + 1):
            longer_may, longer_may_not = with_interval_in_front(state, old, chunk, a, x, may, may_not)
            charge = spent
            if interval_cost.size > 0:
                charge += interval_cost[a, x]
            bound = max(free[base + a] + longer_may, kept[base + a] + longer_may_not) - charge
            heappush(open_ones, (-bound, k - 1, len(suffixes)))
            suffixes.append((a, chunk, longer_may, longer_may_not, charge, index))
    return targets[:found], stays[:found]


@compiled
def uniform_paths(low: Ints, high: Ints, furthest: Ints, chances: Floats) -> Ints:
    """Balanced partitions, each as likely as any other: one for every row of `chances`, which are uniform in [0, 1).

    Walks from left to right; a boundary is chosen by the number of ways to go on from it. The numbers are floats,
    scaled layer by layer, because there can be more partitions than any whole number here holds.
    """
    parts, tasks = len(low) - 1, len(furthest) - 1
    before = np.zeros((parts + 1, tasks + 2))
    for k in range(parts, 0, -1):
        for x in range(tasks + 1):
            ways = 0.0
            if low[k] <= x <= high[k]:
                if k == parts:
                    ways = 1.0
                else:
                    begin = max(x + 1, low[k + 1])
                    end = min(furthest[x], high[k + 1])
                    ways = before[k + 1, end + 1] - before[k + 1, begin]
            before[k, x + 1] = before[k, x] + ways
        before[k] /= before[k, tasks + 1]
    paths = np.zeros((len(chances), parts + 1), np.int64)
    for row in range(len(chances)):
        for k in range(1, parts + 1):
            begin = max(paths[row, k - 1] + 1, low[k])
            end = min(furthest[paths[row, k - 1]], high[k])
            wanted = before[k, begin] + chances[row, k - 1] * (before[k, end + 1] - before[k, begin])
            x = begin
            while x < end and before[k, x + 1] <= wanted:
                x += 1
            paths[row, k] = x
    return paths
