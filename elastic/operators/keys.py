"""Keys as Python values: one value per key column, or a tuple of them; equal exactly if Spark says so."""

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types as kinds

NAN = math.nan  # one object, since a dict finds NaN only by identity


def to_canonical(value: Any) -> Any:
    """Return the canonical value of a key: one NaN object, 0.0 for -0.0, tuples for structs and lists."""
    if isinstance(value, float):
        return NAN if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return tuple(to_canonical(field) for field in value.values())
    if isinstance(value, tuple | list):
        return tuple(map(to_canonical, value))
    return value


def needs_canonical(kind: pa.DataType) -> bool:
    """Return whether values of this type may need `to_canonical`; most do not."""
    return bool(kinds.is_floating(kind) or kinds.is_struct(kind))


def to_key(values: tuple[Any, ...]) -> Any:
    """Return the key in the form that operators use: the value itself for one key column, else the tuple."""
    return to_canonical(values[0]) if len(values) == 1 else to_canonical(values)


def sort_key(value: Any) -> Any:
    """Return a sort key for keys of mixed types: None first, then by type, NaN after other floats; deterministic."""
    if value is None:
        return ("",)
    if isinstance(value, tuple):
        return ("tuple", tuple(map(sort_key, value)))
    if isinstance(value, float):
        return ("float", math.isnan(value), 0.0 if math.isnan(value) else value)
    return (type(value).__name__, value)


def to_python_keys(columns: list[pa.Array]) -> list[Any]:
    """Return the key of every row."""
    lists = [_values(column) for column in columns]
    return lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))


def to_arrow_value(value: Any, kind: pa.DataType) -> Any:
    """Return a value of a key in the form that Arrow reads: structs become dicts instead of tuples."""
    if not kinds.is_struct(kind) or not isinstance(value, tuple):
        return value
    return {field.name: to_arrow_value(part, field.type) for field, part in zip(kind, value, strict=True)}


def to_arrow_keys(keys: Collection[Any], types: Sequence[pa.DataType]) -> list[pa.Array]:
    """Return the key columns of keys in the form that operators use; raises what Arrow raises for other types."""
    if not keys:
        return [pa.nulls(0, kind) for kind in types]
    if len(types) == 1:
        return [_column(list(keys), types[0])]
    return [_column([key[place] for key in keys], kind) for place, kind in enumerate(types)]


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if kinds.is_struct(kind):
        values = [to_arrow_value(value, kind) for value in values]
    return pa.array(values, kind)


def _values(column: pa.Array) -> list[Any]:
    values: list[Any] = column.to_pylist()
    convert: Callable[[Any], Any] | None = to_canonical if needs_canonical(column.type) else None
    return values if convert is None else list(map(convert, values))
