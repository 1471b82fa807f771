"""Spark's query that brings the batches: started from its checkpoint, perhaps more than once in the life of a job."""

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from elastic.errors import JobStopped, SparkLost
from elastic.runtime.intake.batches import Intake
from elastic.runtime.jvm import spark_calls
from elastic.runtime.stream_failures import stream_failure


@contextmanager
def _expect_interrupt() -> Iterator[None]:
    """Stopping a stream interrupts the batch under way, which Py4J reports as an error though it is none."""
    logger = logging.getLogger("py4j.clientserver")
    hidden = logging.Filter("nothing has this name")
    logger.addFilter(hidden)
    try:
        yield
    finally:
        logger.removeFilter(hidden)


class Stream:
    """The stream of one job. Any thread may call it."""

    def __init__(self, name: str, frame: DataFrame, intake: Intake) -> None:
        self._name = name
        self._frame = frame
        self._intake = intake
        self._checkpoint = ""
        self._trigger: Mapping[str, Any] = {}
        self._query: StreamingQuery | None = None
        self._failed: BaseException | None = None  # what ended the query, once that is known
        self._changing = threading.Lock()  # held while the query is started or stopped
        self._running = threading.Event()  # not set while it is interrupted
        self._stopped = threading.Event()  # for good

    @property
    def query(self) -> StreamingQuery:
        """Spark's own."""
        if self._query is None:
            raise JobStopped(self._name)
        return self._query

    def start(self, checkpoint: str, trigger: Mapping[str, Any]) -> None:
        self._checkpoint, self._trigger = checkpoint, trigger
        with self._changing:
            self._start()

    @contextmanager
    def ending(self) -> Iterator[None]:
        """From now on the stream may end with any error, and is not started again: the job stops."""
        self._stopped.set()
        with _expect_interrupt():
            yield

    def stop(self) -> None:
        """For good. Waits for the batch under way, or interrupts it; then Spark sends it again in the next life."""
        self._stopped.set()
        with self._changing:
            self._stop()

    @contextmanager
    def interrupted(self) -> Iterator[None]:
        """The query ends, and another one goes on from its checkpoint at the end of the block."""
        with self._changing:
            was_active = self.query.isActive
            self._running.clear()
            self._stop()
        try:
            yield
        finally:
            with self._changing:
                if was_active and not self._stopped.is_set():
                    self._start_again()
                self._running.set()

    @property
    def failure(self) -> BaseException | None:
        """What ended the stream, if it should not have ended."""
        with self._changing:
            # A batch that a stop interrupts fails too, and that is no failure of the job.
            if self._stopped.is_set() or not self._running.is_set():
                return None
            try:
                if self._is_active():
                    return None
                failed = self._intake.failure  # also of a start that failed
                return self.ended_by or (failed and stream_failure(self._name, failed))
            except SparkLost as lost:
                return lost

    @property
    def has_ended(self) -> bool:
        """Whether the query has ended by itself, without an error: its source has no more batches."""
        with self._changing:
            if self._stopped.is_set() or not self._running.is_set() or self._is_active():
                return False
            return self._intake.failure is None and self.ended_by is None

    def process_all_available(self) -> None:
        """Until all that the source has now was taken in, also if the stream is interrupted meanwhile."""
        while True:
            self._running.wait()
            query = self.query
            try:
                query.processAllAvailable()
            except PySparkException as error:
                raise copy(self._error_of(query) or stream_failure(self._name, error)) from None
            if query is self._query and self._running.is_set():
                return

    @property
    def ended_by(self) -> BaseException | None:
        """What ended the query, None if it runs, or was stopped or interrupted."""
        return None if self._query is None else self._error_of(self._query)

    def raise_failure(self) -> None:
        if not self._stopped.is_set() and (error := self.ended_by) is not None:
            raise copy(error)

    def _error_of(self, query: StreamingQuery) -> BaseException | None:
        """Return what ended a query, None if it runs or was stopped.

        What the intake raised comes back through Spark as text; the error itself was kept.
        """
        if self._failed is None:
            with spark_calls():
                error = query.exception()
            if error is not None:
                self._failed = stream_failure(self._name, self._intake.failure or error)
        return self._failed

    def _is_active(self) -> bool:
        with spark_calls():
            return self._query is not None and bool(self._query.isActive)

    def _start(self) -> None:
        writer = self._frame.writeStream.queryName(self._name).foreachBatch(self._intake.take)
        if self._trigger:
            writer = writer.trigger(**self._trigger)
        self._failed = None
        self._query = writer.option("checkpointLocation", self._checkpoint).start()
        self._running.set()

    def _start_again(self) -> None:
        self._intake.failure = None
        try:
            self._start()
        except Exception as error:
            self._intake.failure = error  # the job ends with it
            raise

    def _stop(self) -> None:
        if self._query is not None:
            with _expect_interrupt():
                self._query.stop()
