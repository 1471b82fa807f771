"""The one stream that every engine gets: first all keys once, in large batches, then records at a steady pace.

The pace is that of a clock, not of the engine: a record enters when the clock says so, whether or not anybody reads it.
An engine that stops for ten seconds finds ten seconds of records waiting, and each of them has waited.
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

    Without a tick the records come as fast as they are read, `rows` in a batch.
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
        """Key, payload, and when the record entered, in microseconds since 1970."""
        spark.dataSource.register(ClockedSource)
        reader = spark.readStream.format("clocked").option("clock", str(clock)).option("keys", self.keys)
        reader = reader.option("filling_rows", FILLING_ROWS).option("payload_bytes", PAYLOAD_BYTES)
        return reader.option("rows", self.rows).option("tick_us", self.tick_ms * 1_000).load()


def start_clock(clock: Path) -> int:
    """From now on records enter, in microseconds since 1970; before, the source only fills the state."""
    now = time.time_ns() // 1_000
    waiting = clock.with_suffix(".new")
    waiting.write_text(json.dumps({"began_us": now}))
    waiting.rename(clock)
    return now
