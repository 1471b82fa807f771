"""A driver to be killed: `python -m tests.chaos.driver --folder /tmp/x --store file:///tmp/x/store`.

It runs the job and reports its status on standard output, one JSON object per line, until its standard input ends or
says `finish`. Then it takes a few more batches, stops gracefully and writes the results to its folder. Started again
with the same arguments it resumes the same job.
"""

import json
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import elastic
from elastic.api import serve
from elastic.core import coordinator
from elastic.operators import Operator, Stage
from elastic.results import ParquetSink
from storage.errors import AlreadyExists, ObjectMissing
from storage.stores.file.store import FileStore
from storage.stores.protocol import Bytes
from tests.chaos.clock import follow_clock
from tests.chaos.counting import Counting
from tests.chaos.deaths import HANGING, PIDS, STAGED, UNSTAGED, Deaths
from tests.chaos.falls import Falls, MortalHandOvers, MortalRekeyings
from tests.chaos.oracle import PARTITIONS
from tests.chaos.scaling import Scaling
from tests.chaos.settings import COUNTING, OUTPUTS, STATE, DriverSettings
from tests.chaos.windowing import Windowing

_TELL_SECONDS = 0.1


def report(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


def source(spark: SparkSession, settings: DriverSettings, deaths: Deaths) -> DataFrame:
    """The stream of `oracle.Stream`, in two partitions."""
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", settings.rows)
    frame = reader.option("numPartitions", PARTITIONS).load().select("value")
    if deaths.is_planned(UNSTAGED, STAGED):
        frame = frame.mapInArrow(partial(deaths.around_sending, settings.rows), "value long")
    key = f"{settings.stream.key_expression()} AS key"
    if settings.operator == COUNTING:
        return frame.selectExpr(key, "value")
    time_ms = settings.windowed_stream.time_expression()
    return frame.selectExpr(key, "value", f"timestamp_millis({time_ms}) AS ts", "0L AS hops")


def choose_operator(settings: DriverSettings, deaths: Deaths) -> tuple[Operator, dict[str, Any]]:
    """The operator, and the arguments that it needs of `elastic.run`."""
    if settings.operator == COUNTING:
        return Counting(deaths, settings.poison), {}
    stream = settings.windowed_stream
    event_time = {"event_time": "ts", "watermark_delay": f"{stream.delay_ms} milliseconds"}
    return Windowing(stream, deaths, settings.poison), event_time


def start(spark: SparkSession, settings: DriverSettings) -> elastic.SparkJob:
    planned = settings.planned_deaths if settings.hang < 0 else (*settings.planned_deaths, (HANGING, settings.hang))
    deaths = Deaths(settings.folder, planned)
    operator, arguments = choose_operator(settings, deaths)
    if settings.step_timeout_seconds:
        arguments["step_timeout_seconds"] = settings.step_timeout_seconds
    return elastic.run(
        source(spark, settings, deaths),
        key="key",
        operator=Stage(operator, "key", grouping=settings.grouping),
        name=settings.name,
        store=settings.store,
        tasks=settings.tasks,
        nodes=settings.nodes,
        sink=ParquetSink(settings.outputs_url) if settings.sink == "parquet" else "store",
        trigger={"processingTime": f"{settings.batch_ms} milliseconds"},
        checkpoint=f"{settings.folder}/checkpoint",
        snapshot_seconds=settings.snapshot_seconds,
        node_timeout_seconds=settings.node_timeout_seconds,
        standbys=settings.standbys,
        **arguments,
    )


class Reader:
    """The results as a streaming DataFrame, written to Parquet by Spark, with a checkpoint of its own."""

    def __init__(self, job: elastic.SparkJob, settings: DriverSettings) -> None:
        self._job = job
        self._folder = settings.folder
        self.restarts = -1
        self._query = self._start()

    def _start(self) -> StreamingQuery:
        self.restarts += 1
        writer = self._job.results().writeStream.format("parquet").option("path", f"{self._folder}/results")
        return writer.option("checkpointLocation", f"{self._folder}/reader").start()

    def look(self) -> None:
        """Start the query again if it has failed, as a supervisor would."""
        if not self._query.isActive:
            report(event="reader failed", error=str(self._query.exception())[:500])
            self._query = self._start()

    def finish(self, spark: SparkSession) -> None:
        self._query.processAllAvailable()
        self._query.stop()
        pq.write_table(spark.read.parquet(f"{self._folder}/results").toArrow(), Path(self._folder, OUTPUTS))


class Finish:
    """Whether the driver was asked to finish."""

    def __init__(self) -> None:
        self.requested = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            if line.strip() == "finish":
                break
        self.requested.set()


def plan_falls(settings: DriverSettings) -> None:
    """Let jobs that start later decide their migrations with the planned deaths."""
    Falls.folder, Falls.planned = settings.folder, settings.planned_falls
    setattr(coordinator, "HandOvers", MortalHandOvers)  # noqa: B010 - names that the module does not export
    setattr(coordinator, "Rekeyings", MortalRekeyings)  # noqa: B010


def expose_to_falls(job: elastic.SparkJob) -> None:
    Falls.pids = staticmethod(lambda: {node.name: node.pid for node in job._driver.view.nodes if node.pid})
    Falls.owners = staticmethod(lambda: job.assignment().owners)


def forget_conditions() -> None:
    """File stores of this process, which alone commits, look before they write, as on a server without conditions."""

    def put_if_absent(store: FileStore, key: str, data: Bytes, *, timeout: float | None = None) -> None:
        try:
            store.get(key, timeout=timeout)
        except ObjectMissing:
            store.put(key, data, timeout=timeout)
        else:
            raise AlreadyExists(store.url, key)

    setattr(FileStore, "conditional", False)  # noqa: B010
    setattr(FileStore, "put_if_absent", put_if_absent)  # noqa: B010


def watch(job: elastic.SparkJob, reader: Reader | None, scaling: Scaling, settings: DriverSettings) -> None:
    """Report the status of the job until it has taken all batches that it should."""
    finish, last = Finish(), None
    pids = Path(settings.folder, PIDS)
    while True:
        if job.await_termination(_TELL_SECONDS):
            raise RuntimeError("the job ended by itself")
        status = job.status()
        nodes = {node.name: node.pid for node in status.nodes if node.pid}
        if nodes:
            fresh = pids.with_suffix(".new")
            fresh.write_text(json.dumps(list(nodes.values())))
            fresh.replace(pids)
        report(
            event="status",
            state=status.state,
            last_batch=status.last_batch,
            published_batch=status.published_batch,
            saved_batch=status.saved_batch,
            serving=sum(node.serving for node in status.nodes),
            losses=status.losses,
            recoveries=[[one["seconds"], one["replayed_rows"]] for one in status.recoveries],
            pids=nodes,
            scaled=scaling.done,
            migrations=scaling.outcomes,
            wrong=scaling.wrong,
        )
        if reader is not None:
            reader.look()
        if last is None and finish.requested.is_set():
            last = status.published_batch + settings.batches
        if last is not None and status.published_batch >= last:
            return


def main() -> None:
    settings = DriverSettings.parse()
    follow_clock(settings.folder)
    if not settings.conditional:
        forget_conditions()
    spark = elastic.local_session(settings.nodes, spark_master=settings.master)
    report(event="spark", jvm=spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    plan_falls(settings)
    began = time.monotonic()
    job = start(spark, settings)
    seconds = time.monotonic() - began
    server = serve(job)
    report(event="serving", seconds=seconds, url=server.url)
    expose_to_falls(job)
    reader = Reader(job, settings) if settings.sink == "stream" else None
    scaling = Scaling(job, settings)
    watch(job, reader, scaling, settings)
    scaling.stop()
    stopping = time.monotonic()
    job.stop()
    stop_seconds = time.monotonic() - stopping
    status = job.status()
    pq.write_table(job.state_table().toArrow(), Path(settings.folder, STATE))
    if reader is not None:
        reader.finish(spark)
    restarts = 0 if reader is None else reader.restarts
    report(
        event="finished",
        last_batch=job._driver.view.source.batch,
        unsaved_batches=status.last_batch - status.saved_batch,
        reader_restarts=restarts,
        stop_seconds=stop_seconds,
        wrong=scaling.wrong,
    )
    server.stop()
    spark.stop()


if __name__ == "__main__":
    main()
