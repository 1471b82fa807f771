"""`elastic.import_state`: exported state, or rows of the user's own, as the initial state of a new job."""

import base64
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import storage
from elastic.core.pipeline import create_runners, describe_pipeline
from elastic.errors import ElasticError, InvalidExport, InvalidJob, JobExists, StateNotPortable
from elastic.job.restart import job_identity, type_name
from elastic.operators import Operator, Stage
from elastic.operators.columns import KeyedColumns
from elastic.operators.schemas import SchemaLike, to_schema
from elastic.operators.stages import build_stages
from elastic.operators.state_codec import encode
from elastic.operators.timers import Timer, Timers
from elastic.operators.upgrades import VERSION
from elastic.portable import files, stages, values
from elastic.portable.timers import KEYED, OWNER, read_owner, rows_of
from elastic.results import Description
from elastic.routing import Groupings, Routing
from elastic.routing.hashing import hash_keys
from elastic.secret import application_secret
from migration import Assignment
from storage import Secret, Store
from storage.errors import BadObject, StorageError
from storage.state import (
    BEFORE_FIRST_BATCH,
    TASKS_PER_STAGE,
    BatchTime,
    Manifest,
    Manifests,
    StateManager,
    StateRef,
    UnitId,
    UnitStates,
)

IMPORTED = "imported"  # in the manifest's `meta`: the digest of what a job began with
Pipeline = Operator | Stage | Sequence[Operator | Stage]


class Imported(NamedTuple):
    """The state that a new job begins with: its tasks, and the rows of state by stage."""

    tasks: int
    rows: dict[str, int]


@dataclass(frozen=True)
class _NewStage:
    """A stage of the new job with its state: rows of a kind, and what they mean."""

    name: str
    version: str
    grouping: str
    kind: str | None
    fields: tuple[pa.Field, ...]  # of the key, as the new job has it
    copies_timers: bool
    rows: pa.Table | None = None
    timers: pa.Table | None = None
    layout: Any = None
    columns: KeyedColumns | None = None  # without rows
    trusted: bool = False


def import_state(
    directory: str | Path,
    *,
    name: str,
    store: str,
    tasks: int | None = None,
    key_types: str | None = None,
    operator: Pipeline | None = None,
    key: str | Sequence[str] = (),
    schema: SchemaLike | None = None,
    stage: str | None = None,
    secret: str | None = None,
    store_settings: Mapping[str, Any] | None = None,
) -> Imported:
    """Let a new job begin with the state in a folder; `elastic.run` with this name and store continues from it.

    The folder is an export, or one of Parquet files with key columns and value columns: then give the `operator` of the
    job, its `key` and the `schema` of its rows, and the `stage` if there are several. `tasks` is the number of tasks of
    the new job, `key_types` names other types of key columns in Spark's DDL, such as "customer long".

    All or nothing: the new job exists when its first manifest does, which is written last. Raises `JobExists`,
    `InvalidExport`, and `StateNotPortable` for state of tasks where `tasks` or the types of keys differ.
    """
    folder = Path(directory)
    if operator is not None:
        if (folder / files.DOCUMENT).exists():
            raise InvalidJob(f"{folder} is an export, which names its stages itself. Leave operator out.")
        table = _read_folder(folder)
        return import_table(
            table,
            name=name,
            store=store,
            operator=operator,
            key=key,
            schema=schema,
            stage=stage,
            tasks=tasks,
            secret=secret,
            store_settings=store_settings,
        )
    if key or schema is not None or stage is not None:
        raise InvalidJob("key, schema and stage describe rows of your own. Give the operator too, or leave them out.")
    application = application_secret(secret, os.environ)
    document, is_signed = files.read_document(folder, application)
    types = {} if key_types is None else {field.name: field.type for field in to_schema(key_types)}
    digest = files.digest_of(document)
    with closing(storage.open(store, **dict(store_settings or {}))) as opened:
        check_absent(opened, application, name, digest)
        with _refuse_malformed(str(folder)):
            plan = _plan_export(folder, document, is_signed, tasks, types)
            return create_job(opened, application, name, plan, digest)


