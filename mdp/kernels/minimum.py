"""The inner minimum of the projected cost: for a partition P the target P' with the least cost(P, P') + gamma C[P'].

Written as a maximum: `score` = state that stays - gamma * C[P']. Two steps, both exact. First the dynamic program of
the planner (see `migration.kernels.shared` for its state) with an additive guide in place of C; old partitions are
visited in lexicographic order, so that only positions behind the first boundary that changed are computed again. Then
branch and bound from right to left: the dynamic program tells the most any prefix can add, and the worst error of the
guide among the partitions that use an edge tells how much less than the guide C can be.
"""

import numpy as np

from mdp.kernels.paths import Floats, Ints
from migration.optional_compiling import compiled


@compiled
def forward(
    state: Floats,
    old: Ints,
    changed_at: int,
    low: Ints,
    high: Ints,
    edge_at: Ints,
    begin: Ints,
    edge_cost: Floats,
    free: Floats,
    kept: Floats,
    whole: Floats,
) -> None:
    """Best gains less costs of edges for every (k, x) with x >= changed_at; smaller positions hold already.

    `free` and `kept` are as in the planner. `whole[a]` is scratch: the heaviest old interval wholly within [a, start)
    where `start` is where the old interval that ends at or straddles x begins.
    """
    parts, tasks = len(low) - 1, len(state) - 1
    chunk = 0
    least = 1
    most = 0
    for x in range(max(changed_at, 1), tasks + 1):
        while old[chunk + 1] < x:
            chunk += 1
        start = old[chunk]
        ends = x == old[chunk + 1]
        while least <= parts and high[least] < x:
            least += 1
        most = max(most, least - 1)
        while most < parts and low[most + 1] <= x:
            most += 1
        earliest = x
        for k in range(least, most + 1):
            earliest = min(earliest, begin[k, x])
        holder = chunk
        inside = 0.0
        for a in range(min(start, x) - 1, earliest - 1, -1):
            while old[holder] > a:
                if holder < chunk:
                    inside = max(inside, state[old[holder + 1]] - state[old[holder]])
                holder -= 1
            whole[a] = inside
        for k in range(least, most + 1):
            here = begin[k, x]
            edge = edge_at[k, x] - here
            last = min(x - 1, high[k - 1])
            stays = -np.inf
            leave = -np.inf
            for a in range(max(here, start), last + 1):
                charge = edge_cost[edge + a]
                free_a = free[k - 1, a]
                stays = max(stays, free_a - state[a] + state[x] - charge, kept[k - 1, a] - charge)
                leave = max(leave, free_a - charge)
            holder = chunk
            for a in range(min(last, start - 1), here - 1, -1):
                while old[holder] > a:
                    holder -= 1
                charge = edge_cost[edge + a]
                free_a = free[k - 1, a]
                either = max(free_a, kept[k - 1, a])
                stays = max(stays, either - state[start] + state[x] - charge)
                leave = max(leave, either + whole[a] - charge, free_a - state[a] + state[old[holder + 1]] - charge)
            if ends:
                free[k, x] = max(leave, stays)
                kept[k, x] = -np.inf
            else:
                free[k, x] = leave
                kept[k, x] = stays


