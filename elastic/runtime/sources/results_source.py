"""`spark.readStream.format("elastic")`: a job's results as a stream, each row once; `spark.read` gives what is there.

An offset is the number of the next batch, and the identity of the results that it counts in. So a query that restarts
from its checkpoint reads each batch once, and notices if the job was started anew meanwhile.
"""

import os
import sys
from collections.abc import Iterator
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from elastic.errors import InvalidSetting, ResultsExpired
from elastic.results import chosen_stage, result_schemas
from elastic.results.errors import OtherResults
from elastic.runtime.patience import patiently
from elastic.runtime.sources.access import Access, Credentials, positive
from elastic.runtime.sources.reading import PATIENCE_SECONDS, ResultsPartition, StageResults
from elastic.runtime.sources.tables import spark_schema

_RUNNER = "pyspark.sql.streaming.python_streaming_source_runner"  # a process for each query
_OPTIONS = ("stage", "startingBatch", "maxBatchesPerTrigger")


class ResultsSource(DataSource):
    """Options: `store` and `name` of the job, `stage`, `startingBatch`, `maxBatchesPerTrigger`."""

    credentials: ClassVar[Credentials] = Credentials()  # the application's, unless `register` was given others

    @classmethod
    def name(cls) -> str:
        return "elastic"

    def schema(self) -> StructType:
        access = self._access()
        schemas = result_schemas(access.store(), access.secret, access.job)
        return spark_schema(schemas[chosen_stage(schemas, self.options.get("stage"))])

    def reader(self, schema: StructType) -> "ResultsReader":
        return ResultsReader(self._results(schema), self.options.get("startingBatch", "earliest"))

    def streamReader(self, schema: StructType) -> "ResultsStreamReader":  # noqa: N802 - Spark's name
        starting = self.options.get("startingBatch", "earliest")
        return ResultsStreamReader(self._results(schema), starting, positive(self.options, "maxBatchesPerTrigger"))

    def _access(self) -> Access:
        return Access.of(self.options, _OPTIONS, self.credentials)

    def _results(self, schema: StructType) -> StageResults:
        """Spark asks for it again in every batch, in a process that may have to open the store first."""
        access = self._access()
        schemas = patiently(lambda: result_schemas(access.store(), access.secret, access.job), PATIENCE_SECONDS)
        return StageResults(access, chosen_stage(schemas, self.options.get("stage")), schema)


class ResultsReader(DataSourceReader):
    """What is published when the query is planned."""

    def __init__(self, results: StageResults, starting: str) -> None:
        self._results = results
        self._starting = starting

    def partitions(self) -> list[ResultsPartition]:
        published = self._results.asked(lambda log: log.published())
        return self._results.partitions(range(_first(published, self._starting), published.stop))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._results.read(partition)


class ResultsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Batch after batch; one small request tells that there is nothing new."""

    def __init__(self, results: StageResults, starting: str, most_batches: int | None) -> None:
        self._results = results
        self._starting = starting
        self._most_batches = most_batches
        self._identity: str | None = None
        self._last: int | None = None  # where a query that reads only what is there now must end

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names, here and below
        return self._offset(_first(self._results.asked(lambda log: log.published()), self._starting))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        # Spark knows no limit in batches, and hands the limit back as it is: a batch counts as a file.
        return ReadAllAvailable() if self._most_batches is None else ReadMaxFiles(self._most_batches)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._last = self._results.asked(lambda log: log.published()).stop

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        begin = self._position(start)
        published = self._results.asked(lambda log: log.published(since=begin - 1))
        end = published.stop if self._last is None else min(published.stop, self._last)
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
        """Called by PySpark's runner when the query ends."""
        end_with_spark(sys.exc_info()[1])

    def _offset(self, batch: int) -> dict[str, Any]:
        return {"next": batch, "results": self._found()}

    def _position(self, offset: dict[str, Any]) -> int:
        if offset["results"] != self._found():
            raise OtherResults(self._results.access.job, offset["results"], self._found())
        return int(offset["next"])

    def _found(self) -> str:
        if self._identity is None:
            self._identity = self._results.asked(lambda log: log.identity())
        return self._identity


def end_with_spark(error: BaseException | None) -> None:
    """End the process of PySpark's runner if Spark has closed the connection to it.

    The query was stopped, or Spark: a normal end. PySpark would report it over the closed connection, and print a
    traceback because that fails.
    """
    main = getattr(sys.modules["__main__"], "__spec__", None)
    if isinstance(error, EOFError | ConnectionError) and main is not None and main.name == _RUNNER:
        os._exit(0)


def _first(published: range, starting: str) -> int:
    """The batch to start with: the oldest, the next one, or the one that is named."""
    if starting == "earliest":
        return published.start
    if starting == "latest":
        return published.stop
    if not starting.isdecimal():
        raise InvalidSetting("startingBatch", starting, "it is earliest, latest or the number of a batch")
    return int(starting)
