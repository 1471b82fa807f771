"""Batches that a job processed without keeping results are marked, and readers pass over them."""

import pytest

from elastic.errors import ResultsExpired
from elastic.results import MemorySink, ResultLog, SinkWriter
from elastic.results.errors import BatchOutOfOrder
from elastic.results.gaps import Gaps
from elastic.results.paths import ResultPaths
from storage.errors import BadObject
from storage.stores.memory import MemoryStore
from tests.elastic.results.world import SECRET, STAGE, expected, publish_batches, published_log, write_results


def continue_after_gap(store: MemoryStore, published: int, gap_end: int, batches: int) -> ResultLog:
    """A log whose job published some batches, kept no results up to `gap_end`, and published again after it."""
    log = published_log(store, published)
    log.mark_gap(gap_end)
    for batch in range(gap_end + 1, batches):
        log.publish(batch, write_results(log, batch), timestamp_ms=batch)
    return log


def test_publishing_continues_after_a_gap_and_not_inside_it() -> None:
    store = MemoryStore()
    log = published_log(store, 3)
    with pytest.raises(BatchOutOfOrder):
        log.publish(10, (), timestamp_ms=10)
    assert log.mark_gap(9) == range(3, 10)
    assert log.publish(10, write_results(log, 10), timestamp_ms=10)
    assert ResultLog(store, SECRET, "job").poll() == range(11)


def test_an_empty_log_starts_with_a_gap_so_that_readers_from_the_start_do_not_fail() -> None:
    log = ResultLog(MemoryStore(), SECRET, "job")
    log.mark_gap(4)
    assert log.poll() == range(5)
    assert log.read(0, STAGE).num_rows == 0


def test_marking_again_changes_nothing() -> None:
    store = MemoryStore()
    log = continue_after_gap(store, 3, 9, 11)
    assert not log.mark_gap(9)
    assert not ResultLog(store, SECRET, "job").mark_gap(10)


def test_a_sink_gets_every_result_around_a_gap_and_ends_up_after_it() -> None:
    store, sink = MemoryStore(), MemorySink()
    log = continue_after_gap(store, 3, 5_000, 5_003)
    writer = SinkWriter(log, STAGE, sink).start()
    assert writer.wait(5_002, timeout_seconds=30)
    assert writer.stop()
    assert writer.next_batch == 5_003
    batches = [*range(3), 5_001, 5_002]
    assert sink.table().to_pylist() == [row for batch in batches for row in expected(batch)]


def test_a_sink_is_complete_after_a_gap_at_the_end_of_the_log() -> None:
    sink = MemorySink()
    writer = SinkWriter(continue_after_gap(MemoryStore(), 3, 9, 10), STAGE, sink).start()
    assert writer.wait(9, timeout_seconds=30)
    assert writer.stop()
    assert (writer.error, writer.next_batch, sink.open("these")) == (None, 10, 10)


def test_a_reader_that_continues_before_a_gap_finds_the_batches_after_it() -> None:
    store = MemoryStore()
    continue_after_gap(store, 3, 9, 12)
    assert ResultLog(store, SECRET, "job").poll(since=2) == range(2, 12)


def test_a_reader_that_started_before_finds_the_gap_within_seconds() -> None:
    store, now = MemoryStore(), [0.0]
    paths = ResultPaths("job")
    reader = Gaps(store, SECRET, paths, clock=lambda: now[0])
    assert reader.find(3) is None
    Gaps(store, SECRET, paths).add(range(3, 10))
    assert reader.find(3) is None
    now[0] += 10.0
    assert reader.find(3) == range(3, 10)


def test_a_gap_expires_with_the_batches_around_it() -> None:
    store = MemoryStore()
    log = continue_after_gap(store, 3, 9, 12)
    log.expire(keep=1)
    assert log.poll() == range(11, 12)
    assert not list(store.list(ResultPaths("job").gaps))
    with pytest.raises(ResultsExpired):
        log.index(5)


def test_a_gap_that_is_partly_kept_stays() -> None:
    store = MemoryStore()
    log = continue_after_gap(store, 3, 9, 12)
    log.expire(keep=5)
    for reader in (log, ResultLog(store, SECRET, "job")):
        assert reader.poll()[-1] == 11
        assert reader.read(8, STAGE).num_rows == 0


def test_a_forged_gap_is_refused() -> None:
    store = MemoryStore()
    paths = ResultPaths("job")
    Gaps(store, SECRET, paths).add(range(3, 10))
    store.put(paths.gap(range(99)), bytes(store.get(paths.gap(range(3, 10)))))
    with pytest.raises(BadObject):
        Gaps(store, SECRET, paths).refresh()


def test_batches_before_a_gap_stay_readable() -> None:
    log = continue_after_gap(MemoryStore(), 3, 9, 11)
    publish_batches(log, 11)
    assert log.read(2, STAGE).to_pylist() == expected(2)
