"""Two routings that are not intervals, as small as can be: what the protocol must leave room for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from elastic.routing.hashing import task_of
from elastic.routing.protocol import Slots
from elastic.routing.slots import slot_of, task_of_slot
from storage.state import Unit


@dataclass(frozen=True)
class KeyTableRouting:
    """Hash for all, but listed keys live where the table says: each has a slot of its own, numbered after the tasks."""

    kind: ClassVar[str] = "key-table"
    nodes: tuple[str, ...]
    tasks: int
    table: Mapping[int, str]  # hash of a key -> the node that it lives on
    epoch: int = 0
    wants_heavy_hitters: bool = True

    def slots_of(self, hashes: npt.NDArray[np.int64], stage: int) -> Slots:
        tasks = task_of(hashes, self.tasks)
        for place, key in enumerate(self.table):
            tasks[hashes == key] = self.tasks + place
        return tasks + slot_of(stage, 0)

    def owners(self, slot: int) -> tuple[str, ...]:
        task = task_of_slot(slot)
        if task >= self.tasks:
            return (list(self.table.values())[task - self.tasks],)
        return (self.nodes[task % len(self.nodes)],)

    def unit(self, slot: int) -> Unit:
        task = task_of_slot(slot)
        if task < self.tasks:
            return Unit.of_task(slot)
        key = list(self.table)[task - self.tasks]
        return Unit.of_keys(slot - task + key % self.tasks, str(key))

    def slots(self, stage: int) -> Sequence[int]:
        return range(slot_of(stage, 0), slot_of(stage, self.tasks + len(self.table)))

    def slots_on(self, node: str, stages: Iterable[int]) -> list[int]:
        return [slot for stage in sorted(stages) for slot in self.slots(stage) if node in self.owners(slot)]

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "kind": self.kind, "table": list(self.table.items())}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        return cls(tuple(document["nodes"]), document["tasks"], dict(document["table"]), document["epoch"])


@dataclass(frozen=True)
class TwoChoicesRouting:
    """Every key has two slots, and a sender takes the one to which it has sent less; every slot has a backup node."""

    kind: ClassVar[str] = "two-choices"
    nodes: tuple[str, ...]
    tasks: int
    epoch: int = 0
    wants_heavy_hitters: bool = False
    sent: dict[int, int] = field(default_factory=dict, compare=False)

    def choices(self, key: int) -> tuple[int, int]:
        return key % self.tasks, (key // self.tasks) % self.tasks

    def slots_of(self, hashes: npt.NDArray[np.int64], stage: int) -> Slots:
        return np.array([slot_of(stage, self._chosen(key)) for key in hashes.tolist()], np.int64)

    def _chosen(self, key: int) -> int:
        chosen = min(self.choices(key), key=lambda task: self.sent.get(task, 0))
        self.sent[chosen] = self.sent.get(chosen, 0) + 1
        return chosen

    def owners(self, slot: int) -> tuple[str, ...]:
        first = task_of_slot(slot) % len(self.nodes)
        return self.nodes[first], self.nodes[(first + 1) % len(self.nodes)]

    def unit(self, slot: int) -> Unit:
        return Unit.of_task(slot)

    def slots(self, stage: int) -> Sequence[int]:
        return range(slot_of(stage, 0), slot_of(stage, self.tasks))

    def slots_on(self, node: str, stages: Iterable[int]) -> list[int]:
        return [slot for stage in sorted(stages) for slot in self.slots(stage) if node in self.owners(slot)]

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "nodes": self.nodes, "tasks": self.tasks, "epoch": self.epoch}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        return cls(tuple(document["nodes"]), document["tasks"], document["epoch"])
