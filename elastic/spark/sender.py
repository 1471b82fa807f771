"""Senders as Spark tasks, one for each source partition of a batch."""

from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own documentation uses
from pyspark.sql.types import NumericType

from elastic.ingest.batch_spec import HASH, BatchSpec, StageFeed
from elastic.ingest.partition_sender import Connections, PartitionStatus, send_partition
from elastic.routing import spark_hash_expression
from elastic.spark.arrow_batches import ArrowBatches
from elastic.spark.source_offsets import SourceOffsets
from elastic.wire import FlightNetwork

_STATUS_SCHEMA = "status string"

_connections = Connections(FlightNetwork())  # one for each Python worker, which Spark reuses for many tasks


def send(spec: BatchSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Send the rows of one partition to the nodes, and yield its status as one row; called by `mapInArrow`."""
    context = TaskContext.get()
    partition = context.partitionId() if context is not None else 0
    status = send_partition(spec, partition, batches, _connections)
    yield pa.RecordBatch.from_pydict({"status": [status.to_json()]})


class SparkSource:
    """`BatchSource` of a streaming DataFrame; the senders are tasks of the batch's own Spark job."""

    def __init__(self, session: SparkSession) -> None:
        self._offsets = SourceOffsets(session)
        self._arrow_batches = ArrowBatches()

    def read_digest(self, query: str, batch: int) -> Future[str | None]:
        return self._offsets.read(query, batch)

    def query_id(self, rows: DataFrame) -> str:
        return str(rows.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"))

    def send(self, rows: DataFrame, spec: BatchSpec) -> list[PartitionStatus]:
        session = rows.sparkSession
        hashed = rows
        feed = spec.only_feed
        if feed is not None and not _hashes_in_python(rows, feed):
            hashed = rows.withColumn(HASH, F.expr(spark_hash_expression(feed.key)))
        self._arrow_batches.configure(session, rows.schema)
        # A stop cancels the senders. An interrupt while a Python worker is being created would make Spark restart the
        # daemon that all workers of an executor share, and the nodes of other jobs would die with it.
        session.sparkContext.setLocalProperty("spark.job.interruptOnCancel", "false")
        sent = hashed.mapInArrow(partial(send, spec), _STATUS_SCHEMA).collect()
        statuses = [PartitionStatus.from_json(row.status) for row in sent]
        for status in statuses:
            self._arrow_batches.record(status.rows, status.bytes)
        return statuses


def _hashes_in_python(rows: DataFrame, feed: StageFeed) -> bool:
    """Return whether senders compute the key hashes, instead of Spark; they do where rows go several ways.

    NumPy hashes numbers in a fraction of the time that Spark takes to transfer one more column. Rows that senders
    combine are hashed after that, when they are few.
    """
    return feed.combine is not None or all(isinstance(rows.schema[name].dataType, NumericType) for name in feed.key)
