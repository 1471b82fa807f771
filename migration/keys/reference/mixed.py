"""The strategies that move some entries back before they rebalance: Mixed and its brute force."""

import numpy as np

from migration.keys.problem import KeyProblem, KeyProposal, NotPlaced
from migration.keys.reference.one_shot import min_table
from migration.keys.reference.phases import by_priority, rebalance


def mixed(problem: KeyProblem, beta: float = 1.5) -> KeyProposal:
    """Algorithm 4: move the n smallest entries back and rebalance; raise n by the overflow until the table fits.

    The last trial is MinTable. A trial that cannot place a key has no overflow, so the last one follows it. If even
    that needs too many entries, the answer is the trial with the fewest.
    """
    table = _entries_by_size(problem)
    trials: list[list[int]] = []
    moved_back = 0
    while moved_back < max(len(table), 1):
        try:
            trial = rebalance(problem, _move_back(problem, table[:moved_back]), by_priority(problem, beta))
        except NotPlaced:
            break
        trials.append(trial)
        overflow = _count_entries(problem, trial) - problem.most_entries
        if overflow <= 0:
            break
        moved_back += overflow
    if not trials or _count_entries(problem, trials[-1]) > problem.most_entries:
        try:
            trials.append(min_table(problem).destination.tolist())
        except NotPlaced:
            if not trials:
                raise
    fewest = min(trials, key=lambda trial: _count_entries(problem, trial))
    return KeyProposal(np.array(fewest, np.int32), "")


def mixed_bf(problem: KeyProblem, beta: float = 1.5) -> KeyProposal:
    """Mixed with every n from 0 to all entries: the cheapest trial whose table fits, else the one with the fewest."""
    table = _entries_by_size(problem)
    trials: list[list[int]] = []
    for moved_back in range(max(len(table), 1)):
        try:
            trials.append(rebalance(problem, _move_back(problem, table[:moved_back]), by_priority(problem, beta)))
        except NotPlaced:
            continue
    try:
        trials.append(min_table(problem).destination.tolist())
    except NotPlaced:
        if not trials:
            raise

    def rank(trial: list[int]) -> tuple[int, float]:
        return max(_count_entries(problem, trial) - problem.most_entries, 0), _sum_cost(problem, trial)

    return KeyProposal(np.array(min(trials, key=rank), np.int32), "")


def _entries_by_size(problem: KeyProblem) -> list[int]:
    """Rows of keys that are not at home, smallest state first; the first row on a tie."""
    loads = problem.loads
    size = loads.size.tolist()
    away = [row for row in range(loads.keys) if loads.home[row] != loads.current[row]]
    return sorted(away, key=lambda row: (size[row], row))


def _move_back(problem: KeyProblem, rows: list[int]) -> list[int]:
    destination: list[int] = problem.loads.current.tolist()
    for row in rows:
        destination[row] = int(problem.loads.home[row])
    return destination


def _count_entries(problem: KeyProblem, destination: list[int]) -> int:
    return sum(node != home for node, home in zip(destination, problem.loads.home.tolist(), strict=True))


def _sum_cost(problem: KeyProblem, destination: list[int]) -> float:
    cost = 0.0
    for node, current, size in zip(
        destination, problem.loads.current.tolist(), problem.loads.size.tolist(), strict=True
    ):
        if node != current:
            cost += size
    return cost
