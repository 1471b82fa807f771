"""Keys as Python values: one per key column, or a tuple of them; equal exactly where Spark says so."""

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyarrow import types as kinds

NAN = math.nan  # one object: a dict finds a NaN only by identity


def canonical(value: Any) -> Any:
    """The one Python value of a key: NaN as one object, -0.0 as 0.0, structs and lists as tuples."""
    if isinstance(value, float):
        return NAN if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return tuple(canonical(field) for field in value.values())
    if isinstance(value, tuple | list):
        return tuple(map(canonical, value))
    return value


def needs_canonical(kind: pa.DataType) -> bool:
    """Whether values of this type may need `canonical`; most do not, and are spared the call."""
    return bool(kinds.is_floating(kind) or kinds.is_struct(kind))


def key_of(values: tuple[Any, ...]) -> Any:
    """The key as operators see it: the value itself if there is one key column, else the tuple."""
    return canonical(values[0]) if len(values) == 1 else canonical(values)


def order(value: Any) -> Any:
    """Sorts keys of any mixture: None first, then by type, NaN last of the floats; the same in every process."""
    if value is None:
        return ("",)
    if isinstance(value, tuple):
        return ("tuple", tuple(map(order, value)))
    if isinstance(value, float):
        return ("float", math.isnan(value), 0.0 if math.isnan(value) else value)
    return (type(value).__name__, value)


def python_keys(columns: list[pa.Array]) -> list[Any]:
    """The key of every row."""
    lists = [_values(column) for column in columns]
    return lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))


def _values(column: pa.Array) -> list[Any]:
    values: list[Any] = column.to_pylist()
    convert: Callable[[Any], Any] | None = canonical if needs_canonical(column.type) else None
    return values if convert is None else list(map(convert, values))
