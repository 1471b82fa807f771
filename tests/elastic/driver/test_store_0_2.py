"""A store that version 0.2 wrote can be opened, and its job continues.

The job counted `key long` in the stage `counts` and the keys that reached each count in the stage `levels`, with 8
tasks and a watermark one second behind the column `ts`. It scaled from 2 to 3 nodes after batch 2 and saved its state
there. Batch n < 3 holds the keys from 10n to 10n + 19, batch 3 <= n < 6 those from n to n + 14, all at 10:00:0n.

It was made at commit 34c7b2e by `start_local_job` of `tests/elastic/runtime/local_job.py`, with these two stages, the
real sender, and the end of the job by `stop(drain=False)`.
"""

import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import storage
from elastic.control import JobJournal
from elastic.core.ids import Batch
from elastic.core.pipeline import create_runners
from elastic.core.steps import Position, steps_of
from elastic.job.job import Job
from elastic.job.restart import find_published, recover_manifest
from elastic.local import LocalNetwork
from elastic.local.run import TableSource, local_run
from elastic.operators import CountByKey, Stage
from elastic.results import Description, ResultLog
from elastic.routing import Routing
from storage import Secret, Store
from storage.journal import MigrationEnded
from storage.state import InputLog, Manifests, StateManager, UnitId

JOB = "counts"
SECRET = Secret.of("the secret of the stored fixture")
FIXTURE = Path(__file__).parents[2] / "data" / "store-0.2.zip"
SCHEMA = pa.schema([("key", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])


def keys_of(batch: int) -> range:
    return range(10 * batch, 10 * batch + 20) if batch < 3 else range(batch, batch + 15)


def rows_of(batch: int) -> pa.Table:
    at = datetime(2024, 5, 1, 10, 0, batch, tzinfo=UTC)
    return pa.table({"key": list(keys_of(batch)), "ts": [at] * len(keys_of(batch))}, schema=SCHEMA)


def time_ms(batch: int) -> int:
    return int(datetime(2024, 5, 1, 10, 0, batch, tzinfo=UTC).timestamp() * 1_000)


def counts_after(batch: int) -> Counter[int]:
    return Counter(key for number in range(batch + 1) for key in keys_of(number))


def levels_after(batch: int) -> Counter[int]:
    """How many keys have reached each count."""
    return Counter(level for count in counts_after(batch).values() for level in range(1, count + 1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with zipfile.ZipFile(FIXTURE) as archive:
        archive.extractall(tmp_path)
    return tmp_path


@pytest.fixture
def store(folder: Path) -> Store:
    return storage.open(folder.as_uri())


def test_its_manifest_is_taken_over_with_its_watermark_its_source_and_its_published_results(store: Store) -> None:
    pipeline = Description.load(store, SECRET, JOB)
    pipeline = replace(pipeline, inputs=(replace(pipeline.inputs[0], event_time="ts"),))  # as the user of the job says
    manifest = recover_manifest(Manifests(store, SECRET, JOB), JOB, pipeline, nodes=2)
    assert (manifest.last_batch, manifest.low_water_mark, manifest.epoch) == (5, 2, 3)
    assert manifest.latest_time is not None
    assert manifest.latest_time.next_watermark_ms == time_ms(5) - 1_000
    assert manifest.source is not None
    assert manifest.source.batch == 5
    assert manifest.meta["query"] == "local"
    assert find_published(manifest, ResultLog(store, SECRET, JOB), JOB) == 5
    routing = Routing.from_json(manifest.assignment)
    assert len(set(routing.assignment.owners)) == 3


def test_its_states_hold_every_row_up_to_the_snapshot_once(store: Store) -> None:
    stages = create_runners(Description.load(store, SECRET, JOB), "fail")
    manifest, states = Manifests(store, SECRET, JOB).recover(), StateManager(store, SECRET, JOB)
    counted: list[Counter[int]] = [Counter(), Counter()]
    for unit in [UnitId(stage, task) for stage in range(2) for task in range(8)]:
        ref = manifest.units[unit]
        if ref is not None:
            runner = stages[unit.stage]
            for row in runner.state_rows(runner.restore(states.load(ref).state)).to_pylist():
                key, count = ("key", "count") if unit.stage == 0 else ("count", "keys")
                counted[unit.stage][row[key]] += row[count]
    assert counted == [counts_after(2), levels_after(2)]


def test_its_log_holds_every_row_after_the_snapshot_once_in_two_rounds_a_batch(store: Store) -> None:
    manifest, log = Manifests(store, SECRET, JOB).recover(), InputLog(store, SECRET, JOB)
    steps = steps_of(manifest)
    assert [step.position for step in steps] == [Position(Batch(batch), at) for batch in (3, 4, 5) for at in (0, 1)]
    assert [step.complete for step in steps] == [False, True] * 3
    logged: Counter[int] = Counter()
    for step in steps:
        for ref in step.logs if step.round == 0 else ():
            for rows in log.read(ref, range(8)).values():
                logged.update({row["key"]: row["count"] for row in rows.to_pylist()})
    assert logged == counts_after(5) - counts_after(2)


def test_its_results_and_its_journal_can_be_read(store: Store) -> None:
    log = ResultLog(store, SECRET, JOB)
    assert log.poll() == range(6)
    for batch in log.poll():
        assert {row["count"]: row["keys"] for row in log.read(batch, "levels").to_pylist()}.items() <= dict(
            levels_after(batch)
        ).items()
    began, ended = JobJournal(store, JOB).read()
    assert (began["kind"], ended["kind"]) == ("began", "ended")
    found = MigrationEnded.from_json(ended)
    assert (found.outcome, found.nodes_before, found.nodes_after) == ("done", 2, 3)


@pytest.fixture
def job(folder: Path) -> Iterator[Job]:
    network = LocalNetwork()
    source = TableSource(network, [rows_of(batch) for batch in range(8)])
    source.ingested = 5  # the checkpoint does not know that batch 5 is committed
    job = local_run(
        source,
        key="key",
        operator=[Stage(CountByKey(), ("key",), "counts"), Stage(CountByKey("keys"), ("count",), "levels")],
        name=JOB,
        store=folder.as_uri(),
        tasks=8,
        nodes=2,
        sink="store",
        event_time="ts",
        watermark_delay_ms=1_000,
        secret=SECRET,
        network=network,
    )
    yield job
    job.stop(drain=False)


def test_its_job_continues_with_its_nodes_and_counts_every_row_once(job: Job, folder: Path) -> None:
    job.process_all_available()
    counts, levels = counts_after(7), levels_after(7)
    assert {key: job.state(key, "counts") for key in counts} == counts
    assert {level: job.state(level, "levels") for level in levels} == levels
    assert len(job.assignment().nodes) == 3
    assert job.stop().is_clean
    store = storage.open(folder.as_uri())
    manifest = Manifests(store, SECRET, JOB).latest()
    assert manifest is not None
    assert (manifest.last_batch, manifest.low_water_mark, manifest.published) == (7, 7, 7)
    assert manifest.latest_time is not None
    assert manifest.latest_time.next_watermark_ms == time_ms(7) - 1_000
    assert ResultLog(store, SECRET, JOB).poll() == range(8)


def test_its_job_can_be_scaled_and_writes_the_journal_on(job: Job) -> None:
    assert job.scale(2, relax=True).wait(30)
    job.process_all_available()
    assert [record["kind"] for record in job.journal()] == ["began", "ended", "began", "ended"]
    assert job.state(11, "counts") == counts_after(7)[11]
