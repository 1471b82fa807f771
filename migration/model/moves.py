"""Moves: the difference between two assignments, task by task."""

from collections.abc import Callable
from functools import partial
from itertools import compress
from operator import ne
from typing import NamedTuple, cast

from migration.errors import InvalidAssignment
from migration.model.ownership import Ownership
from migration.model.workload import Workload


class Move(NamedTuple):
    """The state of one task moves from one node to another."""

    task: int
    source: str
    target: str
    size: float

    def __str__(self) -> str:
        return f"task {self.task}: {self.source} -> {self.target} ({self.size:g})"


# What Move._make does, without a Python frame for each of what may be thousands of moves.
_make_move = cast("Callable[[tuple[int, str, str, float]], Move]", partial(tuple.__new__, Move))


def compute_moves(current: Ownership, target: Ownership, workload: Workload) -> tuple[Move, ...]:
    """List every task whose owner changes, in task order. O(m)."""
    if current.tasks != target.tasks or current.tasks != workload.tasks:
        raise InvalidAssignment(
            f"{current.tasks} tasks now, {target.tasks} in the target, {workload.tasks} in the workload. "
            "Use one number of tasks."
        )
    before, after = current.owners, target.owners
    everything = zip(range(len(before)), before, after, workload.state.tolist(), strict=True)
    return tuple(map(_make_move, compress(everything, map(ne, before, after))))
