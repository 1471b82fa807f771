"""The strategies that build one assignment: Simple, LLFD, MinTable and MinMig."""

import numpy as np

from migration.keys.problem import KeyProblem, KeyProposal, NotPlaced
from migration.keys.reference.phases import Rank, by_priority, by_work, rebalance


def simple(problem: KeyProblem) -> KeyProposal:
    """Algorithm 5: all keys by descending work, each to the node with the least load so far."""
    problem.refuse_pinned_excess()
    work = problem.loads.work.tolist()
    loads, destination = list(problem.pinned), [0] * len(work)
    for row in sorted(range(len(work)), key=lambda row: (-work[row], row)):
        node = min(range(len(loads)), key=lambda node: (loads[node], node))
        destination[row] = node
        loads[node] += work[row]
    heaviest = max(range(len(loads)), key=lambda node: (loads[node], -node))
    if loads[heaviest] > problem.limit:
        raise NotPlaced(destination.index(heaviest))
    return KeyProposal(np.array(destination, np.int32), "")


def llfd(problem: KeyProblem) -> KeyProposal:
    """Algorithm 1 from the current assignment, highest work first."""
    return _rebalance(problem, problem.loads.current.tolist(), by_work(problem))


def min_table(problem: KeyProblem) -> KeyProposal:
    """Algorithm 2: from all keys at home, highest work first."""
    return _rebalance(problem, problem.loads.home.tolist(), by_work(problem))


def min_mig(problem: KeyProblem, beta: float = 1.5) -> KeyProposal:
    """Algorithm 3: from the current assignment, largest c^beta / S first."""
    return _rebalance(problem, problem.loads.current.tolist(), by_priority(problem, beta))


def _rebalance(problem: KeyProblem, start: list[int], rank: Rank) -> KeyProposal:
    return KeyProposal(np.array(rebalance(problem, start, rank), np.int32), "")
