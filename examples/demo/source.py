"""A streaming source of numbers at a fixed rate, independent of the speed of its reader."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

_PARTITIONS = 2


def stream_clocked_numbers(spark: SparkSession, per_batch: int, every_ms: int) -> DataFrame:
    """Stream numbers: batch b has b * per_batch to (b + 1) * per_batch - 1, and arrives b * every_ms after the start.

    It arrives whether or not the reader keeps up; a backlog is read batch by batch.
    """
    spark.dataSource.register(ClockedNumbers)
    reader = spark.readStream.format(ClockedNumbers.name()).option("per_batch", per_batch)
    return reader.option("every_us", every_ms * 1_000).load()


def find_start(query: StreamingQuery) -> float | None:
    """Return the start time of a running query's source, in seconds since 1970; None before its first batch."""
    progress = query.lastProgress
    if progress is None or not (offset := progress["sources"][0]["endOffset"]):
        return None
    found = json.loads(offset) if isinstance(offset, str) else offset
    return int(found["began_us"]) / 1e6


class ClockedNumbers(DataSource):
    """Emits `per_batch` numbers every `every_us` microseconds."""

    @classmethod
    def name(cls) -> str:
        return "clocked-numbers"

    def schema(self) -> str:
        return "value long"

    def streamReader(self, schema: StructType) -> "_Reader":  # noqa: ARG002, N802 - Spark's names
        return _Reader(self.options)


class _Share(InputPartition):
    """A range of the numbers of a batch."""

    def __init__(self, share: int, first: int, stop: int) -> None:
        super().__init__(share)
        self.first = first
        self.stop = stop


class _Reader(DataSourceStreamReader):
    """Offsets count batches and carry the start time, so that Spark's checkpoint is the only state."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._per_batch = int(options["per_batch"])
        self._every_us = int(options["every_us"])

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's names, here and below
        return {"batch": 0, "began_us": time.time_ns() // 1_000}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, int]:  # noqa: ARG002, N802
        batch, began_us = int(start["batch"]), int(start["began_us"])
        arrived = (time.time_ns() // 1_000 - began_us) // self._every_us + 1
        return {"batch": min(batch + 1, max(batch, arrived)), "began_us": began_us}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        first, stop = int(start["batch"]) * self._per_batch, int(end["batch"]) * self._per_batch
        edges = np.linspace(first, stop, _PARTITIONS + 1).astype(int).tolist()
        return [_Share(share, *edges[share : share + 2]) for share in range(_PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, _Share) and partition.first < partition.stop:  # else there are none
            numbers = np.arange(partition.first, partition.stop, dtype=np.int64)
            yield pa.RecordBatch.from_arrays([pa.array(numbers)], ["value"])
