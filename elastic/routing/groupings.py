"""Groupings: how the rows of a stage find their unit.

- `hash`: the task is the hash of the key modulo the number of tasks.
- `table` (paper 000): as `hash`, except for keys in a small table. A key of the table lives among the *guests* of the
  task that its entry names: a second unit of that task, which goes wherever the task goes. So the units of a job do not
  change when the table does, and entries stay valid when tasks move.
- `partial` (paper 001): rows of a key may go to several tasks; see `elastic.routing.partial`, which chooses.
- `shuffle` (paper 004): a row may go to any task; see `elastic.routing.shuffle.placer`, which chooses.

The sender asks once per row and logs the answer, so a replay never asks again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from elastic.errors import InvalidJob
from elastic.routing.hashing import to_tasks
from elastic.routing.key_table import EMPTY_TABLE, KeyTable
from elastic.routing.shuffle.schedulers import DEFAULT_SCHEDULER, ROUND_ROBIN, SCHEDULERS
from elastic.routing.unit_numbers import UnitNumbers
from storage.state import UnitId

Hashes = npt.NDArray[np.int64]


class Grouping(Protocol):
    """How the rows of one stage find their unit; an immutable value that every sender and node gets.

    Invariant: every unit whose number `unit_numbers` returns is among `units`, for the same stage and tasks.
    """

    kind: ClassVar[str]  # its name in GROUPINGS
    is_by_key: ClassVar[bool]  # whether the hash decides on the unit; else a `UnitChooser` does, by load
    needs_key: ClassVar[bool]  # whether a row without a key has no unit

    def unit_numbers(self, hashes: Hashes, stage: int, tasks: int) -> UnitNumbers:
        """Return the unit number of each row, from the hash of its key; vectorised, since it sees every row."""
        ...

    def units(self, stage: int, tasks: int) -> Sequence[UnitId]:
        """Return all units of the stage, ascending."""
        ...

    def check(self, tasks: int) -> None:
        """Raise `InvalidJob` if a job with this number of tasks cannot use the grouping."""
        ...

    def to_json(self) -> Any: ...


class _TasksOnly:
    """Base of groupings whose units are the tasks of a stage, and whose rows are in the task of their hash.

    A `UnitChooser` may choose another task, where the grouping lets it.
    """

    def unit_numbers(self, hashes: Hashes, stage: int, tasks: int) -> UnitNumbers:
        numbers = to_tasks(hashes, tasks)
        if stage:
            numbers += UnitId(stage, 0).number
        return numbers

    def units(self, stage: int, tasks: int) -> Sequence[UnitId]:
        return [UnitId(stage, task) for task in range(tasks)]

    def check(self, tasks: int) -> None: ...


@dataclass(frozen=True)
class HashGrouping(_TasksOnly):
    """Every key is in the task of its hash."""

    kind: ClassVar[str] = "hash"
    is_by_key: ClassVar[bool] = True
    needs_key: ClassVar[bool] = True

    def to_json(self) -> Any:
        return None

    @classmethod
    def from_json(cls, _: Any) -> "HashGrouping":
        return HASH


@dataclass(frozen=True)
class TableGrouping:
    """Keys in the table are guests of the task that the table names; all others are in the task of their hash.

    A key whose hash is among `protected`, ascending, belongs among guests wherever it is, because these have standbys.
    After a restart with other protected keys some are not there yet: see `find_displaced`.
    """

    kind: ClassVar[str] = "table"
    is_by_key: ClassVar[bool] = True
    needs_key: ClassVar[bool] = True
    table: KeyTable = EMPTY_TABLE
    protected: tuple[int, ...] = ()

    @classmethod
    def declare(cls, protected: Sequence[int], tasks: int) -> "TableGrouping":
        """Return the grouping that a job starts with: the protected keys are guests of the tasks of their hashes."""
        ordered = tuple(sorted(set(protected)))
        hashes = np.array(ordered, np.int64)
        return cls(KeyTable(hashes, to_tasks(hashes, tasks).astype(np.int32)), ordered)

    def protect(self, protected: Sequence[int]) -> "TableGrouping":
        """Return the grouping of a job that continues with other protected keys, which have not moved yet."""
        return TableGrouping(self.table, tuple(sorted(set(protected))))

    def move(self, hashes: Hashes, targets: npt.NDArray[np.int64], tasks: int) -> "TableGrouping":
        """Return the grouping after keys have become guests of their targets; those with a negative one go home.

        A key that belongs in the task of its hash needs no entry, unless it is protected: then it is a guest there.
        """
        homes = to_tasks(hashes, tasks)
        at_home = np.where(self.are_protected(hashes), homes, -1)
        return TableGrouping(
            self.table.update(hashes, np.where((targets < 0) | (targets == homes), at_home, targets)), self.protected
        )

    def are_protected(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        return np.isin(hashes, np.array(self.protected, np.int64))

    def find_displaced(self, tasks: int) -> Hashes:
        """Return the keys that a change of the protected keys has left in the wrong unit of their task.

        These are protected keys without an entry, and others whose entry leads to the task of their own hash.
        """
        protected, hashes = np.array(self.protected, np.int64), self.table.hashes
        missing = protected[~np.isin(protected, hashes)]
        left = hashes[(self.table.tasks == to_tasks(hashes, tasks)) & ~self.are_protected(hashes)]
        return np.concatenate([missing, left])

    def unit_numbers(self, hashes: Hashes, stage: int, tasks: int) -> UnitNumbers:
        if not len(self.table):
            return HASH.unit_numbers(hashes, stage, tasks)
        first_task, first_guest = UnitId(stage, 0).number, UnitId(stage, 0, guests=True).number
        return self.table.group_rows(hashes, tasks, first_task, first_guest)

    def units(self, stage: int, tasks: int) -> Sequence[UnitId]:
        return [UnitId(stage, task, guests) for guests in (False, True) for task in range(tasks)]

    def check(self, tasks: int) -> None:
        if len(self.table) and self.table.tasks.max() >= tasks:
            raise InvalidJob(
                f"the key table names task {self.table.tasks.max()}, but the job has {tasks} tasks. "
                f"Name tasks from 0 to {tasks - 1}."
            )

    def to_json(self) -> Any:
        return [*self.table.to_json(), *([list(self.protected)] if self.protected else [])]

    @classmethod
    def from_json(cls, document: Any) -> "TableGrouping":
        hashes, tasks, *protected = document
        return cls(KeyTable.from_json([hashes, tasks]), *map(tuple, protected))


@dataclass(frozen=True)
class PartialGrouping(_TasksOnly):
    """Keys are split: each row may be in any task, and a task of a key holds a part of what there is of it.

    A `UnitChooser` chooses. `unit_numbers` returns the task of the hash, where all rows of a key are that is not split.
    """

    kind: ClassVar[str] = "partial"
    is_by_key: ClassVar[bool] = False
    needs_key: ClassVar[bool] = True
    splits: str = "all"  # which keys, one of SPLITS
    declared: str = "all"  # what the job was started with: a change of that replaces what was switched meanwhile

    def __post_init__(self) -> None:
        for splits in (self.splits, self.declared):
            check_splits(splits)

    @classmethod
    def declare(cls, splits: str) -> "PartialGrouping":
        """Return the grouping that a job starts with."""
        return cls(splits, splits)

    def to_json(self) -> Any:
        return [self.splits, self.declared]

    @classmethod
    def from_json(cls, document: Any) -> "PartialGrouping":
        return cls(*document)


@dataclass(frozen=True)
class ShuffleGrouping(_TasksOnly):
    """Any task may take any row: the stage has no state. A `UnitChooser` chooses, by the scheduler of that name."""

    kind: ClassVar[str] = "shuffle"
    is_by_key: ClassVar[bool] = False
    needs_key: ClassVar[bool] = False
    scheduler: str = DEFAULT_SCHEDULER

    @property
    def is_measured(self) -> bool:
        """Whether nodes measure how long rows take."""
        return self.scheduler != ROUND_ROBIN

    def to_json(self) -> Any:
        return self.scheduler

    @classmethod
    def from_json(cls, document: Any) -> "ShuffleGrouping":
        return cls(document)


SPLITS: Mapping[str, str] = {
    "all": "every key has two choices, and a head key all nodes",
    "head": "a head key has all nodes, every other key the task of its hash",
    "none": "no key is split",
}


def with_scheduler(grouping: str, scheduler: str | None) -> str:
    """Return a declared grouping with the scheduler of a shuffle; raises `InvalidJob` if that does not fit."""
    if scheduler is None:
        return grouping
    if grouping != ShuffleGrouping.kind:
        has = "names its scheduler" if str(grouping).startswith(f"{ShuffleGrouping.kind}:") else "has no scheduler"
        raise InvalidJob(
            f"a stage that is grouped by {grouping!r} {has}, but {scheduler!r} was given. "
            'Use grouping="shuffle", or leave the scheduler out.'
        )
    if scheduler not in tuple(SCHEDULERS):
        raise InvalidJob(f"unknown scheduler {scheduler!r}. Use one of {', '.join(map(repr, SCHEDULERS))}.")
    return f"{grouping}:{scheduler}"


def check_splits(splits: object) -> None:
    if splits not in tuple(SPLITS):
        raise InvalidJob(f"unknown choice of keys to split {splits!r}. Use one of {', '.join(map(repr, SPLITS))}.")


HASH = HashGrouping()
GROUPINGS: Mapping[str, type[HashGrouping] | type[TableGrouping] | type[PartialGrouping] | type[ShuffleGrouping]] = {
    HashGrouping.kind: HashGrouping,
    TableGrouping.kind: TableGrouping,
    PartialGrouping.kind: PartialGrouping,
    ShuffleGrouping.kind: ShuffleGrouping,
}
_DECLARED: Mapping[str, Grouping] = {
    HashGrouping.kind: HASH,
    TableGrouping.kind: TableGrouping(),
    PartialGrouping.kind: PartialGrouping(),
    **{f"{PartialGrouping.kind}:{splits}": PartialGrouping.declare(splits) for splits in SPLITS},
    ShuffleGrouping.kind: ShuffleGrouping(),
    **{f"{ShuffleGrouping.kind}:{scheduler}": ShuffleGrouping(scheduler) for scheduler in SCHEDULERS},
}


def parse_grouping(text: str) -> Grouping:
    """Return the grouping that a stage is declared with: a kind, `partial:` and one of `SPLITS`, or `shuffle:` and one
    of `SCHEDULERS`.
    """
    if text not in tuple(_DECLARED):
        raise InvalidJob(f"unknown grouping {text!r}. Use one of {', '.join(map(repr, _DECLARED))}.")
    return _DECLARED[text]


@dataclass(frozen=True)
class Groupings:
    """The groupings of all stages of a job with `tasks` tasks, committed in one epoch; stages beyond are hashed.

    Rows that senders and operators emit are grouped by one version of this for the whole of a batch.
    """

    tasks: int
    by_stage: tuple[Grouping, ...] = ()
    epoch: int = 0

    def __post_init__(self) -> None:
        for grouping in self.by_stage:
            grouping.check(self.tasks)

    @classmethod
    def of_kinds(
        cls, tasks: int, kinds: Sequence[str], protected: Mapping[int, Sequence[int]] | None = None
    ) -> "Groupings":
        """Return the groupings that a job starts with, by the name of each; `()` if all stages are hashed.

        `protected` has the hashes of the protected keys of stages that are grouped by table.
        """
        groupings: tuple[Grouping, ...] = tuple(
            TableGrouping.declare(protected[stage], tasks) if protected and stage in protected else parse_grouping(kind)
            for stage, kind in enumerate(kinds)
        )
        return cls(tasks, groupings if any(grouping != HASH for grouping in groupings) else ())

    def __getitem__(self, stage: int) -> Grouping:
        return self.by_stage[stage] if stage < len(self.by_stage) else HASH

    @property
    def are_hashes(self) -> bool:
        """Whether every stage is grouped by hash."""
        return not self.by_stage

    @property
    def nodes_choose(self) -> bool:
        """Whether nodes choose units by load: the key does not decide on the unit in a stage behind the first."""
        return not all(grouping.is_by_key for grouping in self.by_stage[1:])

    @property
    def nodes_shuffle(self) -> bool:
        """Whether nodes choose units by what rows cost: a stage behind the first is shuffled and measured."""
        return any(isinstance(one, ShuffleGrouping) and one.is_measured for one in self.by_stage[1:])

    def unit_numbers(self, hashes: Hashes, stage: int) -> UnitNumbers:
        return self[stage].unit_numbers(hashes, stage, self.tasks)

    def unit_of(self, key_hash: int, stage: int) -> UnitId:
        """Return the unit of one key."""
        [number] = self.unit_numbers(np.array([key_hash], np.int64), stage)
        return UnitId.from_number(number)

    def units(self, stage: int) -> Sequence[UnitId]:
        return self[stage].units(stage, self.tasks)

    def to_json(self) -> list[Any]:
        return [self.tasks, self.epoch, [[grouping.kind, grouping.to_json()] for grouping in self.by_stage]]

    @classmethod
    def from_json(cls, document: list[Any]) -> "Groupings":
        tasks, epoch, by_stage = document
        return cls(tasks, tuple(GROUPINGS[kind].from_json(grouping) for kind, grouping in by_stage), epoch)
