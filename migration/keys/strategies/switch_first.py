"""Switch-first (ours): roles are switched before anything moves, because a switch costs no bytes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from migration.keys.kernels.standbys import switch_home, switch_roles
from migration.keys.loads import Floats, Nodes
from migration.keys.problem import KeyProblem, KeyProposal, NotPlaced
from migration.keys.standbys import NodeRows
from migration.keys.strategies.ftlb import DEFAULT_GAMMA, check_gamma, rebalance_keys
from migration.keys.strategies.min_mig import DEFAULT_BETA, check_beta

MOST_ROUNDS = 20  # loads pass from node to node in the rounds after the first; more hardly help


SENT_HOME = (0.0, 0.25, 0.5, 1.0)  # of the overridden keys, in trials for a table that is too small
SWITCHED = 0.9  # of the entries that are left: the rest is for keys that move
UNLIMITED = 1 << 62


class _Trial(NamedTuple):
    """Where keys and their standbys would be, and why."""

    destination: Nodes
    standbys: NodeRows
    reason: str


def switch_first(problem: KeyProblem, beta: float = DEFAULT_BETA, gamma: float = DEFAULT_GAMMA) -> KeyProposal:
    """Switch roles of keys on overloaded nodes, then move as FTLB does where that is not enough.

    Keys whose switch may end their override come first, then those with the highest work, so that few are enough. After
    the first round a node may pass on more than the next one has room for, which passes it on in turn. If the table
    then exceeds `most_entries`, only as many keys are switched as it has room for, and others move; in some trials
    overridden keys that have a standby at home are switched home before, the lightest first. FTLB alone is the last
    trial. The plan that moves the least among those whose table fits is taken. O(K log K) a round.
    """
    beta, gamma = check_beta(beta), check_gamma(gamma)
    problem.refuse_pinned_excess()
    start = _Trial(problem.loads.current.copy(), problem.start.copy(), "")
    trials = _balance(problem, start, beta, gamma)
    if not trials or _count_excess(problem, trials[0]):
        overrides = len(problem.find_overrides(start.destination, start.standbys))
        for share in SENT_HOME:
            before = _send_home(problem, start, int(share * overrides))
            room = problem.most_entries - len(problem.find_overrides(before.destination, before.standbys))
            trials += _balance(problem, before, beta, gamma, max(int(SWITCHED * room), 0))
    if not trials or min(_rank(problem, trial) for trial in trials) > (0, 0.0):
        trials += _move(problem, start, beta, gamma, must=not trials)
    best = min(trials, key=lambda trial: _rank(problem, trial))
    return KeyProposal(best.destination, best.reason or "already balanced: nothing moves", standbys=best.standbys)


def _balance(
    problem: KeyProblem, start: _Trial, beta: float, gamma: float, most_switches: int = UNLIMITED
) -> list[_Trial]:
    """Balance by switches, and by moves where these do not suffice; nothing if that fails."""
    if problem.loads_of(start.destination, start.standbys).max() <= problem.limit:
        return [start]
    is_balanced, switched = _switch(problem, start, most_switches)
    return [switched] if is_balanced else _move(problem, switched, beta, gamma)


def _switch(problem: KeyProblem, start: _Trial, most: int) -> tuple[bool, _Trial]:
    """Switch roles in rounds, of at most so many keys, and tell whether that is enough."""
    loads, limit = problem.loads, problem.limit
    destination, standbys = start.destination.copy(), start.standbys.copy()
    node_loads = problem.loads_of(destination, standbys)
    columns = loads.work, destination, standbys, problem.standby_share, node_loads, limit
    for number in range(MOST_ROUNDS):
        rows = rank_switches(problem, destination, standbys, node_loads)
        switched = switch_roles(rows, *columns, number > 0, most)
        most -= switched
        if number and not switched:
            break
    is_balanced = bool(problem.loads_of(destination, standbys).max() <= problem.accepted)
    reason = "roles switched, by highest work"
    return is_balanced, _Trial(destination, standbys, f"{start.reason}; {reason}" if start.reason else reason)


def rank_switches(problem: KeyProblem, destination: Nodes, standbys: NodeRows, node_loads: Floats) -> NDArray[np.int64]:
    """Rows on overloaded nodes: first those that have a standby at home, then by falling work, then in their order."""
    loads = problem.loads
    rows = np.flatnonzero((node_loads > problem.limit)[destination] & (loads.work > 0))
    stays_away = (standbys[rows] != loads.home[rows, None]).all(axis=1)
    return rows[np.lexsort((-loads.work[rows], stays_away))]


def _move(problem: KeyProblem, start: _Trial, beta: float, gamma: float, *, must: bool = False) -> list[_Trial]:
    """Move keys as FTLB does; if that fails, raise `NotPlaced` or return nothing."""
    destination, standbys = start.destination.copy(), start.standbys.copy()
    try:
        rebalance_keys(problem, destination, standbys, beta, gamma)
    except NotPlaced:
        if must:
            raise
        return []
    reason = "keys moved, by the least state per work"
    return [_Trial(destination, standbys, f"{start.reason}; then {reason}" if start.reason else reason)]


def _send_home(problem: KeyProblem, start: _Trial, count: int) -> _Trial:
    """Switch the lightest overridden keys home that have a standby there, whatever the loads."""
    if not count:
        return start
    loads = problem.loads
    destination, standbys = start.destination.copy(), start.standbys.copy()
    rows = problem.find_overrides(destination, standbys)
    rows = rows[np.argsort(loads.work[rows], kind="stable")]
    returned = switch_home(rows, loads.home, destination, standbys, count)
    return _Trial(destination, standbys, f"{returned:,} keys switched home for the size of the table")


def _count_excess(problem: KeyProblem, trial: _Trial) -> int:
    """The number of entries above the limit."""
    return max(len(problem.find_overrides(trial.destination, trial.standbys)) - problem.most_entries, 0)


def _rank(problem: KeyProblem, trial: _Trial) -> tuple[int, float]:
    """First by the entries above the limit, then by the state that moves."""
    return _count_excess(problem, trial), problem.critical_size(trial.destination)
