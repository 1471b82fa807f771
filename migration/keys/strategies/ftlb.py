"""FTLB (paper 002, algorithms 2 to 4): balance keys that have standbys."""

import numpy as np

from migration.errors import InvalidInput
from migration.keys.kernels.standbys import rebalance_with_standbys
from migration.keys.loads import Nodes, is_amount
from migration.keys.problem import KeyProblem, KeyProposal, NotPlaced
from migration.keys.standbys import NodeRows
from migration.keys.strategies.min_mig import DEFAULT_BETA, check_beta

DEFAULT_GAMMA = 1.0  # keys with twice as many standbys count as twice as large


def ftlb(problem: KeyProblem, beta: float = DEFAULT_BETA, gamma: float = DEFAULT_GAMMA) -> KeyProposal:
    """Take keys from overloaded nodes by the smallest M(k) = S(k) / c(k)^beta * dn(k)^gamma, and place them with LLFD.

    dn(k) is the number of standbys, at least 1. Where a key happens to be placed on one of its standbys, roles are
    switched and nothing moves. The size of the table is not heeded.
    """
    destination, standbys = problem.loads.current.copy(), problem.start.copy()
    rebalance_keys(problem, destination, standbys, beta, gamma)
    return KeyProposal(destination, f"keys of overloaded nodes by state per work^{beta:g}", standbys=standbys)


def rebalance_keys(problem: KeyProblem, destination: Nodes, standbys: NodeRows, beta: float, gamma: float) -> None:
    """Run both phases in `destination` and `standbys`; raise `NotPlaced` if they do not balance them."""
    problem.refuse_pinned_excess()
    beta, gamma = check_beta(beta), check_gamma(gamma)
    unplaced = rebalance_with_standbys(
        problem.loads.work,
        weigh_sizes(problem, gamma),
        destination,
        standbys,
        problem.standby_share,
        problem.pinned_loads,
        problem.limit,
        beta,
    )
    if unplaced >= 0:
        raise NotPlaced(int(unplaced))
    refuse_standby_excess(problem, destination, standbys)


def weigh_sizes(problem: KeyProblem, gamma: float) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """S(k) * dn(k)^gamma: what M(k) divides by c(k)^beta."""
    sizes = problem.loads.size * np.maximum(problem.standby_counts, 1).astype(np.float64) ** gamma
    sizes.setflags(write=False)
    return sizes


def refuse_standby_excess(problem: KeyProblem, destination: Nodes, standbys: NodeRows) -> None:
    """Raise `NotPlaced` if a node exceeds the cap, as it does if its standbys alone work too much."""
    if problem.loads_of(destination, standbys).max() > problem.accepted:
        raise NotPlaced(-1)


def check_gamma(gamma: float) -> float:
    """Return gamma as a float; raise for NaN, infinity and negative values."""
    if not is_amount(gamma):
        raise InvalidInput(f"gamma is {gamma!r}. Give the exponent of the number of standbys, a number >= 0.")
    return float(gamma)
