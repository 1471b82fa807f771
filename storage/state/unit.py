"""What state belongs to: the unit that is saved, moved and restored as a whole."""

from dataclasses import dataclass
from operator import index
from typing import Any, Self

from storage.errors import InvalidStorageInput
from storage.stores.keys import name_segment


@dataclass(frozen=True, slots=True, order=True)
class Unit:
    """A task, or a named set of keys of a task that moves on its own; a task comes before its sets.

    Invariant: the task is a whole number from 0 on. `keys` is the name of the set, empty for the task itself (the
    keys of a task that are in none of its sets).
    """

    task: int
    keys: str = ""

    def __post_init__(self) -> None:
        if type(self.task) is not int and not isinstance(self.task, bool) and hasattr(self.task, "__index__"):
            object.__setattr__(self, "task", index(self.task))  # NumPy's, which JSON cannot write
        if not isinstance(self.task, int) or isinstance(self.task, bool) or self.task < 0:
            raise InvalidStorageInput(f"{self.task!r} is not the number of a task. Give a whole number from 0 on.")

    @classmethod
    def of_task(cls, task: int) -> Self:
        return cls(task)

    @classmethod
    def of_keys(cls, task: int, name: str) -> Self:
        if not name:
            raise InvalidStorageInput(f"a set of keys of task {task} without a name. Name it, or use Unit.of_task.")
        return cls(task, name)

    @property
    def segment(self) -> str:
        """This unit in the name of an object: `task-00017` or `task-00017-keys-hot`."""
        return f"task-{self.task:05d}" + (f"-keys-{name_segment(self.keys)}" if self.keys else "")

    def to_json(self) -> list[Any]:
        return [self.task, self.keys] if self.keys else [self.task]

    @classmethod
    def from_json(cls, document: list[Any]) -> Self:
        return cls(*document)

    def __str__(self) -> str:
        return f"task {self.task}" + (f", keys {self.keys!r}" if self.keys else "")
