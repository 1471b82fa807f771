"""A table of keys that do not live where their hash leads: from the hash of a key to a task."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from elastic.errors import InvalidJob
from elastic.routing.table_lookup import TableIndex, group_rows
from elastic.routing.unit_numbers import UnitNumbers

Hashes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class KeyTable:
    """Hashes of keys, ascending, and the task that each is a guest of. Immutable; two tables compare by their entries.

    `group_rows` costs 5 to 25 ns per row, for any number of entries (see `table_lookup`). The index that it needs
    is built on first use, in less than a millisecond for 3,000 entries, and does not travel with the table.

    Invariant: the hashes ascend and are distinct, and there is one task from 0 on for each.
    """

    hashes: Hashes
    tasks: npt.NDArray[np.int32]

    def __post_init__(self) -> None:
        for name, kind in (("hashes", np.int64), ("tasks", np.int32)):
            column = np.array(getattr(self, name), kind)
            column.setflags(write=False)
            object.__setattr__(self, name, column)
        if len(self.hashes) != len(self.tasks):
            raise InvalidJob(f"{len(self.hashes)} hashes cannot have {len(self.tasks)} tasks. Give one task per hash.")
        if (self.hashes[1:] <= self.hashes[:-1]).any():
            raise InvalidJob("the hashes of a key table must ascend, each once. Use KeyTable.from_entries().")
        if len(self.tasks) and self.tasks.min() < 0:
            raise InvalidJob(f"there is no task {self.tasks.min()}. Count tasks from 0.")

    @classmethod
    def from_entries(cls, entries: Mapping[int, int]) -> Self:
        """Return the table that leads each of these hashes to its task."""
        hashes = sorted(entries)
        return cls(np.array(hashes, np.int64), np.array([entries[key] for key in hashes], np.int32))

    def update(self, hashes: Hashes, tasks: npt.NDArray[np.int64]) -> Self:
        """Return the table in which these keys are guests of these tasks; a negative task removes the entry of a key.

        The hashes must be distinct. O((E + U) log (E + U)) for E entries and U updates.
        """
        kept = ~np.isin(self.hashes, hashes)
        entered = tasks >= 0
        merged = np.concatenate([self.hashes[kept], hashes[entered]])
        order = np.argsort(merged)
        return type(self)(merged[order], np.concatenate([self.tasks[kept], tasks[entered]])[order])

    def group_rows(self, hashes: Hashes, tasks: int, first_task: int, first_guest: int) -> UnitNumbers:
        """Return the number of each row's unit: `first_guest` + task of its entry, or `first_task` + hash mod tasks."""
        return group_rows(self._index, hashes, tasks, first_task, first_guest)

    def to_json(self) -> list[list[int]]:
        return [self.hashes.tolist(), self.tasks.tolist()]

    @classmethod
    def from_json(cls, document: list[list[int]]) -> Self:
        hashes, tasks = document
        return cls(np.array(hashes, np.int64), np.array(tasks, np.int32))

    @cached_property
    def _index(self) -> TableIndex:
        return TableIndex.build(self.hashes, self.tasks)

    def __len__(self) -> int:
        return len(self.hashes)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.hashes.tolist(), self.tasks.tolist(), strict=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KeyTable):
            return NotImplemented
        return np.array_equal(self.hashes, other.hashes) and np.array_equal(self.tasks, other.tasks)

    def __hash__(self) -> int:
        return hash((self.hashes.tobytes(), self.tasks.tobytes()))

    def __repr__(self) -> str:
        return f"KeyTable({len(self)} entries)"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.hashes, self.tasks)


EMPTY_TABLE = KeyTable.from_entries({})
