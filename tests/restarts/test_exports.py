"""The state of a job leaves it as files, and another job begins with it, whatever is killed or damaged between."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import elastic
from elastic.core.pipeline import describe_pipeline
from elastic.errors import ElasticError, InvalidExport, InvalidJob, JobExists, StateNotPortable
from elastic.job.job import Job
from elastic.local.run import local_run
from elastic.operators import (
    Aggregate,
    Context,
    CountByKey,
    KeyedOperator,
    Operator,
    Stage,
    State,
    Timer,
    ValueState,
    functions,
    partial,
)
from elastic.operators.stages import build_stages
from elastic.portable import files
from elastic.portable.importing import check_absent, create_job, plan_rows
from storage import Secret, Store
from storage.errors import UnknownOperator
from storage.state import Manifests
from storage.stores.file import FileStore
from storage.stores.memory import MemoryStore
from tests.restarts.test_upgrades import BATCHES, NAMES, SCHEMA, rekey, totals, totals_of
from tests.restarts.versions import Columns1, Columns2, Spending1, Spending2
from tests.storage.killing import is_killed, survives

SECRET = "a secret of these tests"  # noqa: S105 - of tests only
OTHER = "another secret of others"


def start(folder: Path, operator: Any, batches: int, name: str = "spending", **options: Any) -> Job:
    rows = options.pop("rows", BATCHES[:batches])
    arguments = {"schema": SCHEMA, "tasks": 16, "nodes": 2, **options}
    job = local_run(
        rows,
        key="customer",
        operator=operator,
        name=name,
        store=folder.as_uri(),
        secret=Secret.of(SECRET),
        settings={"heartbeat_seconds": 0.1},
        **arguments,
    )
    job.process_all_available()
    return job


def export(store: Path, directory: Path, name: str = "spending") -> Any:
    return elastic.export_state(name, directory, store=store.as_uri(), secret=SECRET)


def load(directory: Path, store: Path, name: str = "copy", **options: Any) -> Any:
    return elastic.import_state(directory, name=name, store=store.as_uri(), **{"secret": SECRET, **options})


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A store, and the folder of an export."""
    return tmp_path / "store", tmp_path / "export"


@pytest.mark.parametrize("operator", [Spending1, Spending2, Columns1])
@pytest.mark.parametrize(
    ("drain", "tasks", "kind"), [(True, None, None), (False, 5, None), (True, 23, "customer binary")]
)
def test_a_new_job_continues_from_the_state_of_another(
    places: tuple[Path, Path], operator: type[Operator], drain: bool, tasks: int | None, kind: str | None
) -> None:
    """Without `drain` what the snapshots lack is repeated; with other tasks and types keys are hashed anew."""
    store, folder = places
    start(store, operator(), 2).stop(drain=drain)
    exported = export(store, folder)
    assert (exported.batch, exported.rows, exported.timers) == (1, {"spending": 3}, {"spending": 0})
    imported = load(folder, store, tasks=tasks, key_types=kind)
    assert (imported.tasks, imported.rows) == (tasks or 16, {"spending": 3})
    rows, schema = BATCHES[2], SCHEMA
    if kind is not None:
        if operator is Columns1:
            return  # its columns are of texts; see below
        schema = SCHEMA.set(0, pa.field("customer", pa.binary()))
        rows = rows.cast(schema)
    with start(store, operator(), 0, "copy", tasks=tasks or 16, nodes=3, rows=[rows], schema=schema) as job:
        assert len(job.routing().assignment.nodes) == 3
        encoded = {name: name if kind is None else name.encode() for name in NAMES}
        found = {name: job.state(encoded[name]) for name in NAMES}
        assert {name: one["total"] if isinstance(one, dict) else one for name, one in found.items()} == totals(3)
        assert job.batches() == (0, 0)
        job.stop()
    with start(store, operator(), 0, "copy", tasks=tasks or 16, rows=[rows], schema=schema) as job:
        assert len(job.routing().assignment.nodes) == 3  # from now on those that it had


def test_the_files_are_parquet_that_others_can_read(places: tuple[Path, Path]) -> None:
    store, folder = places
    start(store, Columns2(), 2).stop()
    export(store, folder)
    rows = pq.read_table(folder / "stage-00" / "state.parquet").to_pylist()
    assert {row["customer"]: (row["total"], row["upgrades"]) for row in rows} == {
        n: (t, 0) for n, t in totals(2).items()
    }
    document = json.loads((folder / "manifest.json").read_text())
    assert (document["job"], document["batch"], document["stages"][0]["version"]) == ("spending", 1, "2")
    assert not [path for path in folder.parent.iterdir() if path.name.startswith(".")]


