"""The handle of a job on Spark, with its results and its state as DataFrames."""

from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from elastic.job.job import Job
from elastic.spark.sources.access import Credentials, JobAccess
from elastic.spark.sources.state_source import StageState
from elastic.spark.stream import SparkStream


class SparkJob(Job):
    """A job whose batches come from a streaming DataFrame."""

    _stream: SparkStream

    def __init__(self, frame: DataFrame, *parts: Any, **options: Any) -> None:
        super().__init__(*parts, **options)
        self._frame = frame

    @property
    def stream(self) -> StreamingQuery:
        """Spark's query that brings the batches; a migration in the mode `restart` replaces it."""
        return self._stream.query

    def results(self, stage: str | None = None) -> DataFrame:
        """Return the rows that a stage emits, by default the last, as a streaming DataFrame."""
        return self._frame.sparkSession.readStream.format("elastic").options(**self._source_options(stage)).load()

    def state_table(self, stage: str | None = None) -> DataFrame:
        """Return the state of all keys as of the newest snapshot, as a batch DataFrame; see `snapshot`."""
        options = self._source_options(stage)
        try:
            return self._frame.sparkSession.read.format("elastic-state").options(**options).load()
        except PySparkException:
            # Spark's planning process reports an error as text; reading the schema here raises the error itself.
            credentials = Credentials(jobs={(self._context.store.url, self.name): self._context.access})
            StageState(JobAccess.from_options(options, ("stage",), credentials), stage).infer_schema()
            raise

    def _source_options(self, stage: str | None) -> dict[str, str]:
        return {"store": self._context.store.url, "name": self.name, **({"stage": stage} if stage else {})}
