"""Standbys: the nodes that hold a copy of a task besides its owner, and the copies that a plan asks for."""

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, groupby, takewhile
from operator import eq, index
from typing import Any, NamedTuple, Self, cast

from migration.errors import InvalidStandbys
from migration.model.assignment import Assignment
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
    def place(
        cls,
        ownership: Ownership,
        count: int,
        hosts: Mapping[str, str] | None = None,
        before: Sequence[Sequence[str]] = (),
    ) -> Self:
        """Place that many standbys of every task, the preferred one first; fewer if there are too few other nodes.

        The engine and the planner both place standbys here. Where every node owns one interval, they are on neighbours:
        with an even count on as many nodes before the owner as behind it, around the ring of nodes, so that every node
        follows as many others as follow it. An odd one is shared by two neighbours: that of the i-th node, the first of
        n being the 0th, by the one before it for the first i / (n - 1) of its tasks, by the one behind it for the rest.
        These are the nodes that would own the tasks if the owner left and all tasks were shared evenly again: so any
        node can leave without moving state. The price is that the nodes at the ends follow little, and the others
        follow up to (n + 1) / (n - 1) of what they own.

        Where tasks are scattered, a second hash of the task chooses among all nodes, so that rows of one node's tasks
        go to many; standbys `before` that are valid stay. `hosts` names the host of a node, as far as it is known,
        or its place as host/executor: a standby is on another host than the owner where there is one, else in another
        executor where there is one. A node never follows its own tasks.
        """
        count = max(min(count, len(ownership.nodes) - 1), 0)
        if isinstance(ownership, Assignment):
            return cls(tuple(_place_beside(ownership, count, hosts or {})))
        return cls(tuple(_place_anywhere(ownership, count, hosts or {}, before)))

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


def most_followed(count: int, nodes: int) -> int:
    """Return how many others a node follows at most where `Standbys.place` puts that many standbys on neighbours.

    Two neighbours share the last one of an odd number of standbys, and near the ends of the order of nodes one of the
    two may have nearly all of it.
    """
    return min(count + count % 2, nodes - 1)


def follower_shares(count: int, nodes: int) -> dict[int, list[float]]:
    """What share of an interval's tasks the node at each offset follows, by the place of the interval's owner.

    Offsets are places in the order of the nodes, around the ring: what `Standbys.place` does, without rounding.
    """
    count = max(min(count, nodes - 1), 0)
    shares = {offset: [1.0] * nodes for step in range(1, count // 2 + 1) for offset in (-step, step)}
    if count % 2:
        step, last = count // 2 + 1, nodes - 1
        shares[-step] = [place / last for place in range(nodes)]
        shares[step] = [1 - place / last for place in range(nodes)]
    return shares


def _place_beside(assignment: Assignment, count: int, hosts: Mapping[str, str]) -> list[tuple[str, ...]]:
    names, number = assignment.nodes, len(assignment.nodes)
    last = number - 1
    offsets = [_ring_offsets(side, last if hosts else count) for side in (-1, 1)]
    rows: list[tuple[str, ...]] = []
    for place, length in enumerate(assignment.lengths):
        first = (2 * length * place + last) // (2 * last) if last else 0  # rounded
        for tasks, ring in zip((first, length - first), offsets, strict=True):
            if tasks:
                candidates = [names[(place + offset) % number] for offset in ring]
                rows += [_choose(candidates, names[place], count, hosts)] * tasks
    return rows


def _ring_offsets(side: int, count: int) -> list[int]:
    """Places of other nodes on the ring by their distance, of two at the same distance the one on that side first."""
    steps = range(1, count // 2 + 2)
    return [offset for step in steps for offset in (step * side, -step * side)][:count]


def _place_anywhere(
    ownership: Ownership, count: int, hosts: Mapping[str, str], before: Sequence[Sequence[str]]
) -> Iterable[tuple[str, ...]]:
    for task, owner in enumerate(ownership.owners):
        known = [node for node in before[task] if node in ownership.nodes] if before else []
        hashed = sorted(ownership.nodes, key=lambda node: zlib.crc32(f"{task} {node}".encode()))
        candidates = dict.fromkeys((*known, *hashed))
        candidates.pop(owner, None)
        yield _choose([*candidates], owner, count, hosts)


def _choose(candidates: Sequence[str], owner: str, count: int, hosts: Mapping[str, str]) -> tuple[str, ...]:
    """The first candidates; those that are known to share the owner's host come later, in its executor last."""
    if owner not in hosts:
        return tuple(candidates[:count])
    place = hosts[owner].split("/")
    return tuple(sorted(candidates, key=lambda node: _shared(place, hosts.get(node, "").split("/")))[:count])


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many parts of two places are the same, from the outside in."""
    return sum(1 for _ in takewhile(bool, map(eq, one, other)))