class Reminders(KeyedOperator):
    """Reminds of a customer when the event time of a timer has come; keys are two columns."""

    output_schema = "customer string, shop int, reminded long"

    def handle_key(self, _: Any, rows: Any, state: ValueState, context: Context) -> None:
        state.update({"rows": (state.get() or {"rows": 0})["rows"] + len(rows), "nan": float("nan"), "none": None})
        context.set_timer(context.timestamp_ms + 3_000_000, kind="processing", name="later")

    def handle_expired(self, key: Any, _timer: Timer, state: ValueState, _: Context) -> list[dict[str, Any]]:
        return [{"customer": key[0], "shop": key[1], "reminded": state.get()["rows"]}]


SHOPS = pa.schema([("customer", pa.string()), ("shop", pa.int32())])
VISITS = pa.table({"customer": ["ada", "ada", "fay", None], "shop": [1, 2, 1, None]}, schema=SHOPS)


def visits(store: Path, name: str, rows: list[pa.Table], **options: Any) -> Job:
    arguments = {"schema": SHOPS, "tasks": 4, **options}
    job = local_run(
        rows,
        key=["customer", "shop"],
        operator=Reminders(),
        name=name,
        store=store.as_uri(),
        secret=Secret.of(SECRET),
        settings={"heartbeat_seconds": 0.1, "null_keys": "keep"},
        **arguments,
    )
    job.process_all_available()
    return job


def timers_in(store: Path, name: str) -> list[tuple[Any, ...]]:
    from elastic.portable.snapshot import JobSnapshot

    snapshot = JobSnapshot.open(FileStore(store), Secret.of(SECRET), name)
    found = [(state.timers, unit) for unit, state in snapshot.states(0)]
    return sorted(((at, key, timer) for timers, _ in found for at, key, timer in timers.items("processing")), key=str)


def test_timers_and_keys_of_several_columns_move_with_wider_types(places: tuple[Path, Path]) -> None:
    store, folder = places
    visits(store, "visits", [VISITS]).stop()
    assert export(store, folder, "visits").timers == {"Reminders": 4}
    with pytest.raises(StateNotPortable, match=r"would change|cannot become"):
        load(folder, store, key_types="customer int")
    load(folder, store, tasks=7, key_types="shop long")
    assert timers_in_import(store, "copy") == timers_in(store, "visits")
    wide = SHOPS.set(1, pa.field("shop", pa.int64()))
    with visits(store, "copy", [VISITS.cast(wide)], schema=wide, tasks=7) as job:
        assert [job.state(key)["rows"] for key in (("ada", 1), ("fay", 1), (None, None))] == [2, 2, 2]
    with pytest.raises(ElasticError, match="key types"):
        visits(store, "copy", [VISITS], tasks=7)


def timers_in_import(store: Path, name: str) -> list[tuple[Any, ...]]:
    """Of a job that has not run, so that it has no description."""
    from elastic.operators.state_codec import decode
    from storage.state import StateManager

    opened = FileStore(store)
    manifest = Manifests(opened, Secret.of(SECRET), name).latest()
    assert manifest is not None
    with StateManager(opened, Secret.of(SECRET), name) as manager:
        loaded = manager.load_many(ref for ref in manifest.units.values() if ref is not None)
    timers = [decode(one.state)[1] for one in loaded.values()]
    return sorted(((at, key, timer) for one in timers for at, key, timer in one.items("processing")), key=str)


def test_timers_that_look_through_all_state_go_to_every_task(places: tuple[Path, Path]) -> None:
    store, folder = places
    operator = Aggregate(total=functions.sum("amount"), ttl="1 hour")
    start(store, operator, 2, schema=SCHEMA).stop()
    assert export(store, folder).timers["Aggregate"] > 0
    load(folder, store, tasks=3)
    with start(store, operator, 0, "copy", tasks=3, rows=[BATCHES[2]]) as job:
        assert {name: job.state(name)["total"] for name in NAMES} == totals(3)


class Newest(Operator):
    """Its state belongs to the task."""

    output_schema = "customer string"

    def initial_state(self) -> Any:
        return []

    def handle_batch(self, rows: pa.Table, state: State, _: Context) -> None:
        state.value.append((rows.num_rows, np.arange(3)))

    def lookup(self, value: Any, _key: tuple[Any, ...]) -> Any:
        return len(value)


