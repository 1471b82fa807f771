"""Spark's own way: stop the query, rewrite its state for another number of partitions, start it again.

The same stream and the same state, in `groupBy().agg()` on RocksDB, since `transformWithState` cannot hold the rate.
Results count as readable when the driver has them; they are not stored anywhere, which is in Spark's favour.
"""

import threading
import time
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.migration.measures import Moments, Responses, Window
from benchmarks.migration.moves import Move
from benchmarks.migration.stream import Stream

_PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PATIENCE_SECONDS = 600.0
_TEXT_LENGTH = 500


class SparkQuery:
    """One query and all its restarts."""

    def __init__(self, spark: SparkSession, stream: Stream, clock: Path, partitions: int) -> None:
        self._spark = spark
        self._stream = stream
        self._clock = clock
        self._checkpoint = str(clock.parent / "checkpoint")
        self._seen: list[tuple[Moments, int]] = []  # when records entered, and when their results were there
        self._changed = threading.Condition()
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", _PROVIDER)
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
        self._query = self._start()

    def wait_for_batches(self, count: int) -> None:
        with self._changed:
            if not self._changed.wait_for(
                lambda: len(self._seen) >= count or not self._query.isActive, _PATIENCE_SECONDS
            ):
                raise TimeoutError(f"{len(self._seen)} of {count} batches. Use a smaller --state-mb.")
        if (error := self._query.exception()) is not None:
            raise error

    def scale(self, nodes: int) -> Move:
        """It is over when the first results after the restart are there."""
        began = time.time_ns() // 1_000
        self._query.stop()
        # A stop interrupts a batch, which is then read again: Spark allows that where duplicates are.
        self._spark._streamingCheckpointManager.repartition(self._checkpoint, nodes, enforce_exactly_once_sink=False)  # noqa: SLF001
        before = len(self._seen)
        self._query = self._start()
        self.wait_for_batches(before + 1)
        window = Window(began, time.time_ns() // 1_000)
        return Move(window, window)

    def responses(self, since: int) -> Responses:
        """For a key that came several times in a batch, of its newest record."""
        with self._changed:
            seen = [(entered, at) for entered, at in self._seen if at >= since]
        entered = np.concatenate([entered for entered, _ in seen])
        readable = np.concatenate([np.full(len(entered), at) for entered, at in seen])
        return Responses(entered, readable, readable, np.zeros(len(entered), np.int64))

    def stop(self) -> None:
        self._query.stop()

    def _start(self) -> StreamingQuery:
        state = self._stream.frame(self._spark, self._clock).groupBy("key")
        newest = state.agg(F.count("*").alias("count"), F.max("entered").alias("entered"), F.last("payload"))
        writer = newest.writeStream.outputMode("update").trigger(processingTime=self._stream.trigger)
        return writer.option("checkpointLocation", self._checkpoint).foreachBatch(self._take).start()

    def _take(self, frame: DataFrame, _batch: int) -> None:
        try:
            entered = frame.select("key", "count", "entered").toArrow()["entered"].to_numpy()
        except Exception as error:  # noqa: BLE001 - whatever it is, Spark must be told, in few words
            # A stop interrupts the batch; Spark looks for that with a pattern that overflows its stack on a long text.
            kind = f"{type(error).__module__}.{type(error).__name__}"
            raise RuntimeError(f"{kind}: {str(error)[:_TEXT_LENGTH]}") from None
        with self._changed:
            self._seen.append((entered, time.time_ns() // 1_000))
            self._changed.notify_all()