def import_table(
    rows: pa.Table,
    *,
    name: str,
    store: str,
    operator: Pipeline,
    key: str | Sequence[str],
    schema: SchemaLike | None,
    stage: str | None = None,
    tasks: int | None = None,
    secret: str | None = None,
    store_settings: Mapping[str, Any] | None = None,
) -> Imported:
    """Let a new job begin with one row of state per key, for one stage; see `import_state`."""
    if schema is None:
        raise InvalidJob("the types of the key columns are not known. Give the schema of the job's rows.")
    application = application_secret(secret, os.environ)
    with closing(storage.open(store, **dict(store_settings or {}))) as opened:
        check_absent(opened, application, name, "")
        with _refuse_malformed("the rows"):
            description = describe_pipeline(build_stages(operator, key), to_schema(schema), tasks or 64)
            return create_job(opened, application, name, plan_rows(rows, description, stage), "table")


@contextmanager
def _refuse_malformed(where: str) -> Iterator[None]:
    """Raise `InvalidExport` for what wrong files and rows lead to."""
    try:
        yield
    except (ElasticError, StorageError):
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, pa.ArrowException) as cause:
        raise InvalidExport(where, f"{type(cause).__name__}: {cause}") from cause


class _Plan(NamedTuple):
    """A new job before it is stored."""

    tasks: int
    identity: dict[str, Any]
    time: BatchTime | None
    stages: list[_NewStage]
    same_tasks: bool


def check_absent(store: Store, secret: Secret, name: str, digest: str) -> None:
    """Raise `JobExists` if the store has a job of this name, even with another secret."""
    manifests = Manifests(store, secret, name)
    if not manifests.exists:
        return
    is_same = False
    if digest:
        try:
            latest = manifests.latest()
        except BadObject:
            latest = None
        is_same = latest is not None and latest.meta.get(IMPORTED) == digest and latest.number == 1
    raise JobExists(name, store.url, is_same=is_same)


def create_job(store: Store, secret: Secret, name: str, plan: _Plan, digest: str) -> Imported:
    """Store all states, then the manifest that names them."""
    groupings = Groupings.of_kinds(plan.tasks, [stage.grouping for stage in plan.stages])
    routing = Routing(Assignment.even(tasks=plan.tasks, nodes=1), groupings)
    units: dict[UnitId, StateRef | None] = {
        unit: None for stage in range(len(plan.stages)) for unit in routing.units(stage)
    }
    manifests = Manifests(store, secret, name)
    lease = f"{0:012d}-{1:09d}-{manifests.driver_id}"
    with StateManager(store, secret, name) as manager:
        for number, stage in enumerate(plan.stages):
            version = {VERSION: stage.version}
            for unit, value, timers in _states(number, stage, groupings, plan.same_tasks):
                state = encode(value, timers, stage.name)
                units[unit] = manager.save(unit, state, batch=BEFORE_FIRST_BATCH, lease=lease, meta=version)
    meta = {**plan.identity, "versions": [[stage.version] for stage in plan.stages], IMPORTED: digest}
    first = Manifest(UnitStates(units), routing.to_json(), meta=meta, latest_time=plan.time)
    if not manifests.create(first):
        raise JobExists(name, store.url)
    return Imported(plan.tasks, {stage.name: 0 if stage.rows is None else stage.rows.num_rows for stage in plan.stages})


def create_job_from_rows(
    store: Store, secret: Secret, name: str, description: Description, rows: Callable[[], pa.Table]
) -> bool:
    """Let a job that the store does not have begin with `rows()` in its first stage; False if it has the job."""
    if Manifests(store, secret, name).exists:
        return False
    with _refuse_malformed("the initial state"):
        try:
            create_job(store, secret, name, plan_rows(rows(), description, None), "table")
        except JobExists:
            return False
    return True


