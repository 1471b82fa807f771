"""Minimal versions of two routings that are not intervals, to show that the protocol allows them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from elastic.routing.hashing import to_tasks
from elastic.routing.unit_numbers import UnitNumbers
from storage.state import UnitId


@dataclass(frozen=True)
class KeyTableRouting:
    """Hashes all keys, except that each key in the table has a unit of its own, numbered after the tasks."""

    kind: ClassVar[str] = "key-table"
    nodes: tuple[str, ...]
    tasks: int
    table: Mapping[int, str]  # hash of a key -> its node
    epoch: int = 0

    def unit_numbers(self, hashes: npt.NDArray[np.int64], stage: int) -> UnitNumbers:
        tasks = to_tasks(hashes, self.tasks)
        for position, key in enumerate(self.table):
            tasks[hashes == key] = self.tasks + position
        return tasks + UnitId(stage, 0).number

    def owners(self, unit: UnitId) -> tuple[str, ...]:
        if unit.task >= self.tasks:
            return (list(self.table.values())[unit.task - self.tasks],)
        return (self.nodes[unit.task % len(self.nodes)],)

    def units(self, stage: int) -> Sequence[UnitId]:
        return [UnitId(stage, task) for task in range(self.tasks + len(self.table))]

    def units_on(self, node: str, stages: Iterable[int]) -> list[UnitId]:
        return [unit for stage in sorted(stages) for unit in self.units(stage) if node in self.owners(unit)]

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "kind": self.kind, "table": list(self.table.items())}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        return cls(tuple(document["nodes"]), document["tasks"], dict(document["table"]), document["epoch"])


@dataclass(frozen=True)
class TwoChoicesRouting:
    """Every key has two units, and a sender takes the one to which it has sent less; every unit has a standby."""

    kind: ClassVar[str] = "two-choices"
    nodes: tuple[str, ...]
    tasks: int
    epoch: int = 0
    sent: dict[int, int] = field(default_factory=dict, compare=False)

    def choices(self, key: int) -> tuple[int, int]:
        return key % self.tasks, (key // self.tasks) % self.tasks

    def unit_numbers(self, hashes: npt.NDArray[np.int64], stage: int) -> UnitNumbers:
        return np.array([UnitId(stage, self._choose(key)).number for key in hashes.tolist()], np.int64)

    def _choose(self, key: int) -> int:
        task = min(self.choices(key), key=lambda task: self.sent.get(task, 0))
        self.sent[task] = self.sent.get(task, 0) + 1
        return task

    def owners(self, unit: UnitId) -> tuple[str, ...]:
        first = unit.task % len(self.nodes)
        return self.nodes[first], self.nodes[(first + 1) % len(self.nodes)]

    def units(self, stage: int) -> Sequence[UnitId]:
        return [UnitId(stage, task) for task in range(self.tasks)]

    def units_on(self, node: str, stages: Iterable[int]) -> list[UnitId]:
        return [unit for stage in sorted(stages) for unit in self.units(stage) if node in self.owners(unit)]

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "nodes": self.nodes, "tasks": self.tasks, "epoch": self.epoch}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        return cls(tuple(document["nodes"]), document["tasks"], document["epoch"])
