"""From a partition to an assignment: which node gets which interval, so that the most state stays."""

from collections.abc import Sequence

import numpy as np

from migration.kernels import Floats, Ints, match
from migration.model.assignment import Assignment
from migration.planning.problem import Problem


def labelled(problem: Problem, boundaries: Ints | Sequence[int], old: Ints, gain: Floats) -> Assignment:
    """Give every interval of a partition to the node that keeps most by it, the rest to nodes without an interval.

    Intervals that nobody keeps go, left to right, first to nodes that are already there (in their current order),
    then to joining ones. Nodes left over when the count is reached leave; with idle nodes allowed they get nothing.
    """
    new = np.asarray(boundaries, dtype=np.int64)
    # The last one stands for nobody: `match` says -1 for an interval that no owner keeps.
    owners = [*problem.keepers(), None]
    keepers = [owners[index] for index in match(gain, old, new).tolist()]
    keeping = set(keepers)
    free = iter([node for node in (*problem.staying, *problem.joining) if node not in keeping])
    nodes = [keeper if keeper is not None else next(free) for keeper in keepers]
    idle = [next(free) for _ in range(problem.node_count - len(nodes))]
    ends = new.tolist()
    return Assignment((*nodes, *idle), (*ends, *(ends[-1:] * len(idle))))
