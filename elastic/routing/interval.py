"""Interval routing: a key's task is its hash modulo the number of tasks, and every node owns some tasks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from elastic.errors import InvalidJob
from elastic.routing.hashing import task_of
from elastic.routing.protocol import Slots
from elastic.routing.slots import SLOTS_PER_STAGE, slot_of, task_of_slot
from migration import Ownership, ownership_from_dict
from storage.state import Unit


@dataclass(frozen=True)
class IntervalRouting:
    """Every task of every stage is on the node that the assignment gives it to.

    Intervals are what the planners make; scattered assignments work too, with more and smaller pieces per node.
    """

    kind: ClassVar[str] = "intervals"
    assignment: Ownership
    epoch: int = 0
    wants_heavy_hitters: bool = False

    def __post_init__(self) -> None:
        if self.assignment.tasks > SLOTS_PER_STAGE:
            raise InvalidJob(f"a stage can have {SLOTS_PER_STAGE:,} tasks, not {self.assignment.tasks:,}. Use fewer.")

    def slots_of(self, hashes: npt.NDArray[np.int64], stage: int) -> Slots:
        slots = task_of(hashes, self.assignment.tasks)
        slots += slot_of(stage, 0)
        return slots

    def owners(self, slot: int) -> tuple[str, ...]:
        return (self.assignment.owners[task_of_slot(slot)],)

    def unit(self, slot: int) -> Unit:
        return Unit.of_task(slot)

    def slots(self, stage: int) -> Sequence[int]:
        return range(slot_of(stage, 0), slot_of(stage, self.assignment.tasks))

    def slots_on(self, node: str, stages: Iterable[int]) -> list[int]:
        tasks = self.assignment.tasks_of(node)
        return [slot_of(stage, task) for stage in sorted(stages) for task in tasks]

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "epoch": self.epoch, "assignment": self.assignment.to_dict()}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        return cls(ownership_from_dict(document["assignment"]), document["epoch"])
