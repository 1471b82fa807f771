"""Spark's query as the stream of a job, with a query in a thread: its end, its interruption, and a JVM that is gone."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

from elastic.errors import JobStopped, SparkLost
from elastic.spark.stream import SparkStream


class FakeQuery:
    """Batches in a thread; an error in a batch ends it, and `stop` waits for the batch in flight."""

    def __init__(self, frame: "FakeFrame") -> None:
        self._frame = frame
        self._stopping = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="query", daemon=True)
        self._thread.start()

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's names, here and below
        self._frame.check()
        return self._thread.is_alive()

    def exception(self) -> Exception | None:
        self._frame.check()
        return self._error

    def stop(self) -> None:
        self._frame.check()
        self._stopping.set()
        self._thread.join()

    def processAllAvailable(self) -> None:  # noqa: N802
        while self._thread.is_alive() and self._frame.ingested < self._frame.batches:
            self._stopping.wait(0.005)

    def _run(self) -> None:
        try:
            while not self._stopping.wait(0.005):
                if self._frame.ingested < self._frame.batches:
                    self._frame.ingest(None, self._frame.ingested)
                    self._frame.ingested += 1
                elif self._frame.ends:
                    return
        except Exception as error:  # noqa: BLE001 - as Spark does
            self._error = error


class FakeFrame:
    """A streaming DataFrame with so many batches; with the trigger `availableNow` it ends after the last."""

    def __init__(self, batches: int = 0) -> None:
        self.batches = batches
        self.ingested = 0
        self.ends = False
        self.started = 0
        self.jvm_error: Exception | None = None  # raised by every call once the JVM is gone
        self.ingest: Callable[[Any, int], None] = lambda _rows, _batch: None

    def check(self) -> None:
        if self.jvm_error is not None:
            raise self.jvm_error

    @property
    def writeStream(self) -> "FakeFrame":  # noqa: N802
        return self

    def queryName(self, _: str) -> "FakeFrame":  # noqa: N802
        return self

    def option(self, _name: str, _value: str) -> "FakeFrame":
        return self

    def trigger(self, **how: Any) -> "FakeFrame":
        self.ends = "availableNow" in how
        return self

    def foreachBatch(self, ingest: Callable[[Any, int], None]) -> "FakeFrame":  # noqa: N802
        self.ingest = ingest
        return self

    def start(self) -> FakeQuery:
        self.check()
        self.started += 1
        return FakeQuery(self)


class Ingest:
    """Records the batches; a batch may fail."""

    def __init__(self) -> None:
        self.ingested: list[int] = []
        self.failure: BaseException | None = None
        self.fails_at = -1

    def ingest(self, _rows: Any, batch: int) -> None:
        if batch == self.fails_at:
            self.failure = ValueError("no such batch")
            raise self.failure
        self.ingested.append(batch)


class Running:
    def __init__(self, batches: int, trigger: dict[str, Any]) -> None:
        frame: Any = FakeFrame(batches)
        ingest: Any = Ingest()
        self.frame, self.ingest = frame, ingest
        self.stream = SparkStream("words", frame, ingest, "checkpoint", trigger)


@pytest.fixture
def start() -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def start(batches: int = 0, **trigger: Any) -> Running:
        started.append(Running(batches, trigger))
        started[-1].stream.start()
        return started[-1]

    yield start
    for one in started:
        one.frame.jvm_error = None
        one.stream.stop()


def test_a_query_brings_every_batch_and_runs_on(start: Callable[..., Running]) -> None:
    running = start(3)
    running.stream.process_all_available()
    assert running.ingest.ingested == [0, 1, 2]
    assert (running.stream.failure, running.stream.has_ended) == (None, False)


def test_first_rows_come_with_the_first_batch_alone() -> None:
    class Rows(list[str]):
        def unionByName(self, others: "Rows") -> "Rows":  # noqa: N802 - Spark's name
            return Rows([*self, *others])

    batches: list[tuple[int, list[str]]] = []
    ingest: Any = Ingest()
    ingest.ingest = lambda rows, batch: batches.append((batch, list(rows)))
    frame: Any = FakeFrame()
    first: Any = Rows(["first"])
    stream = SparkStream("words", frame, ingest, "checkpoint", {}, first)
    stream.start()
    stream.stop()
    for batch in (0, 1, 0):  # Spark sends a batch again if the driver was lost before it was noted
        frame.ingest(Rows([f"row of {batch}"]), batch)
    assert batches == [(0, ["row of 0", "first"]), (1, ["row of 1"]), (0, ["row of 0", "first"])]


def test_a_query_whose_source_ends_has_ended_without_a_failure(start: Callable[..., Running]) -> None:
    running = start(2, availableNow=True)
    running.stream.process_all_available()
    running.stream.query._thread.join(10)  # type: ignore[attr-defined]
    assert (running.stream.failure, running.stream.has_ended) == (None, True)
    running.stream.raise_failure()


def test_a_query_that_a_batch_ended_has_its_error(start: Callable[..., Running]) -> None:
    running = start(0)
    running.ingest.fails_at = 1
    running.frame.batches = 3
    running.stream.query._thread.join(10)  # type: ignore[attr-defined]
    assert isinstance(running.stream.failure, ValueError)
    assert not running.stream.has_ended
    with pytest.raises(ValueError, match="no such batch"):
        running.stream.raise_failure()


def test_a_query_that_is_interrupted_has_not_failed_and_another_one_continues(start: Callable[..., Running]) -> None:
    running = start(2)
    running.stream.process_all_available()
    with running.stream.interrupted():
        running.frame.batches = 4
        assert (running.stream.failure, running.stream.has_ended) == (None, False)
        threading.Event().wait(0.05)
        assert running.ingest.ingested == [0, 1]
    running.stream.process_all_available()
    assert running.ingest.ingested == [0, 1, 2, 3]
    assert running.frame.started == 2


def test_a_query_that_was_stopped_is_not_started_again(start: Callable[..., Running]) -> None:
    running = start(1)
    with running.stream.interrupted():
        running.stream.stop()
    assert running.frame.started == 1
    assert (running.stream.failure, running.stream.has_ended) == (None, False)


def test_a_query_that_cannot_be_started_again_is_a_failure(start: Callable[..., Running]) -> None:
    running = start(1)
    running.stream.process_all_available()

    def refuse() -> FakeQuery:
        raise OSError("the checkpoint is gone")

    with pytest.raises(OSError, match="checkpoint"), running.stream.interrupted():
        running.frame.start = refuse
    assert isinstance(running.stream.failure, OSError)


def test_a_jvm_that_is_gone_is_a_typed_failure(start: Callable[..., Running]) -> None:
    running = start(1)
    running.stream.process_all_available()
    running.frame.jvm_error = Py4JNetworkError("Answer from Java side is empty")
    failure = running.stream.failure
    assert isinstance(failure, SparkLost)
    assert "Answer from Java side is empty" in str(failure)


def test_a_stream_that_was_not_started_has_no_query() -> None:
    with pytest.raises(JobStopped):
        assert Running(0, {}).stream.query
