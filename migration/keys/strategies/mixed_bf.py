"""Mixed by brute force (paper 000, section III-C): every number of entries moved back."""

import numpy as np

from migration.keys.loads import Nodes
from migration.keys.problem import KeyProblem, KeyProposal, NotPlaced
from migration.keys.strategies.llfd import rebalance_from
from migration.keys.strategies.min_mig import DEFAULT_BETA, check_beta
from migration.keys.strategies.mixed import count_entries, describe_trial, entries_by_size, move_back


def mixed_bf(problem: KeyProblem, beta: float = DEFAULT_BETA) -> KeyProposal:
    """Mixed for every n from 0 to all entries: the cheapest trial whose table fits, else the one with the fewest.

    As many rebalances as the table has entries: a yardstick for Mixed, not for large tables.
    """
    beta = check_beta(beta)
    table = entries_by_size(problem)
    best: tuple[int, float, Nodes, str] | None = None
    for moved_back in range(max(len(table), 1) + 1):
        is_last = moved_back >= max(len(table), 1)
        try:
            destination = (
                rebalance_from(problem, problem.loads.home)
                if is_last
                else rebalance_from(problem, move_back(problem, table[:moved_back]), beta)
            )
        except NotPlaced:
            if is_last and best is None:
                raise
            continue
        overflow = max(count_entries(problem, destination) - problem.most_entries, 0)
        cost = sum_cost(problem, destination)
        if best is None or (overflow, cost) < best[:2]:
            best = overflow, cost, destination, describe_trial(min(moved_back, len(table)), len(table))
    assert best is not None  # noqa: S101  # the last trial raises if there is none
    return KeyProposal(best[2], best[3])


def sum_cost(problem: KeyProblem, destination: Nodes) -> float:
    moved = destination != problem.loads.current
    return float(np.cumsum(problem.loads.size[moved])[-1]) if moved.any() else 0.0
