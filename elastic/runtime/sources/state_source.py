"""`spark.read.format("elastic-state")`: the state of one stage as the last committed snapshot has it.

Every task's state is read as of the batch that it was saved after, which `_batch` tells: snapshots save what changed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from elastic.results import BATCH, TASK, Description
from elastic.results.errors import MixedState, SnapshotReplaced, UnknownJob
from elastic.routing.slots import stage_of, task_of_slot
from elastic.runtime.sources.access import Access, Credentials
from elastic.runtime.sources.tables import as_spark_expects, shared_out, spark_schema
from storage.errors import ObjectMissing
from storage.state import Manifests, StateManager, StateRef

if TYPE_CHECKING:
    from elastic.operators.execution import StageRunner

_OPTIONS = ("stage",)


class SavedSlot(NamedTuple):
    """A slot's state in the store, and the batch that it is right after."""

    ref: StateRef
    through: int

    @property
    def size(self) -> int:
        return self.ref.size


class StatePartition(InputPartition):
    """States for one task to read."""

    def __init__(self, slots: list[SavedSlot]) -> None:
        super().__init__(None)
        self.slots = slots


class StateSource(DataSource):
    """Options: `store` and `name` of the job, and `stage` if it has several."""

    credentials: ClassVar[Credentials] = Credentials()  # the application's, unless `register` was given others

    @classmethod
    def name(cls) -> str:
        return "elastic-state"

    def schema(self) -> StructType:
        return spark_schema(self._state().columns())

    def reader(self, schema: StructType) -> "StateReader":
        return StateReader(self._state(), schema)

    def _state(self) -> "StageState":
        return StageState(Access.of(self.options, _OPTIONS, self.credentials), self.options.get("stage"))


class StateReader(DataSourceReader):
    """The snapshot that is committed when the query is planned."""

    def __init__(self, state: "StageState", schema: StructType) -> None:
        self._state = state
        self._schema = schema

    def partitions(self) -> list[StatePartition]:
        return [StatePartition(share) for share in shared_out(self._state.saved())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, StatePartition):  # else there are none
            for rows in self._state.rows(partition.slots):
                try:
                    yield from as_spark_expects(rows, self._schema)
                except pa.ArrowException as cause:
                    raise MixedState(str(cause).rstrip(".")) from cause


@dataclass(frozen=True)
class StageState:
    """One stage's state in the store; a value, so that it can be pickled and sent."""

    access: Access
    stage: str | None

    def saved(self) -> list[SavedSlot]:
        """Every slot of the stage that has a state, in order."""
        number = self._description().stage_number(self.stage)
        manifest = Manifests(self.access.store(), self.access.secret, self.access.job).latest()
        if manifest is None:
            raise UnknownJob(self.access.job, self.access.url)
        return [
            SavedSlot(ref, manifest.units.through(unit))
            for unit, ref in sorted(manifest.units.items(), key=lambda item: item[0])
            if ref is not None and stage_of(unit.task) == number
        ]

    def columns(self) -> pa.Schema:
        """What `state_rows` gives, found by trying: an operator says it only by doing it.

        The state of middle size is asked and the largest, since one without rows may not know its columns.
        """
        runner = self._runner()
        by_size = sorted(self.saved(), key=lambda slot: slot.size)
        with self._manager() as manager:
            tried = [_state_rows(runner, manager, slot) for slot in {*by_size[len(by_size) // 2 :][:1], *by_size[-1:]}]
        found = [rows for rows in tried if rows.num_rows] or [runner.state_rows(runner.new_state())]
        try:
            return pa.unify_schemas([rows.schema for rows in found], promote_options="permissive")
        except pa.ArrowException as cause:
            raise MixedState(str(cause).rstrip(".")) from cause

    def rows(self, slots: list[SavedSlot]) -> Iterator[pa.Table]:
        """The state of each slot, one at a time in memory, with its place."""
        runner = self._runner()
        with self._manager() as manager:
            for slot in slots:
                rows = _state_rows(runner, manager, slot)
                place = {
                    BATCH: pa.repeat(pa.scalar(slot.through, pa.int64()), rows.num_rows),
                    TASK: pa.repeat(pa.scalar(task_of_slot(slot.ref.unit.task), pa.int32()), rows.num_rows),
                }
                for name, column in place.items():
                    rows = rows.append_column(name, column)
                yield rows

    def _description(self) -> Description:
        return Description.load(self.access.store(), self.access.secret, self.access.job)

    def _runner(self) -> "StageRunner":
        # Imported late: readers of results share this package, start a process each, and need no operators.
        from elastic.operators.execution import StageRunner

        description = self._description()
        number = description.stage_number(self.stage)
        stage = description.stages[number]
        following = description.stages[number + 1 : number + 2]
        return StageRunner(
            stage.operator,
            key=stage.key,
            input_schema=stage.input_schema,
            next_schema=following[0].input_schema if following else None,
            stage=number,
            name=stage.name,
        )

    def _manager(self) -> StateManager:
        return StateManager(self.access.store(), self.access.secret, self.access.job, threads=1)


def _state_rows(runner: "StageRunner", manager: StateManager, slot: SavedSlot) -> pa.Table:
    try:
        saved = manager.load(slot.ref)
    except ObjectMissing:
        raise SnapshotReplaced(task_of_slot(slot.ref.unit.task)) from None
    return runner.state_rows(runner.restore(saved.state))