def plan_rows(rows: pa.Table, description: Description, stage: str | None) -> _Plan:
    """Return the new job whose one stage, by default the first, begins with these rows."""
    names = [one.name for one in description.stages]
    chosen = names[0] if stage is None else stage
    if chosen not in names:
        raise InvalidJob(f"there is no stage {chosen!r}. Name one of {', '.join(map(repr, names))}.")
    new = []
    for one, runner in zip(description.stages, create_runners(description, "fail"), strict=True):
        operator = runner.operator
        kind = stages.find_kind(operator)
        plain = _NewStage(
            one.name, operator.version, one.grouping, kind, tuple(operator.key_fields), operator.copies_timers
        )
        new.append(_with_rows(plain, rows, operator) if one.name == chosen else plain)
    identity = job_identity(description)
    del identity["event time"]  # any will do: no watermark has passed
    return _Plan(description.tasks, identity, None, new, same_tasks=False)


def _with_rows(stage: _NewStage, rows: pa.Table, operator: Operator) -> _NewStage:
    """Return a stage with rows of the user: checked, and with the types of its columns."""
    kinds = {field.name: field.type for field in stage.fields}
    columns: KeyedColumns | None = None
    if stage.kind == stages.COLUMNS:
        columns = operator.initial_state()
        kinds = {field.name: field.type for field in columns.key_schema}
        unknown = set(rows.schema.names) - set(kinds) - set(columns.names)
    elif stage.kind == stages.KEYS:
        unknown = set()
    else:
        raise StateNotPortable(stage.name, "it is not by key, so rows by key cannot become it. Use a KeyedOperator")
    missing = sorted(set(kinds) - set(rows.schema.names))
    others = [name for name in rows.schema.names if name not in kinds]
    if missing or unknown or not others:
        known = [*kinds, *(columns.names if columns is not None else ["value"])]
        raise InvalidExport("the rows", f"they have the columns {rows.schema.names} instead of {known}")
    layout = "user" if others == [stages.VALUE] else dict.fromkeys(others, "user")
    try:
        cast = _cast(rows, kinds)
    except ValueError as cause:
        raise InvalidExport("the rows", str(cause)) from cause
    return _NewStage(
        stage.name,
        stage.version,
        stage.grouping,
        stage.kind,
        stage.fields,
        stage.copies_timers,
        cast,
        None,
        layout,
        columns,
    )


def _plan_export(
    folder: Path, document: Mapping[str, Any], is_signed: bool, tasks: int | None, key_types: Mapping[str, pa.DataType]
) -> _Plan:
    """Return the new job that an export describes."""
    identity = {**document["identity"]}
    before = int(identity["tasks"])
    count = before if tasks is None else tasks
    if not 1 <= count <= TASKS_PER_STAGE:
        raise InvalidJob(f"tasks={count} is impossible. Give a number from 1 to {TASKS_PER_STAGE}.")
    known = {name for stage in document["stages"] for name in _read_schema(stage["fields"]).names}
    if unknown := sorted(set(key_types) - known):
        raise InvalidJob(f"{', '.join(unknown)} are no key columns. The job has {', '.join(sorted(known))}.")
    new = [
        _read_stage(folder, number, stage, is_signed, key_types, same_tasks=count == before)
        for number, stage in enumerate(document["stages"])
    ]
    identity["tasks"] = count
    identity["key types"] = [[type_name(field.type) for field in stage.fields] for stage in new]
    identity["columns"] = {
        column: type_name(key_types[name]) if (name := _strip_input(column, identity)) in key_types else kind
        for column, kind in identity["columns"].items()
    }
    return _Plan(count, identity, _read_time(document["time"]), new, same_tasks=count == before)


def _strip_input(column: str, identity: Mapping[str, Any]) -> str:
    """Return the name of a column; a job with several inputs has that of the input before it."""
    return column if not isinstance(identity["event time"], Mapping) else column.partition(".")[2]


def _read_time(found: Any) -> BatchTime | None:
    """Return the clocks with which the new job begins: they never go back."""
    if found is None:
        return None
    time = BatchTime.from_json(found)
    clocks = [*time[:4], *(clock for each in time.inputs for clock in (each.active_ms, *each.watermarks))]
    if any(type(clock) is not int for clock in clocks if clock is not None) or time.timestamp_ms is None:
        raise ValueError(f"{found!r} is no time of a batch")
    return time._replace(batch=BEFORE_FIRST_BATCH)


