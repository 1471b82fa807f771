"""How many rows Spark brings to Python at a time.

By default Spark measures an Arrow batch after every row that it adds, to keep it below a size. For narrow rows that
costs it more than all else it does with them. Where it is known how wide rows are, as many as fit are asked for
instead, and nothing is measured.
"""

from pyspark.sql import SparkSession
from pyspark.sql.types import BooleanType, DataType, DateType, NumericType, StructType, TimestampNTZType, TimestampType

_BATCH_BYTES = 4 << 20  # fast enough by far, and harmless if rows are suddenly a hundred times as wide
_MOST_ROWS = 100_000
_WIDEST_NUMBER = 16  # bytes, of a decimal
_UNLIMITED = (1 << 31) - 1  # the one number for which Spark does not measure
_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"


class ArrowBatches:
    """The limit for the batches of one query: by the schema where that tells, else by the widest rows so far."""

    def __init__(self) -> None:
        self._width = 0.0  # bytes a row; 0 while nothing is known

    def limit(self, session: SparkSession, schema: StructType) -> None:
        """Tell the query's session, a new one whenever the query starts; until widths are known it measures."""
        if all(_is_narrow(field.dataType) for field in schema):
            self.saw(1, _WIDEST_NUMBER * max(1, len(schema)))
        rows = rows_at_once(self._width)
        if rows and session.conf.get(_ROWS) != str(rows):
            session.conf.set(_ROWS, str(rows))
            session.conf.set(_BYTES, str(_UNLIMITED))

    def saw(self, rows: int, size: int) -> None:
        """Learn from rows that came."""
        if rows:
            self._width = max(self._width, size / rows)


def rows_at_once(width: float) -> int:
    """As many rows of that width as fit, at least one; 0 if it is not known."""
    return min(_MOST_ROWS, max(1, int(_BATCH_BYTES / width))) if width else 0


def _is_narrow(kind: DataType) -> bool:
    return isinstance(kind, NumericType | BooleanType | DateType | TimestampType | TimestampNTZType)
