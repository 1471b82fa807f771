"""The input of every engine: first all keys once, in large batches, then records at a steady rate.

A clock sets the rate, not the engine: a record enters when the clock says so, whether or not the engine reads it. After
a stop of ten seconds, the records of ten seconds are waiting, and their response times include the wait.
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.migration.source import ClockedSource

KEY_BYTES = COUNT_BYTES = 8
PAYLOAD_BYTES = 184  # with key and count, 200 bytes of state a key
FILLING_ROWS = 50_000  # in a batch while the state is being filled


@dataclass(frozen=True)
class Stream:
    """`state_mb` of state; then `rows` records every `tick_ms`, evenly over all keys, read every `trigger_ms`.

    Without a tick, records are available as fast as they are read, `rows` per batch.
    """

    state_mb: float
    rows: int = 100
    tick_ms: int = 50
    trigger_ms: int = 100

    @property
    def keys(self) -> int:
        return round(self.state_mb * 1e6 / (KEY_BYTES + COUNT_BYTES + PAYLOAD_BYTES))

    @property
    def filling_ticks(self) -> int:
        return -(-self.keys // FILLING_ROWS)

    @property
    def trigger(self) -> str:
        return f"{self.trigger_ms if self.tick_ms else 0} milliseconds"

    def frame(self, spark: SparkSession, clock: Path) -> DataFrame:
        """Return a stream of key, payload, and the time of entry in microseconds since 1970."""
        spark.dataSource.register(ClockedSource)
        reader = spark.readStream.format("clocked").option("clock", str(clock)).option("keys", self.keys)
        reader = reader.option("filling_rows", FILLING_ROWS).option("payload_bytes", PAYLOAD_BYTES)
        return reader.option("rows", self.rows).option("tick_us", self.tick_ms * 1_000).load()


def start_clock(clock: Path) -> int:
    """Start the steady rate, before which the source only fills the state; return the time in microseconds."""
    now = time.time_ns() // 1_000
    unfinished = clock.with_suffix(".new")
    unfinished.write_text(json.dumps({"began_us": now}))
    unfinished.rename(clock)
    return now