def test_state_of_tasks_keeps_its_tasks(places: tuple[Path, Path]) -> None:
    store, folder = places
    start(store, Newest(), 2).stop()
    export(store, folder)
    for options in ({"tasks": 4}, {"key_types": "customer binary"}):
        with pytest.raises(StateNotPortable, match="as many tasks"):
            load(folder, store, **options)
    load(folder, store)
    with start(store, Newest(), 0, "copy", rows=[BATCHES[2]]) as job:
        assert job.state("ada") == 2


class Opaque(Newest):
    """Its state needs pickle."""

    def handle_batch(self, _rows: pa.Table, state: State, _: Context) -> None:
        state.value.append(Opaque)


def test_state_that_needs_pickle_is_refused(places: tuple[Path, Path]) -> None:
    store, folder = places
    start(store, Opaque(), 2).stop()
    with pytest.raises(StateNotPortable, match="without pickle"):
        export(store, folder)
    assert not folder.exists()


def exported(tmp_path: Path) -> Path:
    """An export of a small job."""
    folder = tmp_path / "small"
    start(tmp_path / "small store", Spending1(), 1).stop()
    export(tmp_path / "small store", folder)
    return folder


def test_nothing_is_exported_or_imported_over_something_else(tmp_path: Path) -> None:
    folder, store = exported(tmp_path), tmp_path / "small store"
    with pytest.raises(InvalidExport, match="not an empty folder"):
        export(store, folder)
    with pytest.raises(UnknownOperator):
        export(store, tmp_path / "other", "wrods")
    with pytest.raises(JobExists, match="another name"):
        load(folder, store, "spending")
    with pytest.raises(JobExists):
        load(folder, store, "spending", secret=OTHER)
    load(folder, store)
    with pytest.raises(JobExists, match="nothing left to do"):
        load(folder, store)
    start(store, Spending1(), 0, "copy", rows=[BATCHES[1]]).stop()
    with pytest.raises(JobExists, match="another name"):
        load(folder, store)


def test_damaged_and_forged_files_are_refused_and_create_nothing(tmp_path: Path) -> None:
    folder, store = exported(tmp_path), tmp_path / "target"
    document = json.loads((folder / "manifest.json").read_text())

    def sealed(changes: dict[str, Any]) -> bytes:
        changed = {
            name: value for name, value in {**document, **changes}.items() if name not in ("sha256", "signature")
        }
        return json.dumps({**changed, "sha256": files.digest_of(changed), "signature": "00"}).encode()

    stage = document["stages"][0]
    forged: dict[str, bytes] = {
        "empty": b"",
        "list": b"[]",
        "cut": (folder / "manifest.json").read_bytes()[:-40],
        "edited": (folder / "manifest.json").read_bytes().replace(b'"batch": 0', b'"batch": 1'),
        "future": sealed({"version": 2}),
        "no stages": sealed({"stages": None}),
        "kind": sealed({"stages": [{**stage, "kind": "magic"}]}),
        "layout": sealed({"stages": [{**stage, "layout": {"x": "int"}}]}),
        "encoded": sealed({"stages": [{**stage, "layout": "encoded"}]}),
        "fields": sealed({"stages": [{**stage, "fields": "AAAA"}]}),
        "columns": sealed({"stages": [{**stage, "kind": "columns"}]}),
        "files": sealed({"stages": [{**stage, "files": {"state": {"sha256": "0"}}}]}),
        "identity": sealed({"identity": {}}),
        "time": sealed({"time": "now"}),
    }
    for what, data in forged.items():
        copy = tmp_path / f"forged {what}"
        shutil.copytree(folder, copy)
        (copy / "manifest.json").write_bytes(data)
        print(what)
        with pytest.raises(ElasticError):
            load(copy, store, what.replace(" ", "-"))
    for place in (0, 50, -10):
        copy = tmp_path / f"damaged {place}"
        shutil.copytree(folder, copy)
        flipped = bytearray((copy / "stage-00" / "state.parquet").read_bytes())
        flipped[place] ^= 1
        (copy / "stage-00" / "state.parquet").write_bytes(flipped)
        with pytest.raises(InvalidExport, match="checksum"):
            load(copy, store, "damaged")
    (copy / "stage-00" / "state.parquet").unlink()
    with pytest.raises(InvalidExport):
        load(copy, store, "damaged")
    assert not [entry for entry in FileStore(store).list() if "/manifest/" in entry.key]


