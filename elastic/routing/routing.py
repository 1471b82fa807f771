"""The routing of a job: which unit a row belongs to, and which nodes have that unit.

Three independent choices make one value: the *groupings* say which unit a row of a stage belongs to, the *assignment*
which node owns the tasks and with them their units, and the *standbys* which other nodes get the rows of a task too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from elastic.errors import InvalidJob
from elastic.routing.groupings import Grouping, Groupings, PartialGrouping
from elastic.routing.unit_numbers import UnitNumbers
from migration import Ownership, ownership_from_dict
from storage.state import TASKS_PER_STAGE, UnitId

# Kinds of the stored document. A version that knows hashed tasks only refuses the second.
_INTERVALS, _GROUPED = "intervals", "grouped"


@dataclass(frozen=True)
class Routing:
    """One version of the routing; an immutable value that every sender gets. A change has a higher epoch.

    The planners produce intervals of tasks; scattered assignments work too, with more and smaller pieces per node.
    `standbys` has the standby nodes of every task, or is empty if no task has any.

    Invariant: groupings, assignment and standbys are of the same tasks, and no node has a task twice.
    """

    assignment: Ownership
    groupings: Groupings
    epoch: int = 0
    standbys: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        tasks = self.assignment.tasks
        if tasks > TASKS_PER_STAGE:
            raise InvalidJob(
                f"a job can have at most {TASKS_PER_STAGE:,} tasks, but {tasks:,} were requested. Use fewer tasks."
            )
        if self.groupings.tasks != tasks or len(self.standbys) not in (0, tasks):
            raise InvalidJob(
                f"groupings of {self.groupings.tasks} and standbys of {len(self.standbys)} tasks do not fit an "
                f"assignment of {tasks} tasks. Make all of them for the same job."
            )
        for task, (owner, standbys) in enumerate(zip(self.assignment.owners, self.standbys, strict=False)):
            if len({owner, *standbys}) <= len(standbys):
                raise InvalidJob(f"task {task} has a node twice: {owner}, {', '.join(standbys)}. Name each node once.")

    @classmethod
    def by_hash(cls, assignment: Ownership, epoch: int = 0) -> Self:
        """Return the routing of a job whose stages are all grouped by hash."""
        return cls(assignment, Groupings(assignment.tasks), epoch)

    def with_assignment(self, assignment: Ownership, epoch: int, standbys: tuple[tuple[str, ...], ...] = ()) -> Self:
        """Return the routing after tasks or standbys have moved."""
        return type(self)(assignment, self.groupings, epoch, standbys)

    def with_groupings(self, by_stage: Sequence[Grouping], epoch: int) -> Self:
        """Return the routing after rows of some stages are grouped in another way."""
        groupings = Groupings(self.groupings.tasks, tuple(by_stage), epoch)
        return type(self)(self.assignment, groupings, epoch, self.standbys)

    def with_splits(self, stage: int, splits: str, epoch: int) -> Self:
        """Return the routing after a partial stage splits other keys.

        The epoch of the groupings stays: rows that senders placed before are right where they are.
        """
        by_stage = list(self.groupings.by_stage)
        before = self.groupings[stage]
        if not isinstance(before, PartialGrouping):
            raise InvalidJob(f"stage {stage} is grouped by {before.kind}. Split the keys of a partial stage.")
        by_stage[stage] = replace(before, splits=splits)
        groupings = replace(self.groupings, by_stage=tuple(by_stage))
        return type(self)(self.assignment, groupings, epoch, self.standbys)

    def unit_numbers(self, hashes: npt.NDArray[np.int64], stage: int) -> UnitNumbers:
        """Return the unit number of each row, from the hash of its key."""
        return self.groupings.unit_numbers(hashes, stage)

    def owners(self, unit: UnitId) -> tuple[str, ...]:
        """Return the nodes that get the rows of a unit; the engine takes the output of the first."""
        standbys = self.standbys[unit.task] if self.standbys else ()
        return (self.assignment.owners[unit.task], *standbys)

    def units(self, stage: int) -> Sequence[UnitId]:
        """Return all units of a stage, ascending."""
        return self.groupings.units(stage)

    def units_on(self, node: str, stages: Iterable[int]) -> list[UnitId]:
        """Return the units of these stages whose rows a node gets, ascending; none for an unknown node."""
        tasks = set(self.assignment.tasks_of(node))
        tasks.update(task for task, standbys in enumerate(self.standbys) if node in standbys)
        return [unit for stage in sorted(stages) for unit in self.units(stage) if unit.task in tasks]

    def to_json(self) -> dict[str, Any]:
        """Return a document for `from_json`; that of hashed stages is what every version has stored."""
        document = {"kind": _INTERVALS, "epoch": self.epoch, "assignment": self.assignment.to_dict()}
        if self.groupings.are_hashes and not self.standbys:
            return document
        standbys = [list(nodes) for nodes in self.standbys]
        return {**document, "kind": _GROUPED, "groupings": self.groupings.to_json(), "standbys": standbys}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        kind = document.get("kind")
        if kind not in (_INTERVALS, _GROUPED):
            raise InvalidJob(
                f"unknown routing kind {kind!r}, only {_INTERVALS!r} and {_GROUPED!r}. "
                "Open the store with the version that wrote it."
            )
        assignment, epoch = ownership_from_dict(document["assignment"]), document["epoch"]
        if kind == _INTERVALS:
            return cls.by_hash(assignment, epoch)
        standbys = tuple(tuple(nodes) for nodes in document["standbys"])
        return cls(assignment, Groupings.from_json(document["groupings"]), epoch, standbys)
