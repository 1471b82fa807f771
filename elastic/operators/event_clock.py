"""The time by which an operator works: event time from a column, with the watermark, or processing time.

Times are integers in microseconds, the resolution of Spark's timestamps.
"""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types as kinds

from elastic.errors import InvalidJob, UnknownColumn
from elastic.operators.context import Context
from elastic.operators.event_times import to_microseconds
from elastic.operators.kernels import Words

NEVER = -(1 << 62)  # before all times
FOREVER = 1 << 62  # after all times

_US_PER_MS = 1_000


@dataclass(frozen=True)
class Clock:
    """Times of rows, and how far time has come; `column` is None for processing time, the time of the batch.

    `lateness` keeps a clock behind the watermark, so that rows which are late by less are not late.
    """

    column: str | None
    kind: pa.DataType
    lateness: int = 0

    @classmethod
    def of(cls, column: str | None, schema: pa.Schema, lateness: int = 0) -> Self:
        """Return the clock of a time column; raises `InvalidJob` if it holds no times."""
        if column is None:
            if lateness:
                raise InvalidJob("no row is late in processing time. Name a time column, or omit the lateness.")
            return cls(None, pa.timestamp("us", "UTC"))
        if column not in schema.names:
            raise UnknownColumn(column, schema.names)
        kind = schema.field(column).type
        if not (kinds.is_timestamp(kind) or kinds.is_date(kind) or kinds.is_integer(kind)):
            raise InvalidJob(
                f"column {column!r} of type {kind} holds no times. Use timestamps, dates, or integers in milliseconds."
            )
        return cls(column, kind, lateness)

    @property
    def timer_kind(self) -> Literal["event", "processing"]:
        return "processing" if self.column is None else "event"

    def times(self, rows: pa.Table, context: Context | None = None) -> tuple[Words, NDArray[np.bool_] | None]:
        """Return the time of every row, and which rows have one, None if all have."""
        if self.column is None:
            assert context is not None  # noqa: S101 - for the type checker
            return np.full(rows.num_rows, context.timestamp_ms * _US_PER_MS), None
        column = rows.column(self.column)
        is_valid = column.is_valid().to_numpy() if column.null_count else None
        return to_microseconds(column), is_valid

    def now(self, context: Context) -> int:
        """Return the time up to which the rows of a batch are late, or, in a timer, windows are complete."""
        if self.column is None:
            return context.timestamp_ms * _US_PER_MS
        reached = context.watermark_ms
        return NEVER if reached is None else reached * _US_PER_MS - self.lateness

    def set_timer(self, context: Context, at: int, name: str) -> None:
        """Set a timer of the unit that fires when `now` reaches a time."""
        context.set_timer(-(-(at + self.lateness) // _US_PER_MS), self.timer_kind, name)

    def set_timer_by(self, context: Context, at: int, name: str) -> None:
        """Set such a timer, unless it fires earlier already."""
        context.set_timer_by(-(-(at + self.lateness) // _US_PER_MS), self.timer_kind, name)

    @property
    def result_type(self) -> pa.DataType:
        """The type of times in results: that of the column, in microseconds at least; integers stay milliseconds."""
        if kinds.is_integer(self.kind):
            return pa.int64()
        return pa.timestamp("us", self.kind.tz if kinds.is_timestamp(self.kind) else "UTC")

    def to_results(self, times: Words) -> pa.Array:
        """Return times as a column of results."""
        if kinds.is_integer(self.kind):
            return pa.array(times // _US_PER_MS)
        return pa.array(times).view(self.result_type)


def to_delay_ms(delay: int) -> int:
    """Return microseconds as whole milliseconds, rounded up."""
    return -(-delay // _US_PER_MS)