def test_a_killed_import_leaves_no_job_and_can_be_repeated() -> None:
    """Before any call of the store: either the whole job is there, or none."""
    survived, seen = 0, set()
    while is_killed(create, store := MemoryStore(), survived):
        manifest = Manifests(store, Secret.of(SECRET), "copy").latest()
        seen.add(manifest is not None)
        if manifest is None:
            create(store)
        check_created(store)
        survived += 1
    assert survived > 5
    assert seen == {True, False}


def create(store: Store) -> None:
    rows = pa.table({"customer": [f"customer-{number}" for number in range(30)], "value": range(30)})
    secret = Secret.of(SECRET)
    check_absent(store, secret, "copy", "")
    description = describe_pipeline(build_stages(Spending1(), "customer"), SCHEMA, 5)
    create_job(store, secret, "copy", plan_rows(rows, description, None), "table")


def check_created(store: Store) -> None:
    from elastic.operators.state_codec import decode
    from storage.state import StateManager

    manifest = Manifests(store, Secret.of(SECRET), "copy").latest()
    assert manifest is not None
    with StateManager(store, Secret.of(SECRET), "copy") as manager:
        loaded = manager.load_many(ref for ref in manifest.units.values() if ref is not None)
    found: dict[str, int] = {}
    for one in loaded.values():
        found |= decode(one.state)[0]
    assert found == {f"customer-{number}": number for number in range(30)}


@pytest.mark.slow
def test_a_process_killed_with_kill_9_leaves_no_job_and_no_export(tmp_path: Path) -> None:
    for survived in (1, 4):
        folder = tmp_path / f"store {survived}"
        assert not survives(create, folder, survived)
        store = FileStore(folder)
        assert Manifests(store, Secret.of(SECRET), "copy").latest() is None
        create(store)
        check_created(store)
        store.close()
    small, target = exported(tmp_path).parent / "small store", tmp_path / "target"
    for survived in (3, 5):
        assert not survives(export_from, small, survived, target)
        assert not target.exists()
    export(small, target)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    load(target, tmp_path / "new")


def export_from(store: Store, target: Path) -> None:
    """Export through a store that kills this process."""
    import storage

    storage.open = lambda *_, **__: store
    elastic.export_state("spending", target, store="file:///nowhere", secret=SECRET)


def user_folder(tmp_path: Path, rows: dict[str, Any]) -> Path:
    folder = tmp_path / "rows"
    folder.mkdir()
    table = pa.table(rows)
    pq.write_table(table.slice(0, 2), folder / "a.parquet")
    pq.write_table(table.slice(2), folder / "b.parquet")
    return folder


@pytest.mark.parametrize(
    ("operator", "rows", "found"),
    [
        (Spending1, {"customer": ["ada", "fay", "cy"], "value": [1, 2, 3]}, {"ada": 7, "fay": 2, "cy": 10, "dan": 8}),
        (
            Columns1,
            {"customer": ["ada", "fay", "cy"], "total": pa.array([1, 2, 3], pa.int32())},
            {"ada": 7, "fay": 2, "cy": 10, "dan": 8},
        ),
    ],
)
def test_rows_of_a_user_become_the_state_of_a_job(
    tmp_path: Path, operator: type[Operator], rows: dict[str, Any], found: dict[str, int]
) -> None:
    folder, store = user_folder(tmp_path, rows), tmp_path / "store"
    load(folder, store, operator=operator(), key="customer", schema=SCHEMA, tasks=8)
    with start(store, operator(), 0, "copy", tasks=8, rows=[BATCHES[2]]) as job:
        assert {name: job.state(name) for name in found} == found


@pytest.mark.parametrize(
    ("operator", "rows"),
    [
        (Spending1, {"customer": ["ada", "ada", "cy"], "value": [1, 2, 3]}),
        (Columns1, {"customer": ["ada", "ada", "cy"], "total": [1, 2, 3]}),
        (Columns1, {"customer": ["ada", "fay", "cy"], "totals": [1, 2, 3]}),
        (Columns1, {"customer": ["ada", "fay", "cy"], "total": [1.5, 2, 3]}),
        (Columns1, {"customer": ["ada", "fay", "cy"], "total": [1, None, 3]}),
        (Spending1, {"customr": ["ada", "fay", "cy"], "value": [1, 2, 3]}),
        (Spending1, {"customer": ["ada", "fay", "cy"]}),
        (Newest, {"customer": ["ada", "fay", "cy"], "value": [1, 2, 3]}),
    ],
)
def test_rows_that_do_not_fit_are_refused(tmp_path: Path, operator: type[Operator], rows: dict[str, Any]) -> None:
    folder, store = user_folder(tmp_path, rows), tmp_path / "store"
    with pytest.raises((InvalidExport, StateNotPortable)):
        load(folder, store, operator=operator(), key="customer", schema=SCHEMA, tasks=8)
    assert not [entry for entry in FileStore(store).list() if "/manifest/" in entry.key]


