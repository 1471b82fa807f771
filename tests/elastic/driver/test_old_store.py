"""A store that version 0.1 wrote can be opened: its state, its log, its results and its journal.

The job counted `key long` with 8 tasks, scaled from 2 to 3 nodes after batch 2 and saved its state there. Batch n < 3
holds the keys from 10n to 10n + 19, batch 3 <= n < 6 those from n to n + 14.
"""

import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import storage
from elastic.control import JobJournal
from elastic.core.pipeline import create_runners
from elastic.job.restart import find_published, recover_manifest
from elastic.operators import CountByKey
from elastic.results import Description, ResultLog
from storage import Secret, Store
from storage.state import BatchTime, InputLog, Manifests, StateManager

JOB = "counts"
SECRET = Secret.of("the secret of the stored fixture")
WATERMARK_MS = 1_714_557_604_000  # the event time of batch 5, 10:00:05, less a delay of a second
FIXTURE = Path(__file__).parents[2] / "data" / "store-0.1.zip"


def keys_of(batch: int) -> range:
    return range(10 * batch, 10 * batch + 20) if batch < 3 else range(batch, batch + 15)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    with zipfile.ZipFile(FIXTURE) as archive:
        archive.extractall(tmp_path)
    return storage.open(tmp_path.as_uri())


def test_its_manifest_is_taken_over_with_its_watermark_and_its_published_results(store: Store) -> None:
    pipeline = Description.load(store, SECRET, JOB)
    pipeline = replace(pipeline, inputs=(replace(pipeline.inputs[0], event_time="ts"),))  # as the user of the job says
    manifest = recover_manifest(Manifests(store, SECRET, JOB), JOB, pipeline, nodes=2)
    assert (manifest.last_batch, manifest.low_water_mark, manifest.epoch) == (5, 2, 3)
    assert isinstance(manifest.latest_time, BatchTime)
    assert manifest.latest_time.next_watermark_ms == WATERMARK_MS
    assert find_published(manifest, ResultLog(store, SECRET, JOB), JOB) == 5


def test_its_states_and_its_log_hold_every_row_once(store: Store) -> None:
    pipeline = Description.load(store, SECRET, JOB)
    assert isinstance(pipeline.stages[0].operator, CountByKey)
    (runner,) = create_runners(pipeline, "fail")
    manifest = Manifests(store, SECRET, JOB).recover()
    states, log = StateManager(store, SECRET, JOB), InputLog(store, SECRET, JOB)
    counted: Counter[int] = Counter()
    for ref in manifest.units.values():
        assert ref is not None
        rows = runner.state_rows(runner.restore(states.load(ref).state)).to_pylist()
        counted.update({row["key"]: row["count"] for row in rows})
    for logged in manifest.log:
        for rows in log.read(logged, range(8)).values():
            counted.update({row["key"]: row["count"] for row in rows.to_pylist()})
    assert counted == Counter(key for batch in range(6) for key in keys_of(batch))


def test_its_results_and_its_journal_can_be_read(store: Store) -> None:
    log = ResultLog(store, SECRET, JOB)
    assert log.poll() == range(6)
    for batch in log.poll():
        assert sorted(row["key"] for row in log.read(batch, "CountByKey").to_pylist()) == sorted(keys_of(batch))
    assert [record["kind"] for record in JobJournal(store, JOB).read()] == ["began", "ended"]
