"""Moves: the difference between two assignments, task by task."""

from collections.abc import Callable
from functools import partial
from itertools import compress
from operator import ne
from typing import NamedTuple, cast

from migration.errors import InvalidAssignment
from migration.model.ownership import Ownership
from migration.model.standbys import Standbys
from migration.model.workload import Workload


class Move(NamedTuple):
    """The ownership of one task moves from one node to another; `size` is the state that has to move with it.

    That is nothing if the target is a standby of the task: the two switch roles.
    """

    task: int
    source: str
    target: str
    size: float

    def __str__(self) -> str:
        return f"task {self.task}: {self.source} -> {self.target} ({self.size:g})"


# What Move._make does, without a Python frame for each of what may be thousands of moves.
_make_move = cast("Callable[[tuple[int, str, str, float]], Move]", partial(tuple.__new__, Move))


def compute_moves(
    current: Ownership, target: Ownership, workload: Workload, standbys: Standbys | None = None
) -> tuple[Move, ...]:
    """List every task whose owner changes, in task order; standbys of now get it for nothing. O(m)."""
    if current.tasks != target.tasks or current.tasks != workload.tasks:
        raise InvalidAssignment(
            f"{current.tasks} tasks now, {target.tasks} in the target, {workload.tasks} in the workload. "
            "Use one number of tasks."
        )
    before, after = current.owners, target.owners
    sizes = workload.state.tolist()
    if standbys is not None:
        rows = zip(after, standbys.nodes_by_task, sizes, strict=True)
        sizes = [0.0 if owner in nodes else size for owner, nodes, size in rows]
    everything = zip(range(len(before)), before, after, sizes, strict=True)
    return tuple(map(_make_move, compress(everything, map(ne, before, after))))
