"""The streaming query that brings a job its batches; it restarts from its checkpoint, also while the job runs."""

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
from elastic.ingest.batch_ingest import BatchIngest
from elastic.spark.failures import detect_lost_jvm, to_stream_error


@contextmanager
def _expect_interrupt() -> Iterator[None]:
    """Hide the error that Py4J logs when stopping a stream interrupts the batch in flight."""
    logger = logging.getLogger("py4j.clientserver")
    hidden = logging.Filter("nothing has this name")
    logger.addFilter(hidden)
    try:
        yield
    finally:
        logger.removeFilter(hidden)


class SparkStream:
    """`elastic.job.stream.Stream` as a streaming query of Spark. Any thread may call it."""

    def __init__(
        self,
        name: str,
        frame: DataFrame,
        ingest: BatchIngest,
        checkpoint: str,
        trigger: Mapping[str, Any],
        first_rows: DataFrame | None = None,
    ) -> None:
        self._name = name
        self._frame = frame
        self._ingest = ingest
        self._checkpoint = checkpoint
        self._trigger = trigger
        self._first_rows = first_rows  # come with the first batch of the source
        self._query: StreamingQuery | None = None
        self._failed: BaseException | None = None  # what ended the query, once known
        self._changing = threading.Lock()  # held while the query is started or stopped
        self._running = threading.Event()  # not set while the query is interrupted
        self._stopped = threading.Event()  # the query never starts again

    @property
    def query(self) -> StreamingQuery:
        """Spark's handle of the query."""
        if self._query is None:
            raise JobStopped(self._name)
        return self._query

    def start(self) -> None:
        with self._changing:
            self._start()

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Let the query end with any error, and never start it again: the job stops."""
        self._stopped.set()
        with _expect_interrupt():
            yield

    def stop(self) -> None:
        """Stop the query for good; a batch in flight ends, or is interrupted and sent again after a restart."""
        self._stopped.set()
        with self._changing:
            self._stop()

    @contextmanager
    def interrupted(self) -> Iterator[None]:
        """Stop the query, and start another one from its checkpoint at the end of the block."""
        with self._changing:
            was_active = self.query.isActive
            self._running.clear()
            self._stop()
        try:
            yield
        finally:
            with self._changing:
                try:
                    if was_active and not self._stopped.is_set():
                        self._restart()
                finally:
                    self._running.set()  # also if it could not be started: `failure` must report that

    @property
    def failure(self) -> BaseException | None:
        """The error that ended the query; None while it runs and after a stop."""
        with self._changing:
            # A stop or an interruption may fail the batch in flight; that is no failure of the job.
            if self._stopped.is_set() or not self._running.is_set():
                return None
            try:
                if self._is_active():
                    return None
                failed = self._ingest.failure  # or what made the last restart fail
                return self.query_error or (failed and to_stream_error(self._name, failed))
            except SparkLost as lost:
                return lost

    @property
    def has_ended(self) -> bool:
        """Whether the query has ended without an error and without a stop: its source has no more batches."""
        with self._changing:
            if self._stopped.is_set() or not self._running.is_set() or self._is_active():
                return False
            return self._ingest.failure is None and self.query_error is None

    def process_all_available(self) -> None:
        """Wait until everything that the source has now is ingested, through interruptions too."""
        while True:
            self._running.wait()
            query = self.query
            try:
                query.processAllAvailable()
            except PySparkException as error:
                raise copy(self._find_error(query) or to_stream_error(self._name, error)) from None
            if query is self._query and self._running.is_set():
                return

    @property
    def query_error(self) -> BaseException | None:
        """The error that ended the query, None while it runs and after a stop or an interruption."""
        return None if self._query is None else self._find_error(self._query)

    def raise_failure(self) -> None:
        if not self._stopped.is_set() and (error := self.query_error) is not None:
            raise copy(error)

    def _find_error(self, query: StreamingQuery) -> BaseException | None:
        """Return the error that ended a query, None if it runs or was stopped.

        Spark reports an error of the ingest as text; the ingest keeps the error itself.
        """
        if self._failed is None:
            with detect_lost_jvm():
                error = query.exception()
            if error is not None:
                self._failed = to_stream_error(self._name, self._ingest.failure or error)
        return self._failed

    def _is_active(self) -> bool:
        with detect_lost_jvm():
            return self._query is not None and bool(self._query.isActive)

    def _start(self) -> None:
        writer = self._frame.writeStream.queryName(self._name).foreachBatch(self._ingest_batch)
        if self._trigger:
            writer = writer.trigger(**self._trigger)
        self._failed = None
        self._query = writer.option("checkpointLocation", self._checkpoint).start()
        self._running.set()

    def _ingest_batch(self, rows: DataFrame, batch: int) -> None:
        if batch == 0 and self._first_rows is not None:
            rows = rows.unionByName(self._first_rows)
        self._ingest.ingest(rows, batch)

    def _restart(self) -> None:
        self._ingest.failure = None
        try:
            self._start()
        except Exception as error:
            self._ingest.failure = error  # ends the job
            raise

    def _stop(self) -> None:
        if self._query is not None:
            with _expect_interrupt():
                self._query.stop()