def _read_stage(
    folder: Path,
    number: int,
    stage: Mapping[str, Any],
    is_signed: bool,
    key_types: Mapping[str, pa.DataType],
    *,
    same_tasks: bool,
) -> _NewStage:
    kind, name = stage["kind"], str(stage["name"])
    if kind not in (None, stages.KEYS, stages.COLUMNS, stages.TASK):
        raise InvalidExport(str(folder), f"stage {name!r} has state of the unknown kind {kind!r}")
    fields = tuple(field.with_type(key_types.get(field.name, field.type)) for field in _read_schema(stage["fields"]))
    tables = {
        what: files.read_file(folder, files.file_of(number, what), described)
        for what, described in stage["files"].items()
        if what in (files.STATE, files.TIMERS)
    }
    kinds = {field.name: field.type for field in fields}
    columns = None
    if kind == stages.COLUMNS:
        held = KeyedColumns(
            _read_schema(stage["key schema"]), stage["columns"], values.decode(base64.b64decode(stage["initial"]))
        )
        columns = stages.empty_copy(held, key_types)
        kinds = {**kinds, **{field.name: field.type for field in columns.key_schema}}
    changed = key_types.keys() & {field.name for field in fields}
    if kind == stages.TASK and tables and (not same_tasks or changed):
        raise StateNotPortable(
            name, "it belongs to tasks and not to keys. Import it with as many tasks, and the same types of keys"
        )
    try:
        rows = (
            _cast(tables[files.STATE], kinds)
            if kind != stages.TASK and files.STATE in tables
            else tables.get(files.STATE)
        )
        timers = _cast(tables[files.TIMERS], kinds, optional=True) if files.TIMERS in tables else None
    except ValueError as cause:
        raise StateNotPortable(name, f"a key would change: {cause}. Name types that hold every key") from cause
    return _NewStage(
        name,
        str(stage["version"]),
        str(stage["grouping"]),
        kind,
        fields,
        bool(stage["copies timers"]),
        rows,
        timers,
        stage.get("layout"),
        columns,
        is_signed,
    )


def _states(
    number: int, stage: _NewStage, groupings: Groupings, same_tasks: bool
) -> Iterator[tuple[UnitId, Any, Timers]]:
    """Yield the state of every unit that has one, with its timers."""
    timers = dict(_timers(number, stage, groupings, same_tasks))
    found = _values(number, stage, groupings)
    for unit, value in found:
        yield unit, value, timers.pop(unit, Timers())
    for unit, left in sorted(timers.items()):
        if stage.kind == stages.TASK:
            raise InvalidExport("the timers", f"{unit} of stage {stage.name!r} has timers and no state")
        empty: Any = {} if stage.columns is None else stages.empty_copy(stage.columns, {})
        yield unit, empty, left


def _values(number: int, stage: _NewStage, groupings: Groupings) -> Iterator[tuple[UnitId, Any]]:
    rows = stage.rows
    if rows is None:
        return
    if stage.kind == stages.TASK:
        for row in rows.to_pylist():
            unit = _unit_of_task(number, row[stages.TASK_COLUMN], groupings.tasks)
            yield unit, _decode(row[stages.VALUE], stage)
        return
    for unit, part in _parts(rows, number, stage, groupings):
        if stage.columns is not None:
            value = stages.empty_copy(stage.columns, {})
            stages.fill_columns(value, part)
            yield unit, value
        else:
            yield unit, _keyed_value(part, stage)


def _keyed_value(rows: pa.Table, stage: _NewStage) -> dict[Any, Any]:
    keys = stages.python_keys(rows, [field.name for field in stage.fields])
    try:
        entries = stages.values_of(rows, stage.layout if stage.layout != "user" else "value", stage.trusted)
    except values.Untrusted as cause:
        raise _create_trust_error(stage, cause) from cause
    found = dict(zip(keys, entries, strict=True))
    if len(found) < len(keys):
        raise InvalidExport("the rows", f"some keys of stage {stage.name!r} are there twice")
    return found


def _decode(data: bytes, stage: _NewStage) -> Any:
    try:
        return values.decode(data, trusted=stage.trusted)
    except values.Untrusted as cause:
        raise _create_trust_error(stage, cause) from cause


