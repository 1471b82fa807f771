"""One improvement sweep over a block of partitions onto n nodes, for one number n' of nodes that may come next."""

import numpy as np
from numpy.typing import NDArray

from mdp.kernels.minimum import best_target, forward, scratch
from mdp.kernels.paths import Floats, Ints, advance, path_of
from migration.kernels import shared
from migration.optional_compiling import compiled

Targets = NDArray[np.int32]
Bounds = NDArray[np.float32]

stay = compiled(shared.stay)


@compiled
def improve(
    state: Floats,
    gamma: float,
    source_low: Ints,
    source_high: Ints,
    source_furthest: Ints,
    source_before: Ints,
    first_rank: int,
    low: Ints,
    high: Ints,
    before: Ints,
    edge_at: Ints,
    begin: Ints,
    edge_cost: Floats,
    edge_rank: Ints,
    edge_slack: Floats,
    slack_left: Floats,
    values: Floats,
    tolerance: float,
    fallen: float,
    target: Targets,
    others: Bounds,
    stays: Floats,
    score: Floats,
    most: Floats,
) -> int:
    """Write the best target of every partition from `first_rank` on, and what is known about it; how many were solved.

    `target` comes with the choices of the last sweep (-1 where there is none) and `others` with the most that any other
    target could score then; `gamma` times a value has fallen by at most `fallen` since. Where that proves the old
    choice good enough, nothing is solved. `score` is what the choice scores now, `stays` the state that stays
    with it, and `most` what no target scores above.
    """
    parts, tasks = len(low) - 1, len(state) - 1
    old = np.empty(len(source_low), np.int64)
    new = np.empty(parts + 1, np.int64)
    path_of(first_rank, source_low, source_before, old)
    free = np.full((parts + 1, tasks + 1), -np.inf)
    kept = np.full((parts + 1, tasks + 1), -np.inf)
    free[0, 0] = 0.0
    whole = np.zeros(tasks + 1)
    gains, places = scratch(parts, tasks)
    stale_from = 1
    solve_normal_equations = 0
    for row in range(len(target)):
        if row > 0:
            changed = advance(old, source_low, source_high, source_furthest)
            stale_from = min(stale_from, old[changed] - 1)
        known = int(target[row])
        known_stays = 0.0
        known_score = -np.inf
        rivals = np.inf
        if known >= 0:
            path_of(known, low, before, new)
            known_stays = stay(state, old, new)
            known_score = known_stays - gamma * values[known]
            rivals = np.float64(others[row]) + fallen
        if rivals <= known_score + tolerance:
            winner = known
            best = known_score
            pruned = rivals
        else:
            forward(state, old, stale_from, low, high, edge_at, begin, edge_cost, free, kept, whole)
            stale_from = tasks + 1
            winner, best, pruned, rivals = best_target(
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
                known,
                known_score,
                tolerance,
                gains,
                places,
            )
            solve_normal_equations += 1
            if winner != known:
                known_stays = best + gamma * values[winner]
        target[row] = winner
        round_nodes = np.float32(rivals)
        while np.float64(round_nodes) < rivals:
            round_nodes = np.nextafter(round_nodes, np.float32(np.inf))
        others[row] = round_nodes
        stays[row] = known_stays
        score[row] = best
        most[row] = max(best, pruned)
    return solve_normal_equations
