"""What is compared: each engine counts rows per key, durably, and gives its output to nobody."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import elastic
from benchmarks.runtime.stream import Stream
from elastic.operators import CountByKey
from scripts import s3_server

_STATE = "org.apache.spark.sql.execution.streaming.state"
_HDFS = f"{_STATE}.HDFSBackedStateStoreProvider"
_ROCKSDB = f"{_STATE}.RocksDBStateStoreProvider"


class Running(Protocol):
    """A query under way; `batches` counts those whose rows are in the state."""

    query: StreamingQuery

    def batches(self) -> int: ...

    def nodes(self) -> list[int]:
        """Processes that hold state, if they are separate."""
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
    def __init__(self, job: "elastic.Job") -> None:
        self.job = job
        self.query = job.stream

    def batches(self) -> int:
        return self.job.status().published_batch + 1

    def nodes(self) -> list[int]:
        return [node.pid for node in self.job.status().nodes]


class Count(StatefulProcessor):
    """The same with Spark's own arbitrary state, on pandas."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._count = handle.getValueState("count", "count long")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], _timers: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        count = sum(len(frame) for frame in rows)
        if (known := self._count.get()) is not None:
            count += known[0]
        self._count.update((count,))
        yield pd.DataFrame({"key": [key[0]], "count": [count]})

    def close(self) -> None:
        """Nothing to give back."""


@contextmanager
def this_engine(spark: SparkSession, stream: Stream, nodes: int, folder: Path) -> Iterator[Running]:
    yield from _elastic(spark, stream, nodes, folder, (folder / "store").as_uri(), {})


@contextmanager
def this_engine_on_minio(spark: SparkSession, stream: Stream, nodes: int, folder: Path) -> Iterator[Running]:
    data = folder / "minio"
    data.mkdir()
    with s3_server.minio_server(data) as server:
        server.create_bucket("bench")
        yield from _elastic(spark, stream, nodes, folder, server.url("bench"), server.settings())


def _elastic(
    spark: SparkSession, stream: Stream, nodes: int, folder: Path, store: str, settings: dict[str, Any]
) -> Iterator[Running]:
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


def _spark_engine(provider: str, counted: Callable[[DataFrame], DataFrame]) -> Engine:
    @contextmanager
    def engine(spark: SparkSession, stream: Stream, nodes: int, folder: Path) -> Iterator[Running]:
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
        spark.conf.set("spark.sql.shuffle.partitions", str(nodes))
        writer = counted(stream.frame(spark)).writeStream.format("noop").outputMode("update")
        writer = writer.trigger(processingTime=stream.every).option("checkpointLocation", str(folder / "checkpoint"))
        query = writer.start()
        try:
            yield _SparkQuery(query)
        finally:
            query.stop()

    return engine


def _grouped(frame: DataFrame) -> DataFrame:
    return frame.groupBy("key").count()


def _transformed(frame: DataFrame) -> DataFrame:
    return frame.groupBy("key").transformWithStateInPandas(
        statefulProcessor=Count(), outputStructType="key long, count long", outputMode="Update", timeMode="None"
    )


ENGINES: dict[str, Engine] = {
    "spark-elastic, files": this_engine,
    "spark-elastic, MinIO": this_engine_on_minio,
    "groupBy().count(), RocksDB": _spark_engine(_ROCKSDB, _grouped),
    "groupBy().count(), HDFS store": _spark_engine(_HDFS, _grouped),
    "transformWithState, RocksDB": _spark_engine(_ROCKSDB, _transformed),
}


@contextmanager
def running(name: str, spark: SparkSession, stream: Stream, nodes: int) -> Iterator[Running]:
    """The engine at work, with a folder of its own on the same disk as all others."""
    with (
        # Tasks that Spark cancels go on for a moment, and may write once more.
        tempfile.TemporaryDirectory(prefix="bench-runtime-", ignore_cleanup_errors=True) as folder,
        ENGINES[name](spark, stream, nodes, Path(folder)) as query,
    ):
        yield query
