"""Interval routing: a key's task is its hash modulo the number of tasks, and every node owns some tasks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from elastic.errors import InvalidJob
from elastic.routing.hashing import to_tasks
from elastic.routing.unit_numbers import UnitNumbers
from migration import Ownership, ownership_from_dict
from storage.state import TASKS_PER_STAGE, UnitId


@dataclass(frozen=True)
class IntervalRouting:
    """Every task of every stage is on the node that owns it in the assignment.

    The planners produce intervals; scattered assignments work too, with more and smaller pieces per node.
    """

    kind: ClassVar[str] = "intervals"
    assignment: Ownership
    epoch: int = 0

    def __post_init__(self) -> None:
        if self.assignment.tasks > TASKS_PER_STAGE:
            raise InvalidJob(
                f"a job can have at most {TASKS_PER_STAGE:,} tasks, but {self.assignment.tasks:,} were requested. "
                "Use fewer tasks."
            )

    def unit_numbers(self, hashes: npt.NDArray[np.int64], stage: int) -> UnitNumbers:
        numbers = to_tasks(hashes, self.assignment.tasks)
        numbers += UnitId(stage, 0).number
        return numbers

    def owners(self, unit: UnitId) -> tuple[str, ...]:
        return (self.assignment.owners[unit.task],)

    def units(self, stage: int) -> Sequence[UnitId]:
        return [UnitId(stage, task) for task in range(self.assignment.tasks)]

    def units_on(self, node: str, stages: Iterable[int]) -> list[UnitId]:
        tasks = self.assignment.tasks_of(node)
        return [UnitId(stage, task) for stage in sorted(stages) for task in tasks]

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "epoch": self.epoch, "assignment": self.assignment.to_dict()}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        return cls(ownership_from_dict(document["assignment"]), document["epoch"])
