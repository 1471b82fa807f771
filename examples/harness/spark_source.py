"""The same job on a local Spark, with a source on a clock."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import elastic
from elastic.errors import ElasticError
from examples.demo.source import find_start, stream_clocked_numbers
from examples.frequent_patterns.local_spark import open_store, quiet_spark
from examples.harness.application import Application, RunningStream
from examples.harness.results import Results

_SHARES = 2  # numbers of a batch, each of which stands for a part of its rows
_MILLISECOND = 1e-3
_START_SECONDS = 60.0
_POLL_SECONDS = 0.05
_DDL = {pa.string(): "string", pa.int64(): "long", pa.bool_(): "boolean", pa.timestamp("us", tz="UTC"): "timestamp"}


@contextmanager
def run_on_local_spark(
    application: Application, results: Results, *, most_nodes: int, **settings: Any
) -> Iterator[RunningStream]:
    """Start a local Spark with room for `most_nodes`, and the job on it; stop both at the end of the block."""
    with (
        quiet_spark(most_nodes) as spark,
        open_store(None) as store,
        run_on_spark(spark, store, application, results, **settings) as stream,
    ):
        yield stream


@contextmanager
def run_on_spark(
    spark: SparkSession, store: str, application: Application, results: Results, **settings: Any
) -> Iterator[RunningStream]:
    """Start the job on a Spark session, and stop it at the end of the block; `settings` are those of `elastic.run`."""
    inputs = [
        elastic.Input(
            stream_batches(spark, application, each),
            name=each.name,
            key=each.key,
            event_time=each.event_time,
            watermark_delay=None if each.event_time is None else f"{each.watermark_delay_ms} ms",
        )
        for each in application.inputs()
    ]
    job = elastic.run(
        inputs,
        operator=application.stages(),
        name=application.name,
        store=store,
        sink=results,
        trigger={"processingTime": "20 milliseconds"},  # latency of noticing a new batch
        **settings,
    )
    with job:
        began = _wait_for_start(job)
        every = application.pace.every_ms * _MILLISECOND
        yield RunningStream(job, lambda: [began + number * every for number in range(max(results.published) + 1)])


def stream_batches(spark: SparkSession, application: Application, given: elastic.Input) -> DataFrame:
    """Stream the batches of one input of an application: batch b arrives when its event time says so."""
    schema = ", ".join(f"{field.name} {_DDL[field.type]}" for field in given.schema or ())
    numbers = stream_clocked_numbers(spark, _SHARES, application.pace.every_ms)
    return numbers.mapInArrow(partial(_take, application, given.name), schema)


def _take(application: Application, name: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column("value").to_pylist():
            given = application.batch(number // _SHARES)
            rows = given if isinstance(given, pa.Table) else given[name]
            edges = [share * rows.num_rows // _SHARES for share in (number % _SHARES, number % _SHARES + 1)]
            yield from rows.slice(edges[0], edges[1] - edges[0]).to_batches()


def _wait_for_start(job: elastic.SparkJob) -> float:
    deadline = time.monotonic() + _START_SECONDS
    while (began := find_start(job.stream)) is None:
        if time.monotonic() > deadline:
            raise ElasticError(f"timed out after {_START_SECONDS:.0f} s waiting for the first batch. Try again.")
        job.await_termination(_POLL_SECONDS)
    return began
