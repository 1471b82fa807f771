"""Assign the intervals of a partition to nodes, so that the most state stays."""

from collections.abc import Sequence

import numpy as np

from migration.kernels import Floats, Ints, match
from migration.model.assignment import Assignment
from migration.planning.problem import Problem


def assign_owners(problem: Problem, boundaries: Ints | Sequence[int], old: Ints, gain: Floats) -> Assignment:
    """Give intervals to their keepers in a heaviest matching, and the rest to nodes without an interval."""
    new = np.asarray(boundaries, dtype=np.int64)
    # `match` returns -1 for an interval without a keeper, which indexes the last entry.
    owners = [*problem.keepers(), None]
    return fill_owners(problem, new.tolist(), [owners[index] for index in match(gain, old, new).tolist()])


def fill_owners(problem: Problem, boundaries: Sequence[int], keepers: Sequence[str | None]) -> Assignment:
    """Give intervals to their keepers, and those without one to nodes without an interval.

    They go, left to right, first to nodes that exist (in their current order), then to joining ones. Nodes beyond the
    node count leave; with idle nodes allowed they stay without tasks.
    """
    keeping = set(keepers)
    free = iter([node for node in (*problem.staying, *problem.joining) if node not in keeping])
    nodes = [keeper if keeper is not None else next(free) for keeper in keepers]
    idle = [next(free) for _ in range(problem.node_count - len(nodes))]
    return Assignment((*nodes, *idle), (*boundaries, *[boundaries[-1]] * len(idle)))
