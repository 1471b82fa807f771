"""Standbys: the nodes that hold a copy of a task besides its owner, and the copies that a plan asks for."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, groupby, islice
from operator import index
from typing import Any, NamedTuple, Self, cast

from migration.errors import InvalidStandbys
from migration.model.ownership import Ownership
from migration.model.workload import Workload


class Copy(NamedTuple):
    """A node needs a new copy of a task's state: it becomes a standby and holds no copy yet."""

    task: int
    node: str
    size: float

    def __str__(self) -> str:
        return f"task {self.task}: copy to {self.node} ({self.size:g})"


# What Copy._make does, without a Python frame for each of what may be thousands of copies.
_make_copy = cast("Callable[[tuple[int, str, float]], Copy]", partial(tuple.__new__, Copy))


class StandbyRun(NamedTuple):
    """Tasks start..stop-1, all with the same standbys."""

    start: int
    stop: int
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Standbys:
    """Task j has a copy on every node in `nodes_by_task[j]`, besides the state that its owner has.

    Invariant: at least one task; the nodes of a task are distinct, non-empty names. That no owner is its own standby
    depends on the assignment: `check_apart` checks it. Immutable, hashable, O(m * standbys) space.
    """

    nodes_by_task: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        rows = tuple(map(tuple, self.nodes_by_task))
        if not rows:
            raise InvalidStandbys("standbys of no task. Give one row for every task, empty where there is no copy.")
        for nodes in set(rows):
            if not all(type(node) is str and node for node in nodes) or len(set(nodes)) != len(nodes):
                raise InvalidStandbys(
                    f"the standbys of task {rows.index(nodes)} are {nodes!r}. "
                    "Name every node once, with a non-empty string."
                )
        object.__setattr__(self, "nodes_by_task", rows)

    @classmethod
    def of(cls, tasks: int, copies: Mapping[int, Iterable[str]]) -> Self:
        """From the nodes that hold a copy of each task; tasks that are not named have none."""
        unknown = [task for task in copies if not (hasattr(task, "__index__") and 0 <= index(task) < tasks)]
        if unknown:
            raise InvalidStandbys(
                f"task {unknown[0]!r} has standbys, but tasks are 0 to {tasks - 1}. Name tasks that exist."
            )
        rows: list[tuple[str, ...]] = [()] * tasks
        for task, nodes in copies.items():
            if isinstance(nodes, str):
                raise InvalidStandbys(f"the standbys of task {task} are the string {nodes!r}. Give a list of names.")
            rows[index(task)] = tuple(nodes)
        return cls(tuple(rows))

    @classmethod
    def beside(cls, ownership: Ownership, count: int) -> Self:
        """Standbys on neighbours: one is on the node before the owner, two on both sides, and so on outwards.

        The nodes of an assignment form a ring, so every node follows exactly as many others as follow it: if no node
        owns more than its share of the work, none follows more either. There are as many standbys as other nodes, at
        most. A node never follows its own tasks.
        """
        names = ownership.nodes
        offsets = standby_offsets(count, len(names))
        rows = {
            name: tuple(names[(place + offset) % len(names)] for offset in offsets) for place, name in enumerate(names)
        }
        return cls(tuple([rows[owner] for owner in ownership.owners]))

    @property
    def tasks(self) -> int:
        return len(self.nodes_by_task)

    @cached_property
    def most(self) -> int:
        """The number of standbys that the task with the most of them has."""
        return max(map(len, self.nodes_by_task))

    @cached_property
    def runs(self) -> tuple[StandbyRun, ...]:
        """Maximal runs of tasks with the same standbys, in task order."""
        runs, start = [], 0
        for nodes, tasks in groupby(self.nodes_by_task):
            stop = start + len(list(tasks))
            runs.append(StandbyRun(start, stop, nodes))
            start = stop
        return tuple(runs)

    def tasks_of(self, node: str) -> list[int]:
        """The tasks that a node follows, ascending."""
        return [task for start, stop, nodes in self.runs if node in nodes for task in range(start, stop)]

    def followed_work(self, nodes: Sequence[str], workload: Workload) -> list[float]:
        """The work of the tasks that every one of `nodes` follows."""
        work, prefix = dict.fromkeys(nodes, 0.0), workload.work_prefix
        for start, stop, followers in self.runs:
            amount = float(prefix[stop] - prefix[start])
            for node in followers:
                if node in work:
                    work[node] += amount
        return list(work.values())

    def check_apart(self, ownership: Ownership) -> None:
        """Raise if there are standbys for another number of tasks, or if an owner is among its task's standbys."""
        if self.tasks != ownership.tasks:
            raise InvalidStandbys(
                f"there are standbys of {self.tasks} tasks, and the assignment has {ownership.tasks}. Use one number."
            )
        for owner, nodes in zip(ownership.owners, self.nodes_by_task, strict=True):
            if owner in nodes:
                pairs = enumerate(zip(ownership.owners, self.nodes_by_task, strict=True))
                task, node = next((task, owner) for task, (owner, nodes) in pairs if owner in nodes)
                raise InvalidStandbys(
                    f"node {node!r} owns task {task} and is its standby, too. Leave the owner out of the standbys."
                )

    def to_dict(self) -> dict[str, Any]:
        """Runs of tasks with the same standbys: how many tasks, and their nodes."""
        return {"runs": [{"tasks": stop - start, "nodes": list(nodes)} for start, stop, nodes in self.runs]}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        try:
            runs = [(tuple(run["nodes"]), index(run["tasks"])) for run in document["runs"]]
        except (KeyError, TypeError) as cause:
            raise InvalidStandbys(
                "a document of standbys needs 'runs' with 'tasks' and 'nodes'. Write it with to_dict()."
            ) from cause
        return cls(tuple(chain.from_iterable([nodes] * tasks for nodes, tasks in runs)))


def compute_copies(current: Ownership, standbys: Standbys, wanted: Standbys, workload: Workload) -> tuple[Copy, ...]:
    """List the copies that have to be made anew so that every task has its `wanted` standbys. O(m * standbys)."""
    sizes = workload.state.tolist()
    return tuple(
        [
            _make_copy((task, node, sizes[task]))
            for task, (owner, held, nodes) in enumerate(
                zip(current.owners, standbys.nodes_by_task, wanted.nodes_by_task, strict=True)
            )
            for node in nodes
            if node != owner and node not in held
        ]
    )


def standby_offsets(count: int, nodes: int) -> list[int]:
    """Where standbys are beside the owner, on a ring of so many nodes: -1, 1, -2, 2, ..., the nearest first."""
    outwards = chain.from_iterable((-step, step) for step in range(1, nodes))
    return list(islice(outwards, max(min(count, nodes - 1), 0)))
