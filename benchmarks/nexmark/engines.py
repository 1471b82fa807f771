"""The engines: both read the same files in the same batches, keep durable state, and write durable results."""

import os
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's users know

import elastic
import storage
from benchmarks.nexmark.event_files import EventFiles
from benchmarks.nexmark.spark_way import SPARK_QUERIES
from elastic.results import ResultLog
from elastic.secret import application_secret
from examples.nexmark.events import DISORDER_MS
from examples.nexmark.queries import QUERIES, Query

NODES = 2  # one per core
TASKS = 16
SCALED = (4, 3)  # the numbers of nodes that a job gets in the middle of its stream
_STATE = "org.apache.spark.sql.execution.streaming.state"
_PROVIDERS = {
    "RocksDB": f"{_STATE}.RocksDBStateStoreProvider",
    "HDFS": f"{_STATE}.HDFSBackedStateStoreProvider",
}


class SparkSettings(NamedTuple):
    """Where Spark keeps state, and in how many partitions."""

    provider: str
    partitions: int

    def __str__(self) -> str:
        return f"{self.provider}, {self.partitions}"


SPARK_SETTINGS = {str(each): each for each in (SparkSettings(name, n) for name in _PROVIDERS for n in (2, 4, 8))}
_POLL_SECONDS = 0.02
_TIMEOUT_SECONDS = 300.0
_PROCESSING_WINDOW_SECONDS = 12.0  # a window of processing time and a tick


class Run(NamedTuple):
    """The result of a run: its rows per second after the first batches, its results, and a remark."""

    rows_per_second: float
    results: pa.Table
    note: str = ""


def run_ours(spark: SparkSession, number: int, files: EventFiles, folder: Path, *, warm_up: int, scales: bool) -> Run:
    query = QUERIES[number]
    job = elastic.run(
        query.declare({name: read_input(spark, query, files, name) for name in query.inputs}),
        key=query.key,
        operator=query.pipeline,
        name="bench",
        nodes=NODES,
        tasks=TASKS,
        store=(folder / "store").as_uri(),
        checkpoint=str(folder / "checkpoint"),
    )

    def count() -> int:
        job.await_termination(0)  # raises what ended it
        return job.batches()[1] + 1

    try:
        clock = BatchClock(files, warm_up, count, job.status)
        scaling = Scaling(job, after=warm_up, batches=files.batches) if scales else None
        speed = clock.measure()
        note = "" if scaling is None else scaling.finish()
        if number == 12:
            time.sleep(_PROCESSING_WINDOW_SECONDS)
        job.process_all_available()
        return Run(speed, read_result_log((folder / "store").as_uri(), job), note)
    finally:
        job.stop(drain=False)


def read_input(spark: SparkSession, query: Query, files: EventFiles, name: str) -> DataFrame:
    """Return what matters of an input of a query."""
    rows = files.read_stream(spark, name)
    if name in query.keep:
        column, values = query.keep[name]
        rows = rows.where(F.col(column).isin(*values))
    return rows.select(query.columns_of(name))


def run_spark(
    spark: SparkSession, number: int, files: EventFiles, folder: Path, settings: SparkSettings, *, warm_up: int
) -> Run:
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", _PROVIDERS[settings.provider])
    spark.conf.set("spark.sql.shuffle.partitions", str(settings.partitions))
    query = SPARK_QUERIES[number]
    inputs = {
        name: files.read_stream(spark, name).withWatermark("ts", f"{DISORDER_MS} milliseconds")
        for name in QUERIES[number].inputs
    }
    written = folder / "results"

    def write(rows: DataFrame, batch: int) -> None:
        rows.write.mode("overwrite").parquet(str(written / f"batch-{batch:05}"))

    writer = query.make(inputs).writeStream.outputMode(query.mode).foreachBatch(write)
    stream = writer.option("checkpointLocation", str(folder / "checkpoint")).start()

    def count() -> int:
        if (error := stream.exception()) is not None:
            raise error
        last = stream.lastProgress
        return 0 if last is None else int(last["batchId"]) + 1

    try:
        speed = BatchClock(files, warm_up, count, lambda: stream.status).measure()
        stream.processAllAvailable()
        return Run(speed, read_results(written))
    finally:
        stream.stop()


@dataclass
class BatchClock:
    """Measures from the end of the batches that warm an engine up to the end of the last batch of events."""

    files: EventFiles
    warm_up: int
    count: Callable[[], int]
    status: Callable[[], Any]

    def measure(self) -> float:
        first, began = self._wait(self.warm_up)
        last, ended = self._wait(self.files.batches)
        # An engine may have gone on with the last files between two looks.
        return (min(last, self.files.batches) - first) * self.files.rows / (ended - began)

    def _wait(self, batches: int) -> tuple[int, float]:
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while (done := self.count()) < batches:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"timed out after {_TIMEOUT_SECONDS:g} s: {done} of {self.files.batches} batches are done, "
                    f"{self.status()}. Look at the log."
                )
            time.sleep(_POLL_SECONDS)
        return done, time.perf_counter()


class Scaling:
    """Scales a job out and in, in a thread, as soon as some batches are done."""

    def __init__(self, job: elastic.SparkJob, *, after: int, batches: int) -> None:
        self._job = job
        self._after = after
        self._batches = batches
        self._moments: list[str] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="scaling", daemon=True)
        self._thread.start()

    def finish(self) -> str:
        """Wait for the last migration; return which batch each began and ended at."""
        self._thread.join(_TIMEOUT_SECONDS)
        if self._error is not None:
            raise self._error
        return ", ".join(self._moments)

    def _run(self) -> None:
        try:
            while self._job.batches()[1] + 1 < self._after:
                time.sleep(_POLL_SECONDS)
            for nodes in SCALED:
                began = self._job.batches()[1]
                self._job.scale(nodes).wait()
                self._moments.append(f"{nodes} nodes in batches {began} to {self._job.batches()[1]}")
        except BaseException as error:  # noqa: BLE001 - raised by finish
            self._error = error


def read_result_log(url: str, job: elastic.SparkJob) -> pa.Table:
    """Return what a job has published: what `job.results()` would read, without another query of Spark."""
    with closing(storage.open(url)) as store:
        log = ResultLog(store, application_secret(None, os.environ), job.name)
        stage = job.pipeline.stages[-1].name
        tables = [log.read(batch, stage) for batch in log.poll()]
    return pa.concat_tables([rows for rows in tables if rows.num_rows] or tables[:1])


def read_results(folder: Path) -> pa.Table:
    """Return what is in a folder of Parquet files, at any depth."""
    files = [str(path) for path in sorted(folder.rglob("*.parquet"))]
    return ds.dataset(files, format="parquet").to_table()
