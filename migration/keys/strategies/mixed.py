"""Mixed (paper 000, algorithm 4): little state moves, and the routing table stays within its limit."""

import numpy as np

from migration.keys.kernels.columns import Rows, find_differences
from migration.keys.loads import Nodes
from migration.keys.problem import KeyProblem, KeyProposal, NotPlaced
from migration.keys.strategies.llfd import rebalance_from
from migration.keys.strategies.min_mig import DEFAULT_BETA, check_beta


def mixed(problem: KeyProblem, beta: float = DEFAULT_BETA) -> KeyProposal:
    """Move the n smallest entries back and continue as MinMig, for n = 0 and then n more by the overflow of the table.

    The last trial moves all entries back and takes keys by highest work: it is MinTable. It also follows a trial that
    cannot place a key. If no trial fits, the answer is the one with the fewest entries.
    """
    beta = check_beta(beta)
    table = entries_by_size(problem)
    fewest: tuple[int, Nodes, str] | None = None
    moved_back = 0
    while moved_back < max(len(table), 1):
        try:
            destination = rebalance_from(problem, move_back(problem, table[:moved_back]), beta)
        except NotPlaced:
            break
        entries = count_entries(problem, destination)
        if fewest is None or entries < fewest[0]:
            fewest = entries, destination, describe_trial(moved_back, len(table))
        if entries <= problem.most_entries:
            break
        moved_back += entries - problem.most_entries
    if fewest is None or fewest[0] > problem.most_entries:
        try:
            destination = rebalance_from(problem, problem.loads.home)
        except NotPlaced:
            if fewest is None:
                raise
        else:
            entries = count_entries(problem, destination)
            if fewest is None or entries < fewest[0]:
                fewest = entries, destination, describe_trial(len(table), len(table))
    return KeyProposal(fewest[1], fewest[2])


def entries_by_size(problem: KeyProblem) -> Rows:
    """Rows of keys that are not at home, smallest state first; the first row on a tie."""
    away = find_differences(problem.loads.current, problem.loads.home)
    return away[np.argsort(problem.loads.size[away], kind="stable")]


def move_back(problem: KeyProblem, rows: Rows) -> Nodes:
    """The current assignment, with the keys in these rows at home."""
    if not len(rows):
        return problem.loads.current
    destination = problem.loads.current.copy()
    destination[rows] = problem.loads.home[rows]
    return destination


def count_entries(problem: KeyProblem, destination: Nodes) -> int:
    return int(np.count_nonzero(destination != problem.loads.home))


def describe_trial(moved_back: int, entries: int) -> str:
    if entries and moved_back == entries:
        return f"all {entries:,} entries moved back, then the keys with the highest work moved"
    return f"{moved_back:,} of {entries:,} entries moved back, then keys of overloaded nodes moved"
