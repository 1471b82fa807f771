"""Simple (paper 000, algorithm 5): a baseline that places all keys anew."""

import numpy as np

from migration.keys.kernels.simple import place_all
from migration.keys.problem import KeyProblem, KeyProposal, NotPlaced


def simple(problem: KeyProblem) -> KeyProposal:
    """Place all keys by descending work, each on the node with the least load so far.

    Well balanced, but nearly every key moves and gets an entry. O(K log K).
    """
    work = problem.loads.work
    destination, loads = np.empty(len(work), np.int32), np.zeros(problem.node_count)
    place_all(np.argsort(-work, kind="stable"), work, loads, np.arange(problem.node_count, dtype=np.int32), destination)
    heaviest = int(np.argmax(loads))
    if loads[heaviest] > problem.limit:
        raise NotPlaced(int(np.argmax(destination == heaviest)))
    return KeyProposal(destination, "all keys by descending work, each to the least loaded node")
