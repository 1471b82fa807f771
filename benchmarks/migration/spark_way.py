"""Spark's own way: stop the query, repartition its state, restart it.

The stream and the state are the same, in `groupBy().agg()` on RocksDB, because `transformWithState` cannot sustain the
rate. A result is readable when the driver has it; it is not stored, which is in Spark's favour.
"""

import threading
import time
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.migration.measures import Moments, Move, Responses, Window
from benchmarks.migration.stream import Stream

_PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_TIMEOUT_SECONDS = 600.0
_TEXT_LENGTH = 500


class SparkQuery:
    """One query and all its restarts."""

    def __init__(self, spark: SparkSession, stream: Stream, clock: Path, partitions: int) -> None:
        self._spark = spark
        self._stream = stream
        self._clock = clock
        self._checkpoint = str(clock.parent / "checkpoint")
        self._batches: list[tuple[Moments, int]] = []  # times at which records entered, and time of their results
        self._changed = threading.Condition()
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", _PROVIDER)
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
        self._query = self._start()

    def wait_for_batches(self, count: int) -> None:
        with self._changed:
            if not self._changed.wait_for(
                lambda: len(self._batches) >= count or not self._query.isActive, _TIMEOUT_SECONDS
            ):
                raise TimeoutError(
                    f"timed out waiting for {count} batches; {len(self._batches)} are done. Use a smaller --state-mb."
                )
        if (error := self._query.exception()) is not None:
            raise error

    def scale(self, nodes: int) -> Move:
        """Repartition and restart; the migration ends with the first results after the restart."""
        began = time.time_ns() // 1_000
        self._query.stop()
        # A stop interrupts a batch, which is read again: Spark allows that only without exactly-once sinks.
        self._spark._streamingCheckpointManager.repartition(self._checkpoint, nodes, enforce_exactly_once_sink=False)  # noqa: SLF001
        before = len(self._batches)
        self._query = self._start()
        self.wait_for_batches(before + 1)
        window = Window(began, time.time_ns() // 1_000)
        return Move(window, window)

    def responses(self, since: int) -> Responses:
        """Return the responses of the newest record of each key and batch."""
        with self._changed:
            batches = [(entered, at) for entered, at in self._batches if at >= since]
        entered = np.concatenate([entered for entered, _ in batches])
        readable = np.concatenate([np.full(len(entered), at) for entered, at in batches])
        return Responses(entered, readable, readable, np.zeros(len(entered), np.int64))

    def stop(self) -> None:
        self._query.stop()

    def _start(self) -> StreamingQuery:
        state = self._stream.frame(self._spark, self._clock).groupBy("key")
        newest = state.agg(F.count("*").alias("count"), F.max("entered").alias("entered"), F.last("payload"))
        writer = newest.writeStream.outputMode("update").trigger(processingTime=self._stream.trigger)
        return writer.option("checkpointLocation", self._checkpoint).foreachBatch(self._record).start()

    def _record(self, frame: DataFrame, _batch: int) -> None:
        try:
            entered = frame.select("key", "count", "entered").toArrow()["entered"].to_numpy()
        except Exception as error:  # noqa: BLE001 - Spark must get any error, as a short text
            # A stop interrupts the batch; Spark detects that with a pattern that overflows its stack on a long text.
            kind = f"{type(error).__module__}.{type(error).__name__}"
            raise RuntimeError(f"{kind}: {str(error)[:_TEXT_LENGTH]}") from None
        with self._changed:
            self._batches.append((entered, time.time_ns() // 1_000))
            self._changed.notify_all()
