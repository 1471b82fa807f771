"""The tasks of each node as arrays, for choices of nodes that are made for every row."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from migration import Ownership

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NodeTasks:
    """An assignment as arrays: the position of the owner by task, and the tasks of node i from `starts[i]` on."""

    names: tuple[str, ...]
    owners: Integers
    tasks: Integers
    starts: Integers

    @classmethod
    def of(cls, assignment: Ownership) -> "NodeTasks":
        """Return the arrays of an assignment; those of the latest few are remembered."""
        return _node_tasks(assignment)

    @property
    def nodes(self) -> int:
        return len(self.names)

    def task_on(self, nodes: Integers, mixed: npt.NDArray[np.uint64]) -> Integers:
        """Return for each row a task of the given node; the same one for the same key."""
        sizes = np.diff(self.starts)
        places = self.starts[nodes] + ((mixed >> np.uint64(32)) % sizes[nodes].astype(np.uint64)).astype(np.int64)
        tasks: Integers = self.tasks[places]
        return tasks


@lru_cache(16)
def _node_tasks(assignment: Ownership) -> NodeTasks:
    names = tuple(dict.fromkeys(assignment.owners))
    positions = {node: place for place, node in enumerate(names)}
    owners = np.array([positions[node] for node in assignment.owners], np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(owners))])
    return NodeTasks(names, owners, np.argsort(owners, kind="stable"), starts)
