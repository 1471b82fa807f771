"""The identifier of a unit: one task of one stage, whose state is saved, moved and restored as a whole."""

from operator import index
from typing import Any, NamedTuple, Self, SupportsIndex

from storage.errors import InvalidStorageInput

TASKS_PER_STAGE = 1 << 20  # upper limit of the tasks of a job; all its stages have the same number of tasks


class _Fields(NamedTuple):
    stage: int
    task: int


class UnitId(_Fields):
    """Task `task` of stage `stage`. Identifiers sort by stage, then task, which is the order of their numbers.

    Invariant: 0 <= stage and 0 <= task < TASKS_PER_STAGE.
    """

    __slots__ = ()

    def __new__(cls, stage: SupportsIndex, task: SupportsIndex) -> Self:
        unit = super().__new__(cls, _as_int(stage), _as_int(task))
        if unit.stage < 0 or not 0 <= unit.task < TASKS_PER_STAGE:
            raise InvalidStorageInput(
                f"there is no unit of stage {stage} and task {task}. Count stages from 0, and tasks from 0 to "
                f"{TASKS_PER_STAGE - 1}."
            )
        return unit

    @classmethod
    def from_number(cls, number: SupportsIndex) -> Self:
        """Return the unit with this number."""
        return cls(*divmod(_as_int(number), TASKS_PER_STAGE))

    @property
    def number(self) -> int:
        """One integer for stage and task, as logs and arrays hold it: stage * TASKS_PER_STAGE + task."""
        return self.stage * TASKS_PER_STAGE + self.task

    @property
    def segment(self) -> str:
        """This unit in the key of an object: `task-00017`, with the unit's number."""
        return f"task-{self.number:05d}"

    def to_json(self) -> list[Any]:
        return [self.number]

    @classmethod
    def from_json(cls, document: list[Any]) -> Self:
        (number,) = document
        return cls.from_number(number)

    def __str__(self) -> str:
        return f"task {self.task}" + (f" of stage {self.stage}" if self.stage else "")


def _as_int(value: SupportsIndex) -> int:
    """Return a Python int for any integer, NumPy's included, which JSON could not write."""
    if type(value) is int:
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidStorageInput(f"{value!r} does not number a stage, task or unit. Give an integer from 0 on.")
    return index(value)
