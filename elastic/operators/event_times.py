"""Event times: timestamps, dates, or integers in milliseconds."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types as kinds

from elastic.errors import InvalidEventTime, UnknownColumn

_PER_MS = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_MS_PER_SECOND = 1_000


def check_event_time(schema: pa.Schema, column: str) -> None:
    """Raise `UnknownColumn` or `InvalidEventTime` unless a schema has event times in a column."""
    if column not in schema.names:
        raise UnknownColumn(column, schema.names)
    kind = schema.field(column).type
    if not (kinds.is_timestamp(kind) or kinds.is_date(kind) or kinds.is_integer(kind)):
        raise InvalidEventTime(column, kind)


def to_milliseconds(times: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the times in milliseconds, rounded down; nulls stay."""
    ticks, unit = _ticks(times)
    values = ticks.fill_null(0).to_numpy()
    values = values * _MS_PER_SECOND if unit == "s" else values // _PER_MS[unit]
    return pa.array(values, mask=ticks.is_null().to_numpy(zero_copy_only=False))


def to_microseconds(times: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
    """Return the times in microseconds, rounded down; anything for nulls. Raises `OverflowError` beyond 64 bits."""
    ticks, unit = _ticks(times)
    values: NDArray[np.int64] = ticks.fill_null(0).to_numpy()
    if unit in ("us", "ns"):
        return values if unit == "us" else values // 1_000
    factor = 1_000 if unit == "ms" else 1_000_000
    limit = (1 << 62) // factor
    if len(values) and (values.max() > limit or values.min() < -limit):
        raise OverflowError(f"an event time is beyond {limit} {unit}, which is no time in microseconds")
    return values * factor


def mask_until(times: pa.Array | pa.ChunkedArray, last_ms: int | None) -> NDArray[np.bool_]:
    """Return a mask of the times at or before `last_ms`, exact to the nanosecond; no null, and nothing for None."""
    if last_ms is None:
        return np.zeros(len(times), np.bool_)
    ticks, unit = _ticks(times)
    last = last_ms // _MS_PER_SECOND if unit == "s" else last_ms * _PER_MS[unit]
    valid = ticks.is_valid().to_numpy(zero_copy_only=False)
    return np.asarray(valid & (ticks.fill_null(0).to_numpy() <= last), np.bool_)


def _ticks(times: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, str]:
    if isinstance(times, pa.ChunkedArray):
        times = times.combine_chunks()
    if kinds.is_date(times.type):
        times = times.cast(pa.timestamp("ms"))
    return times.cast(pa.int64()), times.type.unit if kinds.is_timestamp(times.type) else "ms"
