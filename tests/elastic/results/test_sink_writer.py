"""The sink writer delivers every published batch once, in order."""

import threading

import pyarrow as pa
import pytest

from elastic.errors import ResultsExpired, StoreUnreachable
from elastic.results import MemorySink, ResultLog, SinkWriter
from elastic.results.errors import SinkUnavailable, SinkUnreachable
from storage.errors import StoreUnavailable
from storage.stores.memory import MemoryStore
from tests.elastic.results.world import SECRET, STAGE, CountingStore, expected, publish_batches, published_log

SOON = 10.0  # seconds; a test that waits so long has failed


class FlakyStore(MemoryStore):
    """Is unavailable while `is_down` is set."""

    is_down = False

    def get(self, key: str, *, timeout: float | None = None) -> memoryview:
        if self.is_down:
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
    writer = SinkWriter(log, STAGE, sink, poll_seconds=0.01).start()
    for batches in (1, 4, 9):
        publish_batches(log, batches)
        assert writer.wait(batches - 1, SOON)
        assert sink.table().to_pylist() == all_rows(range(batches))
    assert writer.stop()
    assert writer.error is None


def test_a_notified_writer_does_not_wait_for_its_next_poll(store: MemoryStore) -> None:
    log = ResultLog(store, SECRET, "job")
    writer = SinkWriter(log, STAGE, MemorySink(), poll_seconds=3_600).start()
    publish_batches(log, 1)
    writer.notify()
    assert writer.wait(0, SOON)
    assert writer.stop()


def test_a_writer_in_the_process_of_the_publisher_fetches_no_index() -> None:
    store = CountingStore()
    log = published_log(store, 5)
    writer = SinkWriter(log, STAGE, MemorySink(), poll_seconds=3_600)
    store.pop_requests()
    writer._deliver_published()
    objects = sum(len(log.index(batch).refs) for batch in range(5))
    # Two gets and a put for the identity, and one look for the batch after the newest.
    assert store.pop_requests() == {"get": objects + 2 + 1, "put": 1}


def test_stopping_delivers_what_is_published_by_then(store: MemoryStore) -> None:
    sink = MemorySink()
    log = published_log(store, 8)
    writer = SinkWriter(log, STAGE, sink, poll_seconds=3_600).start()
    assert writer.stop(timeout_seconds=SOON)
    assert sink.table().to_pylist() == all_rows(range(8))
    assert writer.next_batch == 8


def test_a_reader_that_restarts_anywhere_sees_each_row_once(store: MemoryStore) -> None:
    log = published_log(store, 8)
    for stopped in range(9):
        sink = MemorySink()
        for batch in range(stopped):
            sink.deliver(batch, log.read(batch, STAGE))
        writer = SinkWriter(ResultLog(store, SECRET, "job"), STAGE, sink).start()
        assert writer.stop(timeout_seconds=SOON)
        assert sink.table().to_pylist() == all_rows(range(8))


def test_a_sink_that_fails_stops_its_writer_and_the_error_is_kept(store: MemoryStore) -> None:
    sink = BrokenSink()
    writer = SinkWriter(published_log(store, 5), STAGE, sink).start()
    assert not writer.wait(4, SOON)
    assert str(writer.error) == "the disk is on fire"
    assert writer.next_batch == 2
    assert sink.table().to_pylist() == all_rows(range(2))
    assert writer.stop()


def test_a_writer_behind_the_retention_ends_with_results_expired(store: MemoryStore) -> None:
    log, sink = published_log(store, 8), MemorySink()
    sink.deliver(0, log.read(0, STAGE))
    log.expire(keep=2)
    writer = SinkWriter(log, STAGE, sink).start()
    writer.stop(timeout_seconds=SOON)
    assert isinstance(writer.error, ResultsExpired)
    assert (writer.error.wanted, writer.error.oldest) == (1, 6)


def test_a_temporarily_unavailable_store_delays_results_and_loses_none() -> None:
    store, sink = FlakyStore(), MemorySink()
    log = published_log(store, 3)
    store.is_down = True
    writer = SinkWriter(log, STAGE, sink, poll_seconds=0.01).start()
    assert not writer.wait(0, 0.1)
    assert writer.error is None
    store.is_down = False
    assert writer.wait(2, SOON)
    assert sink.table().to_pylist() == all_rows(range(3))
    assert writer.stop()


def test_a_store_that_stays_unavailable_ends_the_writer_with_a_typed_error() -> None:
    store = FlakyStore()
    log = published_log(store, 3)
    store.is_down = True
    writer = SinkWriter(log, STAGE, MemorySink(), poll_seconds=0.01, retry_seconds=0.05).start()
    assert not writer.wait(0, SOON)
    assert isinstance(writer.error, StoreUnreachable)


