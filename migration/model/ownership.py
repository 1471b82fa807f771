"""Which node owns which task: the base of contiguous and scattered assignments."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from migration.errors import InvalidAssignment

if TYPE_CHECKING:
    from migration.model.workload import Workload


class Run(NamedTuple):
    """Tasks start..stop-1, all owned by one node."""

    start: int
    stop: int
    node: str


class Ownership(ABC):
    """Every task 0..m-1 has exactly one owner; a node may own nothing (it is then idle).

    Plans compare assignments by their `runs`, so contiguous and scattered ones are measured alike.
    """

    kind: ClassVar[str]  # tells contiguous from scattered in documents
    nodes: tuple[str, ...]

    @property
    @abstractmethod
    def tasks(self) -> int:
        """The number of tasks, m."""

    @cached_property
    @abstractmethod
    def runs(self) -> tuple[Run, ...]:
        """Maximal runs of tasks with one owner, in task order, none of them empty."""

    @cached_property
    def owners(self) -> tuple[str, ...]:
        """The owner of every task."""
        return tuple(chain.from_iterable(repeat(run.node, run.stop - run.start) for run in self.runs))

    def tasks_of(self, node: str) -> list[int]:
        """The tasks of one node, ascending."""
        return [task for run in self.runs if run.node == node for task in range(run.start, run.stop)]

    def loads(self, workload: "Workload") -> dict[str, float]:
        """The work of every node, idle ones included."""
        prefix = workload.work_prefix
        loads = dict.fromkeys(self.nodes, 0.0)
        for start, stop, node in self.runs:
            loads[node] += float(prefix[stop] - prefix[start])
        return loads

    def to_dict(self) -> dict[str, Any]:
        """Runs [start, stop) by node, in node order: the same document for every kind of ownership."""
        by_node: dict[str, list[list[int]]] = {node: [] for node in self.nodes}
        for run in self.runs:
            by_node[run.node].append([run.start, run.stop])
        nodes = [{"name": node, "runs": runs} for node, runs in by_node.items()]
        return {"kind": self.kind, "tasks": self.tasks, "nodes": nodes}

    def to_json(self) -> str:
        return json.dumps(self.to_dict())


def check_names(nodes: Sequence[str]) -> tuple[str, ...]:
    """Return node names as a tuple; raise unless they are distinct, non-empty strings."""
    names = tuple(nodes)
    if not (set(map(type, names)) <= {str} and all(names)):
        wrong = next(name for name in names if type(name) is not str or not name)
        raise InvalidAssignment(f"{wrong!r} is not a node name. Give every node a non-empty string.")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidAssignment(f"node {twice!r} appears twice. Give every node its own name.")
    if not names:
        raise InvalidAssignment("an assignment needs at least one node. Name at least one.")
    return names


def read_runs(document: Mapping[str, Any]) -> tuple[int, list[tuple[str, list[tuple[int, int]]]]]:
    """Read the number of tasks and every node's runs from what `to_dict` wrote."""
    try:
        tasks = int(document["tasks"])
        nodes = [
            (node["name"], [(int(start), int(stop)) for start, stop in node["runs"]]) for node in document["nodes"]
        ]
    except (KeyError, TypeError, ValueError) as cause:
        raise InvalidAssignment(
            "an assignment document needs 'tasks' and 'nodes' with 'name' and 'runs'. Write it with to_json()."
        ) from cause
    return tasks, nodes


def check_coverage(tasks: int, runs: Iterable[Run]) -> list[Run]:
    """Return the runs in task order; raise unless they cover tasks 0..tasks-1 exactly once."""
    ordered = sorted(run for run in runs if run.start != run.stop)
    reached, last = 0, "the first task"
    for run in ordered:
        if run.start > run.stop or run.start < 0 or run.stop > tasks:
            raise InvalidAssignment(
                f"[{run.start}, {run.stop}) of {run.node!r} is not an interval of tasks 0..{tasks - 1}."
            )
        if run.start < reached:
            raise InvalidAssignment(
                f"task {run.start} belongs to both {last} and {run.node!r}. Let every task have exactly one owner."
            )
        if run.start > reached:
            break
        reached, last = run.stop, repr(run.node)
    if reached != tasks:
        raise InvalidAssignment(f"task {reached} has no owner. Let every task have exactly one owner.")
    return ordered
