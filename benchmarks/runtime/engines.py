"""The engines: each counts rows per key with durable state and discards its output."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pandas as pd
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import elastic
from benchmarks.runtime.stream import Stream
from elastic.operators import CountByKey
from scripts import s3_server

_STATE = "org.apache.spark.sql.execution.streaming.state"
_HDFS = f"{_STATE}.HDFSBackedStateStoreProvider"
_ROCKSDB = f"{_STATE}.RocksDBStateStoreProvider"
_COUNTS = "key long, count long"


class RunningEngine(Protocol):
    """A running query; `batches` counts those that are applied to the state."""

    query: StreamingQuery

    def batches(self) -> int: ...

    def nodes(self) -> list[int]:
        """Return the processes that hold state, if they are separate."""
        ...


Engine = Callable[[SparkSession, Stream, int, Path], Any]


class _SparkQuery:
    def __init__(self, query: StreamingQuery) -> None:
        self.query = query

    def batches(self) -> int:
        last = self.query.lastProgress
        return 0 if last is None else int(last["batchId"]) + 1

    def nodes(self) -> list[int]:
        return []


class _ElasticJob:
    def __init__(self, job: "elastic.SparkJob") -> None:
        self.job = job
        self.query = job.stream

    def batches(self) -> int:
        return self.job.status().published_batch + 1

    def nodes(self) -> list[int]:
        return [node.pid for node in self.job.status().nodes]


class Count(StatefulProcessor):
    """Counts with Spark's arbitrary stateful processing in pandas."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._count = handle.getValueState("count", "count long")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], _timers: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        count = sum(len(frame) for frame in rows)
        if (known := self._count.get()) is not None:
            count += known[0]
        self._count.update((count,))
        yield pd.DataFrame({"key": [key[0]], "count": [count]})

    def close(self) -> None:
        """Release nothing: there are no resources."""


class CountRows(Count):
    """Counts with Spark's arbitrary stateful processing in rows."""

    def handleInputRows(self, key: Any, rows: Iterator[Any], _timers: Any) -> Iterator[Any]:  # noqa: N802
        count = sum(1 for _ in rows)
        if (known := self._count.get()) is not None:
            count += known[0]
        self._count.update((count,))
        yield Row(key=key[0], count=count)


@contextmanager
def run_on_files(spark: SparkSession, stream: Stream, nodes: int, folder: Path) -> Iterator[RunningEngine]:
    yield from _run_elastic(spark, stream, nodes, folder, (folder / "store").as_uri(), {})


@contextmanager
def run_on_minio(spark: SparkSession, stream: Stream, nodes: int, folder: Path) -> Iterator[RunningEngine]:
    data = folder / "minio"
    data.mkdir()
    with s3_server.minio_server(data) as server:
        server.create_bucket("bench")
        yield from _run_elastic(spark, stream, nodes, folder, server.url("bench"), server.settings())


@contextmanager
def run_processor(spark: SparkSession, stream: Stream, nodes: int, folder: Path) -> Iterator[RunningEngine]:
    yield from _run_processor(spark, stream, nodes, folder, pandas=False)


@contextmanager
def run_pandas_processor(spark: SparkSession, stream: Stream, nodes: int, folder: Path) -> Iterator[RunningEngine]:
    yield from _run_processor(spark, stream, nodes, folder, pandas=True)


def _run_processor(
    spark: SparkSession, stream: Stream, nodes: int, folder: Path, *, pandas: bool
) -> Iterator[RunningEngine]:
    job = elastic.transform_with_state(
        stream.frame(spark),
        key="key",
        processor=Count() if pandas else CountRows(),
        output_schema=_COUNTS,
        pandas=pandas,
        name="bench",
        nodes=nodes,
        store=(folder / "store").as_uri(),
        checkpoint=str(folder / "checkpoint"),
        trigger={"processingTime": stream.every},
        sink="none",
    )
    try:
        yield _ElasticJob(job)
    finally:
        job.stop(drain=False)


def _run_elastic(
    spark: SparkSession, stream: Stream, nodes: int, folder: Path, store: str, settings: dict[str, Any]
) -> Iterator[RunningEngine]:
    job = elastic.run(
        stream.frame(spark),
        key="key",
        operator=CountByKey(silent=True),
        name="bench",
        nodes=nodes,
        store=store,
        store_settings=settings,
        checkpoint=str(folder / "checkpoint"),
        trigger={"processingTime": stream.every},
        sink="none",
    )
    try:
        yield _ElasticJob(job)
    finally:
        job.stop(drain=False)


def _spark_engine(provider: str, count: Callable[[DataFrame], DataFrame]) -> Engine:
    @contextmanager
    def engine(spark: SparkSession, stream: Stream, nodes: int, folder: Path) -> Iterator[RunningEngine]:
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
        spark.conf.set("spark.sql.shuffle.partitions", str(nodes))
        writer = count(stream.frame(spark)).writeStream.format("noop").outputMode("update")
        writer = writer.trigger(processingTime=stream.every).option("checkpointLocation", str(folder / "checkpoint"))
        query = writer.start()
        try:
            yield _SparkQuery(query)
        finally:
            query.stop()

    return engine


def _count_by_group(frame: DataFrame) -> DataFrame:
    return frame.groupBy("key").count()


def _count_with_pandas(frame: DataFrame) -> DataFrame:
    return frame.groupBy("key").transformWithStateInPandas(
        statefulProcessor=Count(), outputStructType=_COUNTS, outputMode="Update", timeMode="None"
    )


def _count_with_rows(frame: DataFrame) -> DataFrame:
    return frame.groupBy("key").transformWithState(
        statefulProcessor=CountRows(), outputStructType=_COUNTS, outputMode="Update", timeMode="None"
    )


ENGINES: dict[str, Engine] = {
    "spark-elastic, files": run_on_files,
    "spark-elastic, MinIO": run_on_minio,
    "groupBy().count(), RocksDB": _spark_engine(_ROCKSDB, _count_by_group),
    "groupBy().count(), HDFS store": _spark_engine(_HDFS, _count_by_group),
    "transformWithState, RocksDB": _spark_engine(_ROCKSDB, _count_with_pandas),
}
# The same processors on both engines: see `python -m benchmarks.processors`.
PROCESSORS: dict[str, tuple[Engine, Engine]] = {
    "rows": (run_processor, _spark_engine(_ROCKSDB, _count_with_rows)),
    "pandas": (run_pandas_processor, _spark_engine(_ROCKSDB, _count_with_pandas)),
}


@contextmanager
def run_engine(name: str, spark: SparkSession, stream: Stream, nodes: int) -> Iterator[RunningEngine]:
    """Run an engine in a folder of its own, on the same disk as all others."""
    with run_in_folder(ENGINES[name], spark, stream, nodes) as query:
        yield query


@contextmanager
def run_in_folder(engine: Engine, spark: SparkSession, stream: Stream, nodes: int) -> Iterator[RunningEngine]:
    """Run an engine in a temporary folder."""
    with (
        # Tasks that Spark cancels continue for a moment, and may still write.
        tempfile.TemporaryDirectory(prefix="bench-runtime-", ignore_cleanup_errors=True) as folder,
        engine(spark, stream, nodes, Path(folder)) as query,
    ):
        yield query