class AwaySink(MemorySink):
    """Is unavailable for some calls of `open` and `deliver`."""

    def __init__(self, openings: int = 0, deliveries: int = 0) -> None:
        super().__init__()
        self.openings, self.deliveries = openings, deliveries

    def open(self, results: str) -> int | None:
        self.openings -= 1
        if self.openings >= 0:
            raise SinkUnavailable("the sink", "the test says so")
        return super().open(results)

    def deliver(self, batch: int, rows: pa.Table) -> None:
        self.deliveries -= 1
        if self.deliveries >= 0:
            raise SinkUnavailable("the sink", "the test says so")
        super().deliver(batch, rows)


def test_an_unavailable_sink_delays_results_and_loses_none(store: MemoryStore) -> None:
    sink = AwaySink(openings=3, deliveries=3)
    writer = SinkWriter(published_log(store, 5), STAGE, sink, poll_seconds=0.01, retry_seconds=0).start()
    assert writer.wait(4, SOON)
    assert sink.table().to_pylist() == all_rows(range(5))
    assert writer.stop()
    assert writer.error is None


def test_a_sink_that_stays_unavailable_ends_the_writer_with_a_typed_error(store: MemoryStore) -> None:
    sink = AwaySink(deliveries=1_000_000)
    writer = SinkWriter(published_log(store, 3), STAGE, sink, poll_seconds=0.01, sink_retry_seconds=0.05).start()
    assert not writer.wait(0, SOON)
    assert isinstance(writer.error, SinkUnreachable)
    assert "sink_retry_seconds" in str(writer.error)


def test_time_in_which_batches_were_delivered_is_not_time_without_the_sink(store: MemoryStore) -> None:
    class FlakySink(MemorySink):
        """Is unavailable before every batch, for a while that only adds up to more than the writer waits."""

        tried = -1

        def deliver(self, batch: int, rows: pa.Table) -> None:
            if self.tried < batch:
                self.tried = batch
                raise SinkUnavailable("the sink", "the test says so")
            super().deliver(batch, rows)

    sink = FlakySink()
    writer = SinkWriter(published_log(store, 8), STAGE, sink, poll_seconds=0.03, sink_retry_seconds=0.15).start()
    assert writer.wait(7, SOON)
    assert writer.stop()


def test_nothing_may_expire_until_the_sink_has_said_what_it_has(store: MemoryStore) -> None:
    sink = AwaySink(openings=1_000_000)
    writer = SinkWriter(published_log(store, 5), STAGE, sink, poll_seconds=0.01)
    assert writer.needed_from == 0
    sink.openings = 0
    writer.start()
    assert writer.wait(4, SOON)
    assert writer.needed_from == 5
    assert writer.stop()


def test_a_writer_that_cannot_drain_in_time_gives_up() -> None:
    store = FlakyStore()
    log = published_log(store, 3)
    store.is_down = True
    writer = SinkWriter(log, STAGE, MemorySink(), poll_seconds=0.01).start()
    assert not writer.stop(timeout_seconds=0.05)
    writer._thread.join(SOON)
    assert not writer._thread.is_alive()


def test_stopping_without_draining_does_not_wait_for_the_rest(store: MemoryStore) -> None:
    delivering, go_on = threading.Event(), threading.Event()

    class SlowSink(MemorySink):
        def deliver(self, batch: int, rows: pa.Table) -> None:
            delivering.set()
            go_on.wait(SOON)
            super().deliver(batch, rows)

    writer = SinkWriter(published_log(store, 5), STAGE, SlowSink()).start()
    assert delivering.wait(SOON)
    threading.Timer(0.05, go_on.set).start()
    assert writer.stop(drain=False, timeout_seconds=SOON)
    assert writer.next_batch == 1


@pytest.mark.parametrize("started", [True, False])
def test_stopping_is_harmless_twice_and_before_the_start(store: MemoryStore, started: bool) -> None:
    writer = SinkWriter(ResultLog(store, SECRET, "job"), STAGE, MemorySink())
    if started:
        writer.start()
    assert writer.stop()
    assert writer.stop()


@pytest.mark.parametrize("kind", [MemorySink, BrokenSink])
def test_the_sink_is_closed_once_when_the_writer_ends(store: MemoryStore, kind: type[MemorySink]) -> None:
    closed: list[MemorySink] = []
    sink = kind()
    sink.close = lambda: closed.append(sink)  # type: ignore[method-assign]
    writer = SinkWriter(published_log(store, 3), STAGE, sink).start()
    assert writer.stop(timeout_seconds=SOON)
    assert closed == [sink]
