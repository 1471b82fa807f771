"""Event times of emitted rows, when another stage takes them: none may be behind the watermark."""

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType, TimestampNTZType, TimestampType

from elastic.errors import InvalidEventTime, InvalidOutput, UnknownColumn
from elastic.operators.event_times import mask_until


class EmittedTimes:
    """Checks the column of event times of what a processor emits."""

    def __init__(self, column: str, output: StructType, operator: str) -> None:
        if column not in output.names:
            raise UnknownColumn(column, output.names)
        kind = output[column].dataType
        if not isinstance(kind, TimestampType | TimestampNTZType):
            raise InvalidEventTime(column, kind.simpleString())
        self._column = column
        self._place = output.names.index(column)
        self._operator = operator

    def check(self, emitted: list[Any], watermark_ms: int | None) -> None:
        """Raise `InvalidOutput` if a row is at or before the watermark."""
        if watermark_ms is None:
            return
        for item in emitted:
            if isinstance(item, pa.Table):
                late = bool(mask_until(item.column(self._column), watermark_ms).any())
                value: Any = "a frame"
            else:
                value = item[self._place]
                late = value is not None and _to_milliseconds(value) <= watermark_ms
            if late:
                raise InvalidOutput(
                    self._operator,
                    f"{self._column} of {value} is not after the watermark, {watermark_ms} ms; the next stage would "
                    "take such rows for late",
                )


def _to_milliseconds(value: date) -> float:
    """Return the time of a row, taken as UTC if it has no zone, as Spark's row form does."""
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000
