"""Simple (paper 000, algorithm 5): a baseline that places all keys anew."""

import numpy as np

from migration.keys.kernels.simple import place_all
from migration.keys.problem import KeyProblem, KeyProposal, NotPlaced


def simple(problem: KeyProblem) -> KeyProposal:
    """Place all keys by descending work, each on the node with the least load so far.

    Well balanced, but nearly every key moves and gets an entry. O(K log K).
    """
    problem.refuse_pinned_excess()
    work = problem.loads.work
    destination, loads = np.empty(len(work), np.int32), problem.pinned_loads
    nodes = np.argsort(loads, kind="stable").astype(np.int32)
    place_all(np.argsort(-work, kind="stable"), work, loads, nodes, destination)
    heaviest = int(np.argmax(loads))
    if loads[heaviest] > problem.limit:
        raise NotPlaced(int(np.argmax(destination == heaviest)))
    return KeyProposal(destination, "all keys by descending work, each to the least loaded node")