@compiled
def best_target(
    state: Floats,
    gamma: float,
    old: Ints,
    low: Ints,
    high: Ints,
    edge_at: Ints,
    begin: Ints,
    edge_cost: Floats,
    edge_rank: Ints,
    edge_slack: Floats,
    slack_left: Floats,
    values: Floats,
    free: Floats,
    kept: Floats,
    known_target: int,
    known_score: float,
    tolerance: float,
    open_gains: Floats,
    open_places: Ints,
) -> tuple[int, float, float, float]:
    """The target with the best score after `forward`; its rank, its score, the most that a pruned target and the most
    that any target but the winner can score.

    Depth first, children in order of their bounds. A child is pruned if its bound is at most `tolerance` above the
    best score so far, so the winner is at most that much below the best one. `known_target` (or -1) is a target whose
    score is known.

    A node is a suffix: intervals that cover [x, m). `may` is the most state that stays with them if the old interval
    which straddles x may still be kept by the suffix, `may_not` if it is kept by what comes before; both are the same
    where x is an old boundary. `open_gains[k]` and `open_places[k]` are scratch for open nodes of layer k: bound, may,
    may_not, costs and slack of edges; x, rank and the order of bounds.
    """
    parts, tasks = len(low) - 1, len(state) - 1
    target, best, second, pruned = known_target, known_score, -np.inf, -np.inf
    bound = free[parts, tasks] + slack_left[parts, tasks]
    if bound <= best + tolerance:
        return target, best, bound, bound
    open_gains[parts, 0, 0] = bound
    open_gains[parts, 0, 1] = 0.0
    open_gains[parts, 0, 2] = 0.0
    open_gains[parts, 0, 3] = 0.0
    open_gains[parts, 0, 4] = np.inf
    open_places[parts, 0, 0] = tasks
    open_places[parts, 0, 1] = 0
    open_places[parts, 0, 2] = 0
    # How many nodes of a layer are open stands behind its places, and so does the old interval at the last one visited.
    counts = open_places.shape[1] - 1
    open_places[parts, counts, 0] = 1
    k = parts
    while k <= parts:
        left = open_places[k, counts, 0]
        if left == 0:
            k += 1
            continue
        node = open_places[k, left - 1, 2]
        bound = open_gains[k, node, 0]
        if bound <= best + tolerance:
            # Nodes are in order: those that are left are no better.
            pruned = max(pruned, bound)
            open_places[k, counts, 0] = 0
            k += 1
            continue
        open_places[k, counts, 0] = left - 1
        x = open_places[k, node, 0]
        rank = open_places[k, node, 1]
        may = open_gains[k, node, 1]
        if k == 0:
            if rank != target:
                score = may - gamma * values[rank]
                if score > best:
                    second = max(second, best)
                    best = score
                    target = rank
                else:
                    second = max(second, score)
            continue
        may_not = open_gains[k, node, 2]
        spent = open_gains[k, node, 3]
        slack = open_gains[k, node, 4]
        chunk = len(old) - 2 if k == parts else open_places[k + 1, counts, 1]
        while old[chunk] >= x:
            chunk -= 1
        open_places[k, counts, 1] = chunk
        start = old[chunk]
        claimed = state[x] + may_not  # less what is left of the front: this interval keeps the old one at x
        edge = edge_at[k, x] - begin[k, x]
        size = 0
        holder = chunk
        inside = 0.0  # the heaviest old interval wholly within [a, start)
        rest = claimed - state[start]
        for a in range(min(x - 1, high[k - 1]), begin[k, x] - 1, -1):
            if a > start:
                new_may = max(claimed - state[a], may)
                new_may_not = may_not
            elif a == start:
                new_may = max(rest, may)
                new_may_not = new_may
            else:
                while old[holder] > a:
                    if holder < chunk:
                        inside = max(inside, state[old[holder + 1]] - state[old[holder]])
                    holder -= 1
                new_may_not = max(rest, inside + may)
                new_may = max(new_may_not, state[old[holder + 1]] - state[a] + may)
                if a == old[holder]:
                    new_may_not = new_may
            here = edge + a
            new_slack = min(slack, edge_slack[here])
            most = max(free[k - 1, a] + new_may, kept[k - 1, a] + new_may_not)
            new_spent = spent + edge_cost[here]
            bound = most - new_spent + min(new_slack, slack_left[k - 1, a])
            if bound <= best + tolerance:
                pruned = max(pruned, bound)
                continue
            open_gains[k - 1, size, 0] = bound
            open_gains[k - 1, size, 1] = new_may
            open_gains[k - 1, size, 2] = new_may_not
            open_gains[k - 1, size, 3] = new_spent
            open_gains[k - 1, size, 4] = new_slack
            open_places[k - 1, size, 0] = a
            open_places[k - 1, size, 1] = rank + edge_rank[here]
            place = size
            while place > 0 and open_gains[k - 1, open_places[k - 1, place - 1, 2], 0] > bound:
                open_places[k - 1, place, 2] = open_places[k - 1, place - 1, 2]
                place -= 1
            open_places[k - 1, place, 2] = size
            size += 1
        open_places[k - 1, counts, 0] = size
        k -= 1
    return target, best, pruned, max(second, pruned)


@compiled
def scratch(parts: int, tasks: int) -> tuple[Floats, Ints]:
    """For `best_target`."""
    return np.empty((parts + 1, tasks + 2, 5)), np.zeros((parts + 1, tasks + 2, 3), np.int64)


@compiled
def solve_one(
    state: Floats,
    gamma: float,
    old: Ints,
    low: Ints,
    high: Ints,
    edge_at: Ints,
    begin: Ints,
    edge_cost: Floats,
    edge_rank: Ints,
    edge_slack: Floats,
    slack_left: Floats,
    values: Floats,
) -> tuple[int, float]:
    """The best target of one old partition, which need not be balanced itself: its rank and its score."""
    parts, tasks = len(low) - 1, len(state) - 1
    free = np.full((parts + 1, tasks + 1), -np.inf)
    kept = np.full((parts + 1, tasks + 1), -np.inf)
    free[0, 0] = 0.0
    forward(state, old, 1, low, high, edge_at, begin, edge_cost, free, kept, np.zeros(tasks + 1))
    gains, places = scratch(parts, tasks)
    target, score, _, _ = best_target(
        state,
        gamma,
        old,
        low,
        high,
        edge_at,
        begin,
        edge_cost,
        edge_rank,
        edge_slack,
        slack_left,
        values,
        free,
        kept,
        -1,
        -np.inf,
        0.0,
        gains,
        places,
    )
    return target, score
