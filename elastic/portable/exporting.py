"""`elastic.export_state`: the state of a job as Parquet files."""

import base64
import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

import storage
from elastic.errors import StateNotPortable
from elastic.operators.keyed import KeyedOperator
from elastic.operators.stage_runner import StageRunner
from elastic.portable import files, stages, values
from elastic.portable.snapshot import JobSnapshot
from elastic.portable.timers import timer_rows, timer_schema
from elastic.secret import application_secret
from storage.state import UnitId

IDENTITY = ("tasks", "version", "key", "key types", "event time", "columns", "graph")


class Exported(NamedTuple):
    """What was exported: the job's last complete batch, and the rows of state and timers by stage."""

    batch: int
    rows: dict[str, int]
    timers: dict[str, int]


def export_state(
    name: str,
    directory: str | Path,
    *,
    store: str,
    secret: str | None = None,
    store_settings: Mapping[str, Any] | None = None,
) -> Exported:
    """Write the state of a job as of its last complete batch into a new folder, which appears when it is complete.

    The job keeps running or stays stopped; if it runs, a snapshot may be replaced while it is read: repeat the call
    then. Raises `StateNotPortable` for values that cannot be written without pickle.
    """
    folder = Path(directory)
    with closing(storage.open(store, **dict(store_settings or {}))) as opened:
        job = JobSnapshot.open(opened, application_secret(secret, os.environ), name)
        unfinished = files.begin(folder)
        described = [_export_stage(job, stage, unfinished) for stage in range(len(job.runners))]
        time = job.manifest.latest_time
        document = {
            "format": files.FORMAT,
            "version": files.VERSION,
            "job": name,
            "batch": job.manifest.last_batch,
            "time": None if time is None else time.to_json(),
            "identity": {what: job.manifest.meta[what] for what in IDENTITY if what in job.manifest.meta},
            "stages": described,
        }
        files.write_document(unfinished, document, job.secret)
        files.finish(unfinished, folder)
    return Exported(
        job.manifest.last_batch,
        {stage["name"]: stage["rows"] for stage in described},
        {stage["name"]: stage["timer rows"] for stage in described},
    )


def _export_stage(job: JobSnapshot, stage: int, folder: Path) -> dict[str, Any]:
    runner, description = job.runners[stage], job.description.stages[stage]
    kind = stages.find_kind(runner.operator)
    document: dict[str, Any] = {
        "name": description.name,
        "operator": type(runner.operator).__name__,
        "version": runner.version,
        "grouping": description.grouping,
        "kind": kind,
        "fields": _schema_text(pa.schema(runner.operator.key_fields)),
        "copies timers": runner.operator.copies_timers,
        "rows": 0,
        "timer rows": 0,
        "files": {},
    }
    if kind is None:
        return document
    (folder / files.file_of(stage, files.STATE)).parent.mkdir()
    if kind == stages.KEYS:
        layout = stages.Layout()
        for _, state in job.states(stage):
            layout.add(state.value.values(), runner.key)
        document["layout"] = layout.to_json()
    elif kind == stages.COLUMNS:
        columns = runner.operator.initial_state()
        document["columns"] = {name: dtype.str for name, dtype in columns.dtypes.items()}
        document["initial"] = base64.b64encode(values.encode(columns.initial)).decode()
        document["key schema"] = _schema_text(columns.key_schema)
    tables = _tables(job, stage, runner, document)
    with _Files(folder, stage, timer_schema(runner.operator.key_fields)) as written:
        for rows, timers in tables:
            written.write(rows, timers)
    document["rows"], document["timer rows"] = written.rows, written.timers
    document["files"] = {what: files.describe_file(folder, files.file_of(stage, what)) for what in written.names}
    return document


def _tables(
    job: JobSnapshot, stage: int, runner: StageRunner, document: dict[str, Any]
) -> Iterator[tuple[pa.Table | None, pa.Table]]:
    """Yield the rows of state and of timers, unit by unit."""
    fields, kind, name = runner.operator.key_fields, document["kind"], document["name"]
    empty = None if kind != stages.TASK else stages.task_value(runner.operator, runner.new_state(), name)
    for unit, state in job.states(stage):
        is_keyed = isinstance(runner.operator, KeyedOperator)
        try:
            timers = timer_rows(unit, state.timers, fields, by_key=kind == stages.COLUMNS, always=is_keyed)
        except values.Unencodable as cause:
            raise StateNotPortable(name, f"a timer has a {cause} as its key. Use keys of the key columns") from cause
        if kind == stages.KEYS:
            rows = stages.keyed_rows(state.value, fields, document["layout"], name)
        elif kind == stages.COLUMNS:
            rows = stages.column_rows(state.value)
        else:
            value = stages.task_value(runner.operator, state, name)
            rows = _task_rows(unit, value, None if timers.num_rows else empty, name)
            timers = timers if rows is not None else timers.slice(0, 0)
        yield rows, timers


def _task_rows(unit: UnitId, value: bytes | None, empty: bytes | None, stage: str) -> pa.Table | None:
    if value is None or value == empty:
        return None
    if unit.guests:
        raise StateNotPortable(stage, "it has keys that a table places beside other tasks. Move them home first")
    columns = {stages.TASK_COLUMN: [unit.task], stages.VALUE: [value]}
    schema = pa.schema([(stages.TASK_COLUMN, pa.int32()), (stages.VALUE, pa.large_binary())])
    return pa.table(columns, schema=schema)


class _Files:
    """The files of one stage while they are written; a file exists only if it has rows."""

    def __init__(self, folder: Path, stage: int, timers: pa.Schema) -> None:
        self._folder = folder
        self._stage = stage
        self._schemas: dict[str, pa.Schema] = {files.TIMERS: timers}
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._counts = {files.STATE: 0, files.TIMERS: 0}

    @property
    def names(self) -> list[str]:
        return list(self._writers)

    @property
    def rows(self) -> int:
        return self._counts[files.STATE]

    @property
    def timers(self) -> int:
        return self._counts[files.TIMERS]

    def write(self, rows: pa.Table | None, timers: pa.Table) -> None:
        for what, table in ((files.STATE, rows), (files.TIMERS, timers)):
            if table is None or not table.num_rows:
                continue
            if what not in self._writers:
                path = self._folder / files.file_of(self._stage, what)
                self._writers[what] = pq.ParquetWriter(path, self._schemas.get(what, table.schema))
            self._writers[what].write_table(table)
            self._counts[what] += table.num_rows

    def __enter__(self) -> "_Files":
        return self

    def __exit__(self, *_: object) -> None:
        for writer in self._writers.values():
            writer.close()


def _schema_text(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()
