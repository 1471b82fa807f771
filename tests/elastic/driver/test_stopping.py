"""A job ends within its bound, whatever hangs, and says what it left undone."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from elastic.deadlines import Deadline, finish_within
from elastic.errors import InvalidSetting, JobStopped, SparkLost
from elastic.local.run import TableStream
from elastic.operators import Context, State
from storage.errors import StoreUnavailable
from tests.elastic.driver.local_job import SCHEMA, Counts, LocalJob, start_local_job

BOUND = 2.0
SLACK = 1.0  # for a machine that is busy with other tests
released = threading.Event()


class HungCounts(Counts):
    """Hangs at a negative key until the test releases it."""

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> list[dict[str, int]]:
        if min(rows["key"].to_pylist()) < 0:
            released.wait(60)
        return super().handle_batch(rows, state, context)


@pytest.fixture
def started() -> Iterator[Callable[..., LocalJob]]:
    released.clear()
    running: list[LocalJob] = []

    def start(**how: Any) -> LocalJob:
        running.append(start_local_job(HungCounts(), max_pending_batches=2, **how))
        return running[-1]

    yield start
    released.set()
    for local in running:
        local.close()


def until(holds: Callable[[], object], seconds: float = 20.0) -> None:
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, "timed out"
        time.sleep(0.01)


def send_until_ingest_waits(local: LocalJob, *keys: int) -> None:
    for _ in range(5):
        local.send(*keys)
    until(lambda: local.job.status().pending_batches == 2)
    time.sleep(0.05)
    assert local.source.ingested == 2


def stopped_within(local: LocalJob, seconds: float, **how: Any) -> Any:
    began = time.monotonic()
    report = local.job.stop(timeout_seconds=seconds, **how)
    assert time.monotonic() - began < seconds + SLACK
    assert local.job.await_termination(0)
    assert local.job.status().state == "stopped"
    return report


def test_a_clean_stop_applies_and_saves_everything_and_says_so(started: Callable[..., LocalJob]) -> None:
    local = started(sink="memory")
    for key in range(5):
        local.send(key)
    local.job.process_all_available()
    report = stopped_within(local, 20)
    assert report.is_clean
    assert (report.last_batch, report.published_batch, report.saved_batch) == (4, 4, 4)
    assert local.job.collected().num_rows == 5
    assert local.job.stop() is report


@pytest.mark.parametrize("drain", [True, False])
def test_a_stop_returns_in_time_while_ingest_waits_for_a_hung_operator(
    started: Callable[..., LocalJob], drain: bool, caplog: pytest.LogCaptureFixture
) -> None:
    local = started()
    send_until_ingest_waits(local, -1, 1)
    report = stopped_within(local, BOUND, drain=drain)
    assert not report.is_clean
    assert (report.last_batch, report.published_batch) == (1, -1)
    assert "did not leave in time" in " ".join(report.unfinished)
    assert ("waiting for batch 1 to be applied by every node" in " ".join(report.unfinished)) is drain
    assert all(sentence in caplog.text for sentence in report.unfinished)


def test_a_batch_that_waits_for_room_is_refused_at_once_when_the_job_stops(started: Callable[..., LocalJob]) -> None:
    local = started()
    send_until_ingest_waits(local, -1, 1)
    waited = threading.Thread(target=local.job.stop, kwargs={"timeout_seconds": 10.0}, daemon=True)
    began = time.monotonic()
    waited.start()
    stream: Any = local.job._stream
    until(lambda: not stream._thread.is_alive(), seconds=2.0)
    assert time.monotonic() - began < 2.0
    released.set()  # so the drain succeeds
    waited.join(10)
    report = local.job.stop()
    assert report.is_clean
    assert (report.last_batch, report.saved_batch) == (1, 1)


def test_a_stop_returns_in_time_while_a_migration_suspends_the_stream(started: Callable[..., LocalJob]) -> None:
    local = started(tasks=8)
    local.send(-1, 1)
    until(lambda: local.job.status().last_batch == 0)
    migration = local.job.scale(4, mode="suspend", relax=True)
    until(lambda: migration.phase == "moving")
    local.send(1)  # waits at the gate
    report = stopped_within(local, BOUND)
    assert "mini-migration" in report.unfinished[0]


@pytest.mark.parametrize("drain", [True, False])
@pytest.mark.parametrize("how", ["hangs", "is away"])
def test_a_stop_returns_in_time_while_the_store_does_not_answer(
    started: Callable[..., LocalJob], monkeypatch: pytest.MonkeyPatch, how: str, drain: bool
) -> None:
    local = started()
    local.send(1, 2)
    local.job.process_all_available()
    store: Any = local.store
    asked = threading.Event()

    def away(*_: Any, **__: Any) -> Any:
        asked.set()
        if how == "hangs":
            released.wait(60)
        raise StoreUnavailable(store.url, "put", "a key", "it does not answer")

    monkeypatch.setattr(store, "put_if_absent", away)  # what commits use: the rows are in the log
    local.send(1, 2)
    assert asked.wait(10)
    report = stopped_within(local, BOUND, drain=drain)
    assert report.published_batch == 0


def test_a_stop_needs_some_time(started: Callable[..., LocalJob]) -> None:
    with pytest.raises(InvalidSetting, match="timeout_seconds"):
        started().job.stop(timeout_seconds=0)


def test_nothing_is_lost_by_a_stop_that_left_batches_undone(started: Callable[..., LocalJob]) -> None:
    local = started(url="memory:stopped-and-resumed")
    send_until_ingest_waits(local, -1, 1)
    stopped_within(local, BOUND)
    released.set()
    again = started(url="memory:stopped-and-resumed", batches=local.source.batches, ingested=2)
    until(lambda: again.source.ingested == 5)
    again.job.process_all_available()
    assert (again.job.state(1), again.job.state(-1)) == (5, 5)


def test_a_job_whose_source_ends_applies_delivers_and_saves_everything_and_ends() -> None:
    batches = [pa.table({"key": [key, 7], "value": [1, 1]}, schema=SCHEMA) for key in range(6)]
    local = start_local_job(sink="memory", ends=True, batches=batches)
    assert local.job.await_termination(20)
    status = local.job.status()
    assert (status.state, status.last_batch, status.published_batch, status.saved_batch) == ("stopped", 5, 5, 5)
    assert local.job.collected().num_rows == 12
    assert local.job.stop().is_clean


def test_a_job_whose_source_has_nothing_ends_too() -> None:
    local = start_local_job(sink="memory", ends=True)
    assert local.job.await_termination(20)
    assert local.job.status().last_batch == -1


def test_a_job_whose_source_ends_waits_for_slow_operators(started: Callable[..., LocalJob]) -> None:
    batches = [pa.table({"key": [-1], "value": [1]}, schema=SCHEMA)]
    local = started(ends=True, batches=batches)
    assert not local.job.await_termination(0.5)
    released.set()
    assert local.job.await_termination(20)
    assert local.job.status().saved_batch == 0


def test_all_that_is_available_of_an_empty_source_is_processed_at_once(started: Callable[..., LocalJob]) -> None:
    local = started(sink="memory")
    assert finish_within(10, local.job.process_all_available, "processing nothing")


def test_a_job_ends_with_a_typed_error_when_its_stream_cannot_reach_spark(
    started: Callable[..., LocalJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    local = started()
    local.send(1)
    local.job.process_all_available()
    lost = SparkLost("Py4JNetworkError: Answer from Java side is empty")
    monkeypatch.setattr(TableStream, "failure", property(lambda _: lost))
    with pytest.raises(SparkLost, match="Answer from Java side is empty"):
        local.job.await_termination(20)
    assert local.job.status().state == "failed"
    began = time.monotonic()
    local.job.stop(timeout_seconds=BOUND)
    assert time.monotonic() - began < BOUND
    with pytest.raises(SparkLost):
        local.job.scale(3)


def test_a_job_that_stopped_takes_no_batches(started: Callable[..., LocalJob]) -> None:
    local = started()
    local.job._ingest.stop(abandon=False)
    with pytest.raises(JobStopped):
        local.job._ingest.check()


def test_a_deadline_is_shared_by_all_steps() -> None:
    now = 10.0
    drained_by, deadline = Deadline.for_stop(60.0)
    assert drained_by.left() < 46 < 59 < deadline.left()
    deadline = Deadline(5.0, lambda: now)
    assert (deadline.left(), deadline.left(2.0)) == (5.0, 2.0)
    now = 14.5
    assert (deadline.left(), deadline.left(2.0), deadline.elapsed_seconds) == (0.5, 0.5, 4.5)
    now = 20.0
    assert deadline.left() == 0.0


def test_a_call_that_raises_at_the_end_is_logged_and_has_finished(caplog: pytest.LogCaptureFixture) -> None:
    assert finish_within(5, lambda: 1 // 0, "dividing")
    assert "dividing failed: ZeroDivisionError" in caplog.text
    assert not finish_within(0.01, lambda: time.sleep(0.5), "sleeping")
