"""The number of rows that Spark transfers to Python in one Arrow batch.

By default Spark measures an Arrow batch after every row that it adds, to keep it below a size. For narrow rows that
costs more than everything else that Spark does with them. Once the width of rows is known, a number of rows is set
instead, and Spark measures nothing.
"""

from pyspark.sql import SparkSession
from pyspark.sql.types import BooleanType, DataType, DateType, NumericType, StructType, TimestampNTZType, TimestampType

_BATCH_BYTES = 4 << 20  # large enough to be fast, and harmless if rows become a hundred times as wide
_MAX_ROWS = 100_000
_MAX_NUMBER_BYTES = 16  # of a decimal
_UNLIMITED = (1 << 31) - 1  # the only limit for which Spark does not measure
_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"


class ArrowBatches:
    """The row limit of a query's Arrow batches, from its schema if that is narrow, else from the widest rows so far."""

    def __init__(self) -> None:
        self._width = 0.0  # bytes per row; 0 while unknown

    def configure(self, session: SparkSession, schema: StructType) -> None:
        """Set the limit in the session of the query, which has a new session after every start."""
        if all(_is_narrow(field.dataType) for field in schema):
            self.record(1, _MAX_NUMBER_BYTES * max(1, len(schema)))
        rows = rows_per_batch(self._width)
        if rows and session.conf.get(_ROWS) != str(rows):
            session.conf.set(_ROWS, str(rows))
            session.conf.set(_BYTES, str(_UNLIMITED))

    def record(self, rows: int, size: int) -> None:
        """Widen the rows if these were wider on average."""
        if rows:
            self._width = max(self._width, size / rows)


def rows_per_batch(width: float) -> int:
    """Return how many rows of that width fit into a batch, at least 1; 0 if the width is unknown."""
    return min(_MAX_ROWS, max(1, int(_BATCH_BYTES / width))) if width else 0


def _is_narrow(kind: DataType) -> bool:
    return isinstance(kind, NumericType | BooleanType | DateType | TimestampType | TimestampNTZType)
