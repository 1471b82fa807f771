"""`spark.read.format("elastic-state")`: the state of one stage as of the newest committed snapshot.

Snapshots save only the units that changed, so every task's state is as of the batch in its column `_batch`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from elastic.results import BATCH, TASK, Description
from elastic.results.errors import SnapshotReplaced, StateSchemaMismatch, UnknownJob
from elastic.spark.sources.access import Credentials, JobAccess
from elastic.spark.sources.tables import pack_partitions, to_record_batches, to_spark_schema
from storage.errors import ObjectMissing
from storage.state import Manifests, StateManager, StateRef

if TYPE_CHECKING:
    from elastic.operators.stage_runner import StageRunner

_OPTIONS = ("stage",)


class SavedUnit(NamedTuple):
    """A unit's state in the store, and the last batch that it includes."""

    ref: StateRef
    through: int

    @property
    def size(self) -> int:
        return self.ref.size


class StatePartition(InputPartition):
    """States that one Spark task reads."""

    def __init__(self, units: list[SavedUnit]) -> None:
        super().__init__(None)
        self.units = units


class StateSource(DataSource):
    """Options: `store` and `name` of the job, and `stage` if it has several."""

    credentials: ClassVar[Credentials] = Credentials()  # the application's, unless `register_sources` binds others

    @classmethod
    def name(cls) -> str:
        return "elastic-state"

    def schema(self) -> StructType:
        return to_spark_schema(self._state().infer_schema())

    def reader(self, schema: StructType) -> "StateReader":
        return StateReader(self._state(), schema)

    def _state(self) -> "StageState":
        return StageState(JobAccess.from_options(self.options, _OPTIONS, self.credentials), self.options.get("stage"))


class StateReader(DataSourceReader):
    """Reads the snapshot that is the newest when Spark plans the query."""

    def __init__(self, state: "StageState", schema: StructType) -> None:
        self._state = state
        self._schema = schema

    def partitions(self) -> list[StatePartition]:
        return [StatePartition(units) for units in pack_partitions(self._state.list_saved())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, StatePartition):  # else there are no partitions
            for rows in self._state.read_rows(partition.units):
                try:
                    yield from to_record_batches(rows, self._schema)
                except pa.ArrowException as cause:
                    raise StateSchemaMismatch(str(cause).rstrip(".")) from cause


@dataclass(frozen=True)
class StageState:
    """One stage's state in the store; a picklable value."""

    access: JobAccess
    stage: str | None

    def list_saved(self) -> list[SavedUnit]:
        """Return the units of the stage that have a saved state, in order."""
        number = self._load_description().stage_number(self.stage)
        manifest = Manifests(self.access.store(), self.access.secret, self.access.job).latest()
        if manifest is None:
            raise UnknownJob(self.access.job, self.access.url)
        return [
            SavedUnit(ref, manifest.units.through(unit))
            for unit, ref in sorted(manifest.units.items(), key=lambda item: item[0])
            if ref is not None and unit.stage == number
        ]

    def infer_schema(self) -> pa.Schema:
        """Return the columns of `state_rows`, inferred from two states because operators do not declare them.

        These are the median and the largest by size: a state without rows may lack columns.
        """
        runner = self._make_runner()
        by_size = sorted(self.list_saved(), key=lambda unit: unit.size)
        with self._open_manager() as manager:
            samples = [
                _read_state_rows(runner, manager, unit) for unit in {*by_size[len(by_size) // 2 :][:1], *by_size[-1:]}
            ]
        tables = [rows for rows in samples if rows.num_rows] or [runner.state_rows(runner.new_state())]
        try:
            return pa.unify_schemas([rows.schema for rows in tables], promote_options="permissive")
        except pa.ArrowException as cause:
            raise StateSchemaMismatch(str(cause).rstrip(".")) from cause

    def read_rows(self, units: list[SavedUnit]) -> Iterator[pa.Table]:
        """Yield the rows of each unit's state with their origin; one state at a time is in memory."""
        runner = self._make_runner()
        with self._open_manager() as manager:
            for unit in units:
                rows = _read_state_rows(runner, manager, unit)
                origin = {
                    BATCH: pa.repeat(pa.scalar(unit.through, pa.int64()), rows.num_rows),
                    TASK: pa.repeat(pa.scalar(unit.ref.unit.task, pa.int32()), rows.num_rows),
                }
                for name, column in origin.items():
                    rows = rows.append_column(name, column)
                yield rows

    def _load_description(self) -> Description:
        return Description.load(self.access.store(), self.access.secret, self.access.job)

    def _make_runner(self) -> "StageRunner":
        # Imported late: readers of results import this package in a process each, and need no operators.
        from elastic.core.pipeline import create_runners

        description = self._load_description()
        return create_runners(description, "fail")[description.stage_number(self.stage)]

    def _open_manager(self) -> StateManager:
        return StateManager(self.access.store(), self.access.secret, self.access.job, threads=1)


def _read_state_rows(runner: "StageRunner", manager: StateManager, unit: SavedUnit) -> pa.Table:
    try:
        saved = manager.load(unit.ref)
    except ObjectMissing:
        raise SnapshotReplaced(unit.ref.unit.task) from None
    return runner.state_rows(runner.load(saved, unit.ref.unit))
