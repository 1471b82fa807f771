"""Queries of state: as a table, or by key."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastic.errors import InvalidJob
from elastic.operators.columns import KeyedColumns
from elastic.operators.keys import to_key

_VALUE = "value"


def to_state_rows(value: Any, key: Sequence[str], schema: pa.Schema | None) -> pa.Table:
    """Return a value as a table: dicts as keys and values, arrays as columns, others as one row with the `repr`."""
    if value is None:
        return pa.table({_VALUE: pa.nulls(0, pa.string())})
    if isinstance(value, pa.Table):
        return value
    if isinstance(value, pa.RecordBatch):
        return pa.Table.from_batches([value])
    if isinstance(value, KeyedColumns):
        return value.to_table()
    if isinstance(value, np.ndarray):
        return pa.table({_VALUE: pa.array(value.tolist())})
    if isinstance(value, Mapping):
        if value and all(isinstance(array, np.ndarray) for array in value.values()):
            return pa.table({str(name): array.tolist() for name, array in value.items()})
        return to_keyed_rows(value, key, schema)
    return pa.table({_VALUE: [repr(value)]})


def to_keyed_rows(values: Mapping[Any, Any] | None, key: Sequence[str], schema: pa.Schema | None) -> pa.Table:
    """Return one row per key: the key columns, then the value, or its fields if all values have fields."""
    values = values or {}
    columns = _key_columns(list(values), key, schema)
    fields = _fields(list(values.values()))
    if not set(fields) & set(columns):
        return pa.table({**columns, **fields})
    return pa.table({**columns, _VALUE: _column(values.values())})


def look_up(value: Any, key: tuple[Any, ...], names: Sequence[str]) -> Any:
    """Return the entry of a dict, the columns of a key, or the rows of a table."""
    if value is None:
        return None
    if isinstance(value, KeyedColumns):
        return value.get(key)
    if isinstance(value, Mapping):
        return value.get(to_key(key))
    if isinstance(value, pa.Table | pa.RecordBatch) and set(names) <= set(value.schema.names):
        for name, part in zip(names, key, strict=True):
            # A null equals nothing, not even a null.
            column = value.column(name)
            value = value.filter(column.is_null() if part is None else pc.equal(column, part))
        return value.to_pylist() or None
    raise InvalidJob(
        f"a state of type {type(value).__name__} cannot be queried by key. Define lookup() in the operator."
    )


def _key_columns(keys: list[Any], names: Sequence[str], schema: pa.Schema | None) -> dict[str, Any]:
    names = list(names) or ["key"]
    if len(names) == 1:
        parts: list[Iterable[Any]] = [keys]
    elif all(isinstance(key, tuple) and len(key) == len(names) for key in keys):
        parts = [[key[place] for key in keys] for place in range(len(names))]
    else:
        names, parts = ["key"], [keys]
    types = [schema.field(name).type if schema is not None and name in schema.names else None for name in names]
    return {name: _column(part, kind) for name, part, kind in zip(names, parts, types, strict=True)}


def _fields(values: list[Any]) -> dict[str, Any]:
    rows = [_as_row(value) for value in values]
    if not rows or any(row is None for row in rows):
        return {_VALUE: _column(values)}
    names = dict.fromkeys(str(name) for row in rows for name in row or {})
    return {name: _column([(row or {}).get(name) for row in rows]) for name in names}


def _as_row(value: Any) -> Mapping[Any, Any] | None:
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return value
    if hasattr(value, "_asdict"):
        return dict(value._asdict())
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else None


def _column(values: Iterable[Any], kind: pa.DataType | None = None) -> pa.Array:
    """Return an Arrow column; of strings if Arrow has no type for such values."""
    values = list(values)
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return pa.array(list(map(repr, values)))
