"""LLFD with Adjust (paper 000, algorithm 1): least-load fit decreasing."""

import numpy as np

from migration.keys.kernels.rebalance import rebalance
from migration.keys.loads import Nodes
from migration.keys.problem import KeyProblem, KeyProposal, NotPlaced


def llfd(problem: KeyProblem) -> KeyProposal:
    """Take keys from overloaded nodes by highest work and place each on the least loaded node that accepts it.

    A node accepts a key if L(d) + c(k) <= cap, or if it can give away lighter keys until that holds; these are then
    placed in turn. O(K + taken * (log K + N)).
    """
    return KeyProposal(
        rebalance_from(problem, problem.loads.current), "keys of overloaded nodes by highest work, to the least loaded"
    )


def rebalance_from(problem: KeyProblem, start: Nodes, beta: float | None = None) -> Nodes:
    """Rebalance from the assignment `start`: by highest work, or by c^beta / S if beta is given."""
    problem.refuse_pinned_excess()
    loads, destination = problem.loads, np.array(start)
    unplaced = rebalance(
        loads.work, loads.size, destination, problem.pinned_loads, problem.limit, -1.0 if beta is None else beta
    )
    if unplaced >= 0:
        raise NotPlaced(int(unplaced))
    return destination
