"""The identifier of a unit: a part of one stage whose state is saved, moved and restored as a whole."""

from operator import index
from typing import Any, NamedTuple, Self, SupportsIndex

from storage.errors import InvalidStorageInput

_NUMBERS_PER_STAGE = 1 << 20
# Upper limit of the tasks of a job, of which all stages have the same number. The upper half of a stage's numbers is
# that of the guests.
TASKS_PER_STAGE = _NUMBERS_PER_STAGE // 2


class _Fields(NamedTuple):
    stage: int
    guests: bool
    task: int


class UnitId(_Fields):
    """Task `task` of stage `stage`, or the guests of that task: keys of other tasks that a table places beside it.

    Identifiers sort by stage, then tasks before guests, which is the order of their numbers.

    Invariant: 0 <= stage and 0 <= task < TASKS_PER_STAGE.
    """

    __slots__ = ()

    def __new__(cls, stage: SupportsIndex, task: SupportsIndex, guests: bool = False) -> Self:
        unit = super().__new__(cls, _as_int(stage), guests, _as_int(task))
        if unit.stage < 0 or not 0 <= unit.task < TASKS_PER_STAGE:
            raise InvalidStorageInput(
                f"there is no unit of stage {stage} and task {task}. Count stages from 0, and tasks from 0 to "
                f"{TASKS_PER_STAGE - 1}."
            )
        return unit

    def __getnewargs__(self) -> tuple[int, int, bool]:  # in the order of the constructor
        return self.stage, self.task, self.guests

    @classmethod
    def from_number(cls, number: SupportsIndex) -> Self:
        """Return the unit with this number."""
        stage, place = divmod(_as_int(number), _NUMBERS_PER_STAGE)
        return cls(stage, place % TASKS_PER_STAGE, place >= TASKS_PER_STAGE)

    @property
    def number(self) -> int:
        """One integer, as logs and arrays hold it: stage * 2**20 + task, and 2**19 more for guests."""
        return self.stage * _NUMBERS_PER_STAGE + self.guests * TASKS_PER_STAGE + self.task

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
        task = f"guests of task {self.task}" if self.guests else f"task {self.task}"
        return task + (f" of stage {self.stage}" if self.stage else "")


def _as_int(value: SupportsIndex) -> int:
    """Return a Python int for any integer, NumPy's included, which JSON could not write."""
    if type(value) is int:
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidStorageInput(f"{value!r} does not number a stage, task or unit. Give an integer from 0 on.")
    return index(value)
