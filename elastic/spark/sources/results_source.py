"""`spark.readStream.format("elastic")`: a job's results as a stream, each row once; `spark.read` reads what is there.

An offset is the number of the next batch and the identity of the result log. So a query that restarts from its
checkpoint reads each batch once, and detects that the job was started from scratch.
"""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from elastic.errors import InvalidSetting, ResultsExpired
from elastic.results import ResultLog, ResultRef, choose_stage, read_result_schemas
from elastic.results.errors import ResultsReplaced
from elastic.retry import retry_while_unavailable
from elastic.spark.sources.access import Credentials, JobAccess, parse_positive
from elastic.spark.sources.tables import pack_partitions, to_record_batches, to_spark_schema
from elastic.spark.worker_exit import exit_with_spark

_OPTIONS = ("stage", "startingBatch", "maxBatchesPerTrigger")
_PARALLEL_REQUESTS = 8  # of one planner or task
_RETRY_SECONDS = 600.0  # the default of a job: a query should not fail before the job that it reads

Answer = TypeVar("Answer")


class ResultsPartition(InputPartition):
    """Result objects that one Spark task reads, in order of batches."""

    def __init__(self, refs: list[ResultRef]) -> None:
        super().__init__(None)
        self.refs = refs


@dataclass(frozen=True)
class StageResults:
    """One stage's results in the store; a picklable value."""

    access: JobAccess
    stage: str
    schema: StructType

    def read_log(self, read: Callable[[ResultLog], Answer]) -> Answer:
        """Return what `read` returns for the result log, retried while the store is unavailable."""
        return retry_while_unavailable(lambda: read(self.access.log()), _RETRY_SECONDS)

    def partitions(self, batches: range) -> list[ResultsPartition]:
        """Return the objects of these batches in partitions; costs one small request for each batch not seen before."""
        with ThreadPoolExecutor(_PARALLEL_REQUESTS, thread_name_prefix="plan") as executor:
            indexes = list(executor.map(lambda batch: self.read_log(lambda log: log.index(batch)), batches))
        return [ResultsPartition(refs) for refs in pack_partitions(ref for index in indexes for ref in index.refs)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order of batches and units, prefetching at most the whole partition."""
        if not isinstance(partition, ResultsPartition):  # Spark's placeholder where there are no partitions
            return
        by_batch = [list(refs) for _, refs in groupby(partition.refs, lambda ref: ref.batch)]
        with ThreadPoolExecutor(_PARALLEL_REQUESTS, thread_name_prefix="read") as executor:
            for rows in executor.map(self._read_rows, by_batch):
                if rows is not None:
                    yield from to_record_batches(rows, self.schema)

    def _read_rows(self, refs: list[ResultRef]) -> pa.Table | None:
        return self.read_log(lambda log: log.read_objects(refs, self.stage))


class ResultsSource(DataSource):
    """Options: `store` and `name` of the job, `stage`, `startingBatch`, `maxBatchesPerTrigger`."""

    credentials: ClassVar[Credentials] = Credentials()  # the application's, unless `register_sources` binds others

    @classmethod
    def name(cls) -> str:
        return "elastic"

    def schema(self) -> StructType:
        access = self._access()
        schemas = read_result_schemas(access.store(), access.secret, access.job)
        return to_spark_schema(schemas[choose_stage(schemas, self.options.get("stage"))])

    def reader(self, schema: StructType) -> "ResultsReader":
        return ResultsReader(self._results(schema), self.options.get("startingBatch", "earliest"))

    def streamReader(self, schema: StructType) -> "ResultsStreamReader":  # noqa: N802 - Spark's name
        starting = self.options.get("startingBatch", "earliest")
        return ResultsStreamReader(
            self._results(schema), starting, parse_positive(self.options, "maxBatchesPerTrigger")
        )

    def _access(self) -> JobAccess:
        return JobAccess.from_options(self.options, _OPTIONS, self.credentials)

    def _results(self, schema: StructType) -> StageResults:
        # Spark calls this for every batch, in a process that may have to open the store first.
        access = self._access()
        schemas = retry_while_unavailable(
            lambda: read_result_schemas(access.store(), access.secret, access.job), _RETRY_SECONDS
        )
        return StageResults(access, choose_stage(schemas, self.options.get("stage")), schema)


class ResultsReader(DataSourceReader):
    """Reads the batches that are published when Spark plans the query."""

    def __init__(self, results: StageResults, starting: str) -> None:
        self._results = results
        self._starting = starting

    def partitions(self) -> list[ResultsPartition]:
        published = self._results.read_log(lambda log: log.poll())
        return self._results.partitions(range(_first_batch(published, self._starting), published.stop))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._results.read(partition)


class ResultsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads batch after batch; a trigger without new batches costs one small request."""

    def __init__(self, results: StageResults, starting: str, max_batches: int | None) -> None:
        self._results = results
        self._starting = starting
        self._max_batches = max_batches
        self._identity: str | None = None
        self._end: int | None = None  # for the trigger availableNow: the batch to stop before

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names, here and below
        return self._offset(_first_batch(self._results.read_log(lambda log: log.poll()), self._starting))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        # Spark has no limit in batches, but passes any limit on unchanged: one file stands for one batch.
        return ReadAllAvailable() if self._max_batches is None else ReadMaxFiles(self._max_batches)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._end = self._results.read_log(lambda log: log.poll()).stop

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        begin = self._position(start)
        published = self._results.read_log(lambda log: log.poll(since=begin - 1))
        end = published.stop if self._end is None else min(published.stop, self._end)
        if isinstance(limit, ReadMaxFiles):
            end = min(end, begin + limit.max_files)
        if begin < min(end, published.start):
            raise ResultsExpired(begin, published.start)
        return self._offset(max(begin, end))

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        known = self._results.access.log().known
        return self._offset(known.stop) if known else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[ResultsPartition]:
        return self._results.partitions(range(self._position(start), self._position(end)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._results.read(partition)

    def stop(self) -> None:
        """End this process with the query; called by PySpark's runner."""
        exit_with_spark(sys.exc_info()[1])

    def _offset(self, batch: int) -> dict[str, Any]:
        return {"next": batch, "results": self._log_identity()}

    def _position(self, offset: dict[str, Any]) -> int:
        if offset["results"] != self._log_identity():
            raise ResultsReplaced(self._results.access.job, offset["results"], self._log_identity())
        return int(offset["next"])

    def _log_identity(self) -> str:
        if self._identity is None:
            self._identity = self._results.read_log(lambda log: log.read_identity())
        return self._identity


def _first_batch(published: range, starting: str) -> int:
    """Return the batch to start with: the oldest, the next one, or the given number."""
    if starting == "earliest":
        return published.start
    if starting == "latest":
        return published.stop
    if not starting.isdecimal():
        raise InvalidSetting("startingBatch", starting, "it must be earliest, latest or the number of a batch")
    return int(starting)
