"""One stage's results for Spark: planned once, read by any number of tasks."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from elastic.results import ResultLog, ResultRef
from elastic.runtime.patience import patiently
from elastic.runtime.sources.access import Access
from elastic.runtime.sources.tables import as_spark_expects, shared_out

_AT_ONCE = 8  # requests of one planner or task
PATIENCE_SECONDS = 600.0  # as a job has by default: a query should not end before the job that it reads

Answer = TypeVar("Answer")


class ResultsPartition(InputPartition):
    """Result objects for one task, batch after batch."""

    def __init__(self, refs: list[ResultRef]) -> None:
        super().__init__(None)
        self.refs = refs


@dataclass(frozen=True)
class StageResults:
    """What a task needs to read results; a value, so that it can be pickled and sent."""

    access: Access
    stage: str
    schema: StructType

    def asked(self, question: Callable[[ResultLog], Answer]) -> Answer:
        """What the log answers, as soon as the store does."""
        return patiently(lambda: question(self.access.log()), PATIENCE_SECONDS)

    def partitions(self, batches: range) -> list[ResultsPartition]:
        """The objects of these batches, shared out; costs one small request for each batch not seen before."""
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="plan") as executor:
            indexes = list(executor.map(lambda batch: self.asked(lambda log: log.index(batch)), batches))
        return [ResultsPartition(share) for share in shared_out(ref for index in indexes for ref in index.refs)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In order of batches and slots; fetches ahead, at most all of the partition."""
        if not isinstance(partition, ResultsPartition):  # Spark's way to say that there are none
            return
        by_batch = [list(refs) for _, refs in groupby(partition.refs, lambda ref: ref.batch)]
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="read") as executor:
            for rows in executor.map(self._rows, by_batch):
                if rows is not None:
                    yield from as_spark_expects(rows, self.schema)

    def _rows(self, refs: list[ResultRef]) -> pa.Table | None:
        return self.asked(lambda log: log.read_objects(refs, self.stage))
