"""A streaming source that follows a clock; each tick has the same records however often it is read."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

PARTITIONS = 2


class ClockedSource(DataSource):
    """Options: file of the `clock`, `keys`, `filling_rows`, `payload_bytes`, `rows` in a tick, `tick_us`."""

    @classmethod
    def name(cls) -> str:
        return "clocked"

    def schema(self) -> str:
        return "key long, entered long, payload binary"

    def streamReader(self, schema: StructType) -> "ClockedReader":  # noqa: ARG002, N802 - Spark's names
        return ClockedReader(self.options)


class _Ticks(InputPartition):
    """A part of the records of some ticks."""

    def __init__(self, share: int, first: int, stop: int, began_us: int) -> None:
        super().__init__(share)
        self.share = share
        self.ticks = range(first, stop)
        self.began_us = began_us


class ClockedReader(DataSourceStreamReader):
    """Offsets count ticks: first those that fill the state, one per batch, then those of the clock."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._clock = Path(options["clock"])
        self._keys = int(options["keys"])
        self._filling_rows = int(options["filling_rows"])
        self._payload_bytes = int(options["payload_bytes"])
        self._rows = int(options["rows"])
        self._tick_us = int(options["tick_us"])
        self._filling = -(-self._keys // self._filling_rows)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's names, here and below
        return {"tick": 0}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, int]:  # noqa: ARG002, N802
        tick = int(start["tick"])
        if tick < self._filling:
            return {"tick": tick + 1}
        began_us = self._read_start_us()
        if not began_us:
            return {"tick": tick}
        if not self._tick_us:
            return {"tick": tick + 1}
        return {"tick": max(tick, self._filling + (time.time_ns() // 1_000 - began_us) // self._tick_us + 1)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        began_us = self._read_start_us()
        return [_Ticks(share, int(start["tick"]), int(end["tick"]), began_us) for share in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, _Ticks):  # else it is Spark's marker of an empty batch
            for tick in partition.ticks:
                yield self._create_records(tick, partition)

    def _create_records(self, tick: int, partition: _Ticks) -> pa.RecordBatch:
        random = np.random.default_rng([tick, partition.share])
        if tick < self._filling:
            last = min(self._keys, (tick + 1) * self._filling_rows)
            keys = np.arange(tick * self._filling_rows + partition.share, last, PARTITIONS)
            entered = 0
        else:
            keys = random.integers(0, self._keys, self._rows // PARTITIONS)
            entered = partition.began_us + (tick - self._filling) * self._tick_us
        offsets = np.arange(len(keys) + 1, dtype=np.int32) * self._payload_bytes
        # Random bytes, so that compression does not change the state size.
        data = pa.py_buffer(random.bytes(len(keys) * self._payload_bytes))
        payload = pa.Array.from_buffers(pa.binary(), len(keys), [None, pa.py_buffer(offsets), data])
        columns = [pa.array(keys), pa.array(np.full(len(keys), entered)), payload]
        return pa.RecordBatch.from_arrays(columns, ["key", "entered", "payload"])

    def _read_start_us(self) -> int:
        """Return when the clock was started, 0 before that."""
        try:
            return int(json.loads(self._clock.read_text())["began_us"])
        except FileNotFoundError:
            return 0