def _create_trust_error(stage: _NewStage, cause: values.Untrusted) -> InvalidExport:
    return InvalidExport(
        "the export",
        f"the state of stage {stage.name!r} has a {cause}, which is read only if the export is signed with the secret "
        "in use. Import it with the secret of the exporting job, and change that with elastic resign",
    )


def _parts(rows: pa.Table, number: int, stage: _NewStage, groupings: Groupings) -> Iterator[tuple[UnitId, pa.Table]]:
    """Yield the rows of each unit, whose key has a hash of that unit."""
    numbers = _unit_numbers(rows, number, stage, groupings)
    order = np.argsort(numbers, kind="stable")
    ordered, bounds = rows.take(pa.array(order)), np.flatnonzero(np.diff(numbers[order])) + 1
    for begin, end in zip([0, *bounds.tolist()], [*bounds.tolist(), rows.num_rows], strict=True):
        if end > begin:
            yield UnitId.from_number(int(numbers[order[begin]])), ordered.slice(begin, end - begin)


def _unit_numbers(rows: pa.Table, number: int, stage: _NewStage, groupings: Groupings) -> Any:
    columns = [rows[field.name].combine_chunks() for field in stage.fields]
    return groupings.unit_numbers(hash_keys(columns), number)


def _timers(number: int, stage: _NewStage, groupings: Groupings, same_tasks: bool) -> Iterable[tuple[UnitId, Timers]]:
    if stage.timers is None:
        return
    found: dict[UnitId, Timers] = {}
    by_unit = pa.compute.filter(stage.timers, stage.timers[KEYED])
    for unit, part in _parts(by_unit, number, stage, groupings):
        keys = stages.python_keys(part, [field.name for field in stage.fields])
        for row, key in zip(rows_of(part), keys, strict=True):
            _set(found.setdefault(unit, Timers()), row, key)
    for row in rows_of(stage.timers.filter(pa.compute.invert(stage.timers[KEYED]))):
        for unit in _units_of_timer(number, stage, row, groupings, same_tasks):
            _set(found.setdefault(unit, Timers()), row, read_owner(row[OWNER]))
    yield from found.items()


def _units_of_timer(
    number: int, stage: _NewStage, row: Mapping[str, Any], groupings: Groupings, same_tasks: bool
) -> list[UnitId]:
    """Return the units that get a timer without a key of the stage: that of its task, or all that look for it."""
    if stage.copies_timers and stage.kind == stages.COLUMNS and row[OWNER] is None:
        return [UnitId(number, task) for task in range(groupings.tasks)]
    if not same_tasks:
        raise StateNotPortable(
            stage.name, "it has timers that belong to tasks. Import it with as many tasks as the exported job has"
        )
    return [_unit_of_task(number, row["_task"], groupings.tasks)]


def _unit_of_task(stage: int, task: Any, tasks: int) -> UnitId:
    if not 0 <= task < tasks:
        raise ValueError(f"there is no task {task}")
    return UnitId(stage, task)


def _set(timers: Timers, row: Mapping[str, Any], key: Any) -> None:
    """Set a timer; of two with the same name and key, the earlier one."""
    known = timers.get(row["_kind"], key, row["_name"])
    if known is None or row["_at_ms"] < known:
        timers.set(Timer(row["_at_ms"], row["_kind"], row["_name"], key))


def _cast(rows: pa.Table, kinds: Mapping[str, pa.DataType], *, optional: bool = False) -> pa.Table:
    """Return the rows with key columns of these types; `ValueError` if a value would change or one is missing."""
    for name, kind in kinds.items():
        place = rows.schema.get_field_index(name)
        if place < 0:
            if optional:
                continue
            raise ValueError(f"there is no column {name!r}")
        rows = rows.set_column(place, name, stages.cast_losslessly(rows.column(place), kind))
    return rows


def _read_folder(folder: Path) -> pa.Table:
    try:
        return pq.read_table(folder, use_threads=False)
    except (OSError, ValueError, pa.ArrowException) as cause:
        raise InvalidExport(str(folder), f"its Parquet files cannot be read: {cause}") from cause


def _read_schema(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text, validate=True)))
