"""The Parquet sink holds each result once, whatever crashes."""

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.results import ParquetSink, ResultLog
from elastic.results.errors import ForeignFolder
from storage.stores.memory import MemoryStore
from tests.elastic.results.world import (
    QUIET,
    SECRET,
    STAGE,
    Crash,
    CrashingStore,
    CrashPlan,
    expected,
    publish_batches,
    published_log,
)

BATCHES = 6


def content(folder: MemoryStore) -> list[dict[str, int]]:
    """All rows of all files, as a reader of the folder finds them."""
    files = [entry.key for entry in folder.list() if not entry.key.startswith("_")]
    return [row for key in files for row in pq.read_table(pa.py_buffer(folder.get(key))).to_pylist()]


def everything(batches: int = BATCHES) -> list[dict[str, int]]:
    return [row for batch in range(batches) for row in expected(batch)]


def run_sink(log: ResultLog, folder: MemoryStore) -> None:
    sink = ParquetSink(folder)
    first = sink.open(log.read_identity())
    published = log.poll()
    for batch in range(published.start if first is None else first, published.stop):
        sink.deliver(batch, log.read(batch, STAGE))
    sink.close()


def run_with_crashes(plan: CrashPlan) -> tuple[CrashingStore, int]:
    """Run a job and its sink, restarting both after every crash; return the folder and the number of crashes."""
    store, folder = CrashingStore(plan), CrashingStore(plan)
    crashes = 0
    while True:
        try:
            # Interleaved as they are in life: the sink runs after some batches, and again after all.
            log = ResultLog(store, SECRET, "job")
            publish_batches(log, BATCHES // 2)
            run_sink(log, folder)
            publish_batches(log, BATCHES)
            run_sink(log, folder)
        except Crash:
            crashes += 1
        else:
            plan.end()
            return folder, crashes


def test_every_batch_with_rows_is_a_file_and_batches_without_rows_are_none(tmp_path: Path) -> None:
    log = published_log(MemoryStore(), BATCHES)
    sink = ParquetSink((tmp_path / "out").as_uri())
    assert sink.open(log.read_identity()) is None
    for batch in log.poll():
        sink.deliver(batch, log.read(batch, STAGE))
    sink.close()
    names = [f"batch-{batch:012d}.parquet" for batch in range(BATCHES) if batch not in QUIET]
    assert sorted(path.name for path in (tmp_path / "out").glob("*.parquet")) == names
    assert ds.dataset(tmp_path / "out", format="parquet").to_table().to_pylist() == everything()
    assert pq.read_table(tmp_path / "out").num_rows == len(everything())


def test_a_crash_at_any_point_leaves_each_result_once() -> None:
    counting = CrashPlan()
    run_with_crashes(counting)
    assert counting.operations > 40
    for operation in range(counting.operations):
        for takes_effect in (False, True):
            folder, crashes = run_with_crashes(CrashPlan([(operation, takes_effect)]))
            assert crashes == 1
            assert content(folder) == everything(), f"crashed at operation {operation}, {takes_effect=}"


@given(st.dictionaries(st.integers(0, 150), st.booleans(), max_size=8))
def test_any_number_of_crashes_leaves_each_result_once(crashes: dict[int, bool]) -> None:
    folder, _ = run_with_crashes(CrashPlan(crashes.items()))
    assert content(folder) == everything()


def test_a_repeated_batch_is_stored_once(store: MemoryStore) -> None:
    log, folder = published_log(store, 1), MemoryStore()
    sink = ParquetSink(folder)
    sink.open(log.read_identity())
    for _ in range(3):
        sink.deliver(0, log.read(0, STAGE))
    assert content(folder) == expected(0)


def test_a_sink_continues_after_its_newest_file_without_a_marker_for_it(store: MemoryStore) -> None:
    log, folder = published_log(store, 4), MemoryStore()
    sink = ParquetSink(folder)
    sink.open(log.read_identity())
    sink.deliver(3, log.read(3, STAGE))  # and then the process is killed: nothing is closed
    assert ParquetSink(folder).open(log.read_identity()) == 4


def test_the_position_after_many_batches_without_rows_is_recorded() -> None:
    folder = MemoryStore()
    sink = ParquetSink(folder)
    sink.open("these")
    nothing = pa.table({"value": pa.array([], pa.int64())})
    for batch in range(1_000):
        sink.deliver(batch, nothing)
    resumed = ParquetSink(folder).open("these")  # after a kill
    assert resumed is not None
    assert resumed > 900
    sink.close()
    assert ParquetSink(folder).open("these") == 1_000


def test_two_writers_of_one_job_deliver_each_result_once(store: MemoryStore) -> None:
    log, folder = published_log(store, BATCHES), MemoryStore()
    sinks = [ParquetSink(folder) for _ in range(2)]
    for sink in sinks:
        sink.open(log.read_identity())
    for batch in log.poll():
        for sink in sinks:
            sink.deliver(batch, log.read(batch, STAGE))
    for sink in sinks:
        sink.close()
    assert content(folder) == everything()


def test_the_folder_of_other_results_is_refused(store: MemoryStore) -> None:
    folder = MemoryStore()
    run_sink(published_log(store, 4), folder)
    before = content(folder)
    anew = published_log(MemoryStore(), 2)  # the same job, whose store was emptied
    with pytest.raises(ForeignFolder):
        ParquetSink(folder).open(anew.read_identity())
    assert content(folder) == before


def test_a_folder_with_results_of_unknown_origin_is_refused() -> None:
    folder = MemoryStore()
    folder.put("batch-000000000007.parquet", b"whatever")
    with pytest.raises(ForeignFolder):
        ParquetSink(folder).open("these")
