"""Assignments for interval routing: every node owns one contiguous interval of tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from operator import index, sub
from typing import Any, ClassVar, Self

from migration.errors import InvalidAssignment
from migration.model.documents import parse_json
from migration.model.ownership import Ownership, Run, check_names, read_runs
from migration.model.workload import Workload


@dataclass(frozen=True)
class Assignment(Ownership):
    """Node i owns tasks [boundaries[i], boundaries[i+1]).

    Invariant, checked here once: `boundaries` rises from 0 to m and has one entry more than `nodes`, so every
    task has exactly one owner. Equal neighbours mean an idle node. Immutable, hashable, O(n) space.
    """

    kind: ClassVar[str] = "intervals"
    nodes: tuple[str, ...]
    boundaries: tuple[int, ...]

    def __post_init__(self) -> None:
        nodes = check_names(self.nodes)
        try:
            boundaries = tuple(map(index, self.boundaries))
        except TypeError as cause:
            raise InvalidAssignment(f"boundaries {self.boundaries!r} are not whole numbers.") from cause
        if len(boundaries) != len(nodes) + 1:
            raise InvalidAssignment(
                f"{len(nodes)} nodes need {len(nodes) + 1} boundaries, not {len(boundaries)}. "
                "Start at 0 and end at the number of tasks."
            )
        if boundaries[0] != 0 or boundaries[-1] < 1 or sorted(boundaries) != list(boundaries):
            raise InvalidAssignment(f"boundaries {boundaries} do not rise from 0 to the number of tasks. Sort them.")
        object.__setattr__(self, "nodes", nodes)
        object.__setattr__(self, "boundaries", boundaries)

    @classmethod
    def even(cls, tasks: int, nodes: int | Sequence[str]) -> Self:
        """Interval lengths that differ by at most one; a count makes nodes named node-1, node-2, ..."""
        if hasattr(nodes, "__index__"):
            nodes = [f"node-{number}" for number in range(1, index(nodes) + 1)]
        names = check_names(nodes)
        count = _to_int(tasks)
        return cls(names, tuple(count * number // len(names) for number in range(len(names) + 1)))

    @property
    def tasks(self) -> int:
        return self.boundaries[-1]

    @property
    def lengths(self) -> tuple[int, ...]:
        """The number of tasks of every node."""
        return tuple(map(sub, self.boundaries[1:], self.boundaries))

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        every = map(Run, self.boundaries, self.boundaries[1:], self.nodes)
        return tuple([run for run in every if run.start < run.stop])

    @cached_property
    def owners(self) -> tuple[str, ...]:
        return tuple(chain.from_iterable(map(repeat, self.nodes, self.lengths)))

    def loads(self, workload: Workload) -> dict[str, float]:
        before = workload.work_prefix.take(self.boundaries).tolist()
        return dict(zip(self.nodes, map(sub, before[1:], before), strict=True))

    def __str__(self) -> str:
        return "  ".join(f"{run.node} [{run.start}, {run.stop})" for run in self.runs)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        tasks, nodes = read_runs(document)
        boundaries = [0]
        for name, runs in nodes:
            if len(runs) > 1:
                raise InvalidAssignment(
                    f"node {name!r} owns {len(runs)} separate runs. "
                    "Read it with ownership_from_dict(), or give every node one interval."
                )
            start, stop = runs[0] if runs else (boundaries[-1], boundaries[-1])
            if start != boundaries[-1]:
                raise InvalidAssignment(
                    f"node {name!r} starts at task {start}, not at {boundaries[-1]}. List nodes in task order."
                )
            boundaries.append(stop)
        if boundaries[-1] != tasks:
            raise InvalidAssignment(f"the intervals end at {boundaries[-1]}, not at {tasks} tasks.")
        return cls(tuple(name for name, _ in nodes), tuple(boundaries))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls.from_dict(parse_json(text, InvalidAssignment))


def _to_int(value: int) -> int:
    """NumPy's integers as Python's, whose sums do not overflow; other values are left to the invariant's check."""
    return index(value) if hasattr(value, "__index__") else value