def test_arguments_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    folder, store = exported(tmp_path), tmp_path / "store"
    wrong: list[dict[str, Any]] = [
        {"tasks": 0},
        {"key_types": "amount int"},
        {"key": "customer"},
        {"operator": Spending1(), "key": "customer", "schema": SCHEMA},
    ]
    for options in wrong:
        with pytest.raises(InvalidJob):
            load(folder, store, **options)


def test_windows_move_with_the_secret_of_their_job_only(places: tuple[Path, Path]) -> None:
    """Their state is a structure of the engine, whose arrays refer to each other."""
    store, folder = places
    operator: Callable[[], Stage] = lambda: Stage(TopTwo(), name="top")  # noqa: E731
    start(store, operator(), 2).stop()
    export(store, folder)
    with pytest.raises(InvalidExport, match="secret of the exporting job"):
        load(folder, store, secret=OTHER)
    load(folder, store)
    with start(store, operator(), 0, "copy", rows=[BATCHES[2]]) as job:
        assert job.state("ada")[0]["amount"] == 6


def TopTwo() -> Operator:  # noqa: N802 - stands for a class
    from elastic.operators import TopK

    return TopK(2, by="amount")


def test_a_new_job_begins_with_an_initial_state_and_a_restart_ignores_it(tmp_path: Path) -> None:
    initial = pa.table({"customer": ["ada", "gus"], "value": [100, 200]})
    with start(tmp_path, Spending1(), 2, initial_state=initial) as job:
        assert {name: job.state(name) for name in ("ada", "fay", "gus")} == {"ada": 104, "fay": 6, "gus": 200}
        assert len(job.routing().assignment.nodes) == 2
        job.stop()
    with start(tmp_path, Spending1(), 3, initial_state=initial) as job:
        assert {name: job.state(name) for name in ("ada", "gus")} == {"ada": 110, "gus": 200}


def test_an_initial_state_that_does_not_fit_is_refused_before_anything_starts(tmp_path: Path) -> None:
    for rows in ({"customer": ["ada", "ada"], "value": [1, 2]}, {"customer": [b"\xff"], "value": [1]}, {"value": [1]}):
        with pytest.raises(InvalidExport, match=r"the (rows|initial state) cannot be imported"):
            start(tmp_path, Spending1(), 1, initial_state=pa.table(rows))
    with pytest.raises(UnknownOperator):
        export(tmp_path, tmp_path / "export")


def test_the_state_behind_a_partial_stage_moves_and_the_partial_stage_begins_empty(places: tuple[Path, Path]) -> None:
    store, folder = places
    start(store, partial(CountByKey()), 2).stop()
    assert export(store, folder).rows == {"partial-CountByKey": 0, "CountByKey": 3}
    load(folder, store, tasks=5)
    with start(store, partial(CountByKey()), 0, "copy", tasks=5, rows=[BATCHES[2]]) as job:
        found = {name: job.state(name, stage="CountByKey", fresh=True) for name in NAMES}
        assert found == {"ada": 3, "fay": 2, "cy": 2, "dan": 1}


def test_partials_that_are_held_are_refused(places: tuple[Path, Path]) -> None:
    store, folder = places
    start(store, partial(CountByKey(), every="1 hour"), 2).stop()
    with pytest.raises(StateNotPortable, match="1 batch"):
        export(store, folder)


def test_keys_that_a_table_places_elsewhere_move_home(places: tuple[Path, Path]) -> None:
    store, folder = places
    job = start(store, Stage(Spending1(), grouping="table"), 2)
    rekey(job, {"ada": 3, "cy": 0})
    job.stop(drain=False)
    export(store, folder)
    load(folder, store, tasks=5)
    with start(store, Stage(Spending1(), grouping="table"), 0, "copy", tasks=5, rows=[BATCHES[2]]) as job:
        assert totals_of(job) == totals(3)
