"""Batches that a job processed without keeping results are marked, and readers pass over them."""

import pytest

from elastic.errors import ResultsExpired
from elastic.results import Follower, MemorySink, ResultLog
from elastic.results.errors import OutOfOrder
from elastic.results.gaps import Gaps
from elastic.results.paths import ResultPaths
from storage.errors import BadObject
from storage.stores.memory import MemoryStore
from tests.elastic.results.world import SECRET, STAGE, expected, published_log, run_controller, written


def continue_after_gap(store: MemoryStore, published: int, gap_end: int, batches: int) -> ResultLog:
    """A log whose job published some batches, kept no results up to `gap_end`, and published again after it."""
    log = published_log(store, published)
    log.mark_gap(gap_end)
    for batch in range(gap_end + 1, batches):
        log.publish(batch, written(log, batch), timestamp_ms=batch)
    return log


def test_publishing_continues_after_a_gap_and_not_inside_it() -> None:
    store = MemoryStore()
    log = published_log(store, 3)
    with pytest.raises(OutOfOrder):
        log.publish(10, (), timestamp_ms=10)
    assert log.mark_gap(9) == range(3, 10)
    assert log.publish(10, written(log, 10), timestamp_ms=10)
    assert ResultLog(store, SECRET, "job").published() == range(11)


def test_an_empty_log_starts_with_a_gap_so_that_readers_from_the_start_do_not_fail() -> None:
    log = ResultLog(MemoryStore(), SECRET, "job")
    log.mark_gap(4)
    assert log.published() == range(5)
    assert log.read(0, STAGE).num_rows == 0


def test_marking_again_changes_nothing() -> None:
    store = MemoryStore()
    log = continue_after_gap(store, 3, 9, 11)
    assert not log.mark_gap(9)
    assert not ResultLog(store, SECRET, "job").mark_gap(10)


def test_a_sink_gets_every_result_around_a_gap_and_ends_up_after_it() -> None:
    store, sink = MemoryStore(), MemorySink()
    log = continue_after_gap(store, 3, 5_000, 5_003)
    follower = Follower(log, STAGE, sink).start()
    assert follower.wait(5_002, timeout_seconds=30)
    assert follower.stop()
    assert follower.next_batch == 5_003
    batches = [*range(3), 5_001, 5_002]
    assert sink.table().to_pylist() == [row for batch in batches for row in expected(batch)]


def test_a_reader_that_was_there_before_finds_the_gap_within_seconds() -> None:
    store, now = MemoryStore(), [0.0]
    paths = ResultPaths("job")
    reader = Gaps(store, SECRET, paths, clock=lambda: now[0])
    assert reader.covering(3) is None
    Gaps(store, SECRET, paths).add(range(3, 10))
    assert reader.covering(3) is None
    now[0] += 10.0
    assert reader.covering(3) == range(3, 10)


def test_a_gap_expires_with_the_batches_around_it() -> None:
    store = MemoryStore()
    log = continue_after_gap(store, 3, 9, 12)
    log.expire(keep=1)
    assert log.published() == range(11, 12)
    assert not list(store.list(ResultPaths("job").gaps))
    with pytest.raises(ResultsExpired):
        log.index(5)


def test_a_gap_that_is_partly_kept_stays() -> None:
    log = continue_after_gap(MemoryStore(), 3, 9, 12)
    log.expire(keep=5)
    assert log.published()[-1] == 11
    assert log.read(8, STAGE).num_rows == 0


def test_a_forged_gap_is_refused() -> None:
    store = MemoryStore()
    paths = ResultPaths("job")
    Gaps(store, SECRET, paths).add(range(3, 10))
    store.put(paths.gap(range(99)), bytes(store.get(paths.gap(range(3, 10))).data))
    with pytest.raises(BadObject):
        Gaps(store, SECRET, paths).refresh()


def test_batches_before_a_gap_stay_readable() -> None:
    log = continue_after_gap(MemoryStore(), 3, 9, 11)
    run_controller(log, 11)
    assert log.read(2, STAGE).to_pylist() == expected(2)
