"""Readj (Gedik), paper 000's competitor: only heavy keys have entries; they are moved and swapped."""

from numbers import Real

import numpy as np

from migration.errors import InvalidInput
from migration.keys.kernels.readj import move_or_swap
from migration.keys.loads import Nodes
from migration.keys.problem import KeyProblem, KeyProposal, NotPlaced

_SIGMAS = 14  # the search halves sigma that often, from the heaviest key down


def readj(problem: KeyProblem, sigma: float | None = None) -> KeyProposal:
    """Restore the hash, then move or swap tracked keys from the most loaded node until none exceeds the cap.

    A key is tracked if its work is at least `sigma` times the mean load of a node. Keys that are not tracked go home,
    because only tracked keys have entries; tracked ones go home if their home can carry them, heaviest first. Each
    following step is the move or the swap that leaves the most loaded node and its partner with the smallest maximum.

    Without `sigma`, it is searched: halved from the heaviest key down, and the cheapest answer that fits the table is
    returned, else the one with the fewest entries, as the paper does to compare with Readj at its best.
    """
    loads = problem.loads
    if sigma is not None:
        destination = rebalance_tracked(problem, check_sigma(sigma))
        return KeyProposal(destination, f"keys with at least {sigma:g} of the mean load moved and swapped")
    if problem.is_balanced and loads.entries <= problem.most_entries:
        return KeyProposal(loads.current, "already balanced: nothing moves")
    best: tuple[tuple[int, float], float, Nodes] | None = None
    failure = NotPlaced(int(np.argmax(loads.work)))
    for trial in sigmas_to_try(problem):
        try:
            destination = rebalance_tracked(problem, trial)
        except NotPlaced as cause:
            failure = cause
            continue
        excess = int(np.count_nonzero(destination != loads.home)) - problem.most_entries
        rank = max(excess, 0), float(loads.size[destination != loads.current].sum())
        if best is None or rank < best[0]:
            best = rank, trial, destination
    if best is None:
        raise failure
    return KeyProposal(best[2], f"keys with at least {best[1]:.3g} of the mean load moved and swapped: the best sigma")


def sigmas_to_try(problem: KeyProblem) -> list[float]:
    """From the share of the heaviest key in the mean load down, by halves."""
    heaviest = float(problem.loads.work.max()) / problem.mean if problem.total_work else 1.0
    return [heaviest / 2**halvings for halvings in range(_SIGMAS)]


def rebalance_tracked(problem: KeyProblem, sigma: float) -> Nodes:
    """The assignment that Readj ends with at one sigma; raise `NotPlaced` if no move or swap improves it further."""
    problem.refuse_pinned_excess()
    loads = problem.loads
    work, home = loads.work, loads.home
    least = sigma * problem.mean
    destination = np.where((loads.current != home) & (work < least), home, loads.current).astype(np.int32)
    node_loads = problem.loads_of(destination)
    away = np.flatnonzero(destination != home)
    for row in away[np.argsort(-work[away], kind="stable")].tolist():
        if node_loads[home[row]] + work[row] <= problem.limit:
            node_loads[destination[row]] -= work[row]
            node_loads[home[row]] += work[row]
            destination[row] = home[row]
    tracked = np.flatnonzero((work >= least) & (work > 0))
    tracked = tracked[np.argsort(work[tracked], kind="stable")]
    stuck = move_or_swap(tracked, work, loads.size, problem.limit, destination, node_loads)
    if stuck >= 0:
        raise NotPlaced(int(stuck))
    return destination


def check_sigma(sigma: object) -> float:
    """Return sigma as a float; raise for NaN, infinity and negative values."""
    if isinstance(sigma, bool | np.bool_) or not isinstance(sigma, Real) or not 0 <= float(sigma) < float("inf"):
        raise InvalidInput(
            f"sigma is {sigma!r}. Give the least work of a tracked key as a share of the mean load, a number >= 0, "
            "or None to search for the best."
        )
    return float(sigma)
