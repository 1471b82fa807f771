"""The driver's side of a batch: called by Structured Streaming for every one, returns when it counts."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it
from pyspark.sql.types import NumericType

from elastic.errors import CheckpointMismatch
from elastic.operators.combining import Combiner
from elastic.routing import spark_hash_expression
from elastic.runtime.access import StoreAccess
from elastic.runtime.controller import Controller
from elastic.runtime.intake.arrow_batches import ArrowBatches
from elastic.runtime.intake.orders import HASH, Orders
from elastic.runtime.intake.sender import STATUS_SCHEMA, send
from elastic.runtime.intake.source_offsets import SourceOffsets
from elastic.runtime.patience import patiently
from elastic.runtime.wire.failures import failure_from_json
from elastic.settings import Settings
from storage.state import BatchTime, LogRef, SourceBatch

_TEXT_LENGTH = 500
_OFFSETS_SECONDS = 60.0  # for Spark to read one small file of its checkpoint
_GATE_SECONDS = 0.2  # between two looks whether the job stops while its stream is suspended


class BatchNotTaken(Exception):
    """What Spark is told when a batch does not count; Spark keeps it and sends it again in the next life."""


@dataclass
class Intake:
    """Takes the batches of one job, one after the other."""

    job: str
    controller: Controller
    store: StoreAccess
    settings: Settings
    key: tuple[str, ...]
    combine: Combiner | None
    token: str = field(repr=False)
    offsets: SourceOffsets
    event_time: str | None = None
    watermark_delay_ms: int = 0
    rows: int = 0
    query: str | None = None  # Spark's id of the query, once the job is known to belong to it
    arrow_batches: ArrowBatches = field(default_factory=ArrowBatches)
    failure: BaseException | None = None
    gate: threading.Lock = field(default_factory=threading.Lock)  # whoever holds it suspends the stream

    def take(self, frame: DataFrame, batch: int) -> None:
        """For `foreachBatch`. Spark turns what is raised here into text, so the error itself is kept.

        The text must be short: Spark looks for something in it with a pattern that overflows its stack on a long one.
        It looks for an interrupt, by the full name of Py4J's error: that is how it knows a stop from a failure.
        """
        try:
            with self._open_gate():
                self._take(frame, batch)
        except Exception as error:  # noqa: BLE001 - whatever it is, the job ends with it
            self.failure = error
            kind = f"{type(error).__module__}.{type(error).__name__}"
            raise BatchNotTaken(f"batch {batch}: {kind}: {str(error)[:_TEXT_LENGTH]}") from None

    @contextmanager
    def _open_gate(self) -> Iterator[None]:
        """Wait while a migration suspends the stream, unless the job stops."""
        while not self.gate.acquire(timeout=_GATE_SECONDS):
            self.controller.check_ingest()
        try:
            yield
        finally:
            self.gate.release()

    def _take(self, frame: DataFrame, batch: int) -> None:
        """Spark sends the newest batch again after a crash before it noted the end: then there is nothing to do.

        The same number with other offsets, or an older number, comes from a checkpoint that is behind the state: Spark
        puts rows into it that are in no committed batch.
        """
        self.controller.check_ingest()
        query, newest = self._claim(frame), self.controller.source
        if batch == newest.batch:
            self._check_replay(query, newest)
            return
        if batch != newest.batch + 1:
            raise CheckpointMismatch(self.job, batch, newest.batch)
        self.controller.wait_for_room()
        digest = self.offsets.read(query, batch)  # while the rows are being sent
        number = self.controller.newest_batch + 1
        timestamp_ms = self._clock()
        statuses = self._send(frame, number)
        logs = tuple(LogRef.from_json(ref) for status in statuses for ref in status["logs"])
        watermark_ms = self._watermark()
        time_ = BatchTime(number, timestamp_ms, watermark_ms, self._watermark_after(statuses, watermark_ms))
        self.controller.accept(number, logs, time_, SourceBatch(batch, digest.result(_OFFSETS_SECONDS)))
        self.rows += sum(status["rows"] for status in statuses)

    def _check_replay(self, query: str, newest: SourceBatch) -> None:
        digest = self.offsets.read(query, newest.batch).result(_OFFSETS_SECONDS)
        if None not in (digest, newest.digest) and digest != newest.digest:
            raise CheckpointMismatch(self.job, newest.batch, newest.batch)

    def tick(self, due_ms: int) -> bool:
        """Commit an empty batch if a timer that is due at `due_ms` would otherwise wait for rows; whether it did.

        A batch that is being ingested advances the time by itself.
        """
        self.controller.check_ingest()
        if self._clock() < due_ms or not self.gate.acquire(blocking=False):
            return False
        try:
            number, watermark_ms = self.controller.newest_batch + 1, self._watermark()
            self.controller.accept(number, (), BatchTime(number, self._clock(), watermark_ms, watermark_ms), None)
        finally:
            self.gate.release()
        return True

    def _claim(self, frame: DataFrame) -> str:
        if self.query is None:
            query = str(frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"))
            give_up = self.controller.ingest_stopped
            patiently(lambda: self.controller.claim(query), self.settings.store_patience_seconds, give_up)
            self.query = query
        return self.query

    def _clock(self) -> int:
        """Processing time in milliseconds; does not go back when the machine's clock does."""
        latest = self.controller.latest_time
        now_ms = time.time_ns() // 1_000_000
        return now_ms if latest is None else max(now_ms, latest.timestamp_ms)

    def _watermark(self) -> int | None:
        """As of the newest committed batch, in this run of the job or the one before."""
        latest = self.controller.latest_time
        return None if latest is None else latest.next_watermark_ms

    def _send(self, frame: DataFrame, batch: int) -> list[dict[str, Any]]:
        hashed = frame if self._hashes_in_python(frame) else frame.withColumn(HASH, self._hash())
        self.arrow_batches.limit(frame.sparkSession, frame.schema)
        # A stop cancels the senders. Interrupting one whose Python worker is being created would make Spark restart the
        # daemon that all workers of an executor share, and the nodes of other jobs would die with it.
        frame.sparkSession.sparkContext.setLocalProperty("spark.job.interruptOnCancel", "false")
        sent = hashed.mapInArrow(partial(send, self._orders(batch)), STATUS_SCHEMA).collect()
        statuses = [json.loads(row.status) for row in sent]
        for status in statuses:
            if "failure" in status:
                raise failure_from_json(status["failure"])
            self.arrow_batches.saw(status["rows"], status["bytes"])
        return statuses

    def _hash(self) -> Column:
        return F.expr(spark_hash_expression(self.key))

    def _hashes_in_python(self, frame: DataFrame) -> bool:
        """NumPy hashes numbers in a fraction of the time that Spark needs to bring a column of hashes over.

        Rows that are combined are hashed after that, when they are few.
        """
        numbers = all(isinstance(frame.schema[name].dataType, NumericType) for name in self.key)
        return numbers or self.combine is not None

    def _orders(self, batch: int) -> Orders:
        route = self.controller.route()
        return Orders(
            self.job,
            batch,
            route.routing,
            route.addresses,
            self.token,
            self.store,
            self.settings,
            self.key,
            self.event_time,
            self.combine,
        )

    def _watermark_after(self, statuses: list[dict[str, Any]], before_ms: int | None) -> int | None:
        """The latest event time of all batches, less the delay; never goes back."""
        latest: list[int] = [status["latest_ms"] for status in statuses if status["latest_ms"] is not None]
        if not latest:
            return before_ms
        watermark = max(latest) - self.watermark_delay_ms
        return watermark if before_ms is None else max(before_ms, watermark)
