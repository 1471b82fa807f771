"""The thread between the log and a sink."""

import threading

import pyarrow as pa
import pytest

from elastic.errors import ResultsExpired, StoreAway
from elastic.results import Follower, MemorySink, ResultLog
from storage.errors import StoreUnavailable
from storage.stores.memory import MemoryStore
from storage.stores.protocol import Stored
from tests.elastic.results.world import SECRET, STAGE, CountingStore, expected, published_log, run_controller

SOON = 10.0  # seconds; a test that waits so long has failed


class FlakyStore(MemoryStore):
    """Does not answer while it is `away`."""

    away = False

    def get(self, key: str, *, timeout: float | None = None) -> Stored:
        if self.away:
            raise StoreUnavailable(self.url, "get", key, "the test says so")
        return super().get(key, timeout=timeout)


class BrokenSink(MemorySink):
    """Fails on one batch."""

    def deliver(self, batch: int, rows: pa.Table) -> None:
        if batch == 2:
            raise RuntimeError("the disk is on fire")
        super().deliver(batch, rows)


def all_rows(batches: range) -> list[dict[str, int]]:
    return [row for batch in batches for row in expected(batch)]


def test_a_sink_gets_every_batch_in_order_while_they_are_published(store: MemoryStore) -> None:
    sink = MemorySink()
    log = ResultLog(store, SECRET, "job")
    follower = Follower(log, STAGE, sink, poll_seconds=0.01).start()
    for batches in (1, 4, 9):
        run_controller(log, batches)
        assert follower.wait(batches - 1, SOON)
        assert sink.table().to_pylist() == all_rows(range(batches))
    assert follower.stop()
    assert follower.error is None


def test_a_notified_follower_does_not_wait_for_its_next_look(store: MemoryStore) -> None:
    log = ResultLog(store, SECRET, "job")
    follower = Follower(log, STAGE, MemorySink(), poll_seconds=3_600).start()
    run_controller(log, 1)
    follower.notify()
    assert follower.wait(0, SOON)
    assert follower.stop()


def test_a_follower_in_the_publisher_s_process_fetches_no_index_for_it() -> None:
    store = CountingStore()
    log = published_log(store, 5)
    follower = Follower(log, STAGE, MemorySink(), poll_seconds=3_600)
    store.taken()
    follower._catch_up()
    objects = sum(len(log.index(batch).refs) for batch in range(5))
    # Two gets and a put for the identity, and one look for the batch after the newest.
    assert store.taken() == {"get": objects + 2 + 1, "put": 1}


def test_stopping_delivers_what_is_published_by_then(store: MemoryStore) -> None:
    sink = MemorySink()
    log = published_log(store, 8)
    follower = Follower(log, STAGE, sink, poll_seconds=3_600).start()
    assert follower.stop(timeout_seconds=SOON)
    assert sink.table().to_pylist() == all_rows(range(8))
    assert follower.next_batch == 8


def test_a_reader_that_restarts_anywhere_sees_each_row_once(store: MemoryStore) -> None:
    log = published_log(store, 8)
    for stopped in range(9):
        sink = MemorySink()
        for batch in range(stopped):
            sink.deliver(batch, log.read(batch, STAGE))
        follower = Follower(ResultLog(store, SECRET, "job"), STAGE, sink).start()
        assert follower.stop(timeout_seconds=SOON)
        assert sink.table().to_pylist() == all_rows(range(8))


def test_a_sink_that_fails_stops_its_follower_and_the_error_is_seen(store: MemoryStore) -> None:
    sink = BrokenSink()
    follower = Follower(published_log(store, 5), STAGE, sink).start()
    assert not follower.wait(4, SOON)
    assert str(follower.error) == "the disk is on fire"
    assert follower.next_batch == 2
    assert sink.table().to_pylist() == all_rows(range(2))
    assert follower.stop()


def test_a_follower_that_retention_has_overtaken_says_so(store: MemoryStore) -> None:
    log, sink = published_log(store, 8), MemorySink()
    sink.deliver(0, log.read(0, STAGE))
    log.expire(keep=2)
    follower = Follower(log, STAGE, sink).start()
    follower.stop(timeout_seconds=SOON)
    assert isinstance(follower.error, ResultsExpired)
    assert (follower.error.wanted, follower.error.oldest) == (1, 6)


def test_a_store_that_is_away_for_a_while_delays_results_and_loses_none() -> None:
    store, sink = FlakyStore(), MemorySink()
    log = published_log(store, 3)
    store.away = True
    follower = Follower(log, STAGE, sink, poll_seconds=0.01).start()
    assert not follower.wait(0, 0.1)
    assert follower.error is None
    store.away = False
    assert follower.wait(2, SOON)
    assert sink.table().to_pylist() == all_rows(range(3))
    assert follower.stop()


def test_a_store_that_stays_away_ends_the_follower_with_a_typed_error() -> None:
    store = FlakyStore()
    log = published_log(store, 3)
    store.away = True
    follower = Follower(log, STAGE, MemorySink(), poll_seconds=0.01, patience_seconds=0.05).start()
    assert not follower.wait(0, SOON)
    assert isinstance(follower.error, StoreAway)


def test_a_follower_that_cannot_drain_in_time_gives_up() -> None:
    store = FlakyStore()
    log = published_log(store, 3)
    store.away = True
    follower = Follower(log, STAGE, MemorySink(), poll_seconds=0.01).start()
    assert not follower.stop(timeout_seconds=0.05)
    follower._thread.join(SOON)
    assert not follower._thread.is_alive()


def test_stopping_without_draining_does_not_wait_for_the_rest(store: MemoryStore) -> None:
    delivering, go_on = threading.Event(), threading.Event()

    class SlowSink(MemorySink):
        def deliver(self, batch: int, rows: pa.Table) -> None:
            delivering.set()
            go_on.wait(SOON)
            super().deliver(batch, rows)

    follower = Follower(published_log(store, 5), STAGE, SlowSink()).start()
    assert delivering.wait(SOON)
    threading.Timer(0.05, go_on.set).start()
    assert follower.stop(drain=False, timeout_seconds=SOON)
    assert follower.next_batch == 1


@pytest.mark.parametrize("started", [True, False])
def test_stopping_is_harmless_twice_and_before_the_start(store: MemoryStore, started: bool) -> None:
    follower = Follower(ResultLog(store, SECRET, "job"), STAGE, MemorySink())
    if started:
        follower.start()
    assert follower.stop()
    assert follower.stop()
