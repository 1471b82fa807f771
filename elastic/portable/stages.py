"""The kind of a stage's state, and conversion of that state to rows of Arrow tables and back.

| kind | state | rows |
| --- | --- | --- |
| `keys` | a Python value per key: a `KeyedOperator` | one per key: key columns; a value, its fields or its encoding |
| `columns` | `KeyedColumns` with the stage's key | one per key: key columns and columns |
| `task` | anything else: it belongs to the task | one per task: its encoding |
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from elastic.errors import StateNotPortable
from elastic.operators.calls import UnitState
from elastic.operators.columns import KeyedColumns
from elastic.operators.divide import to_hash_type
from elastic.operators.keyed import KeyedOperator
from elastic.operators.keys import to_arrow_keys, to_canonical, to_python_keys
from elastic.operators.operator import Operator
from elastic.operators.partial import PartialOperator
from elastic.portable import values

KEYS, COLUMNS, TASK = "keys", "columns", "task"
VALUE, TASK_COLUMN, GUESTS = "value", "_task", "_guests"

_SCALARS: dict[type, tuple[str, pa.DataType]] = {
    bool: ("bool", pa.bool_()),
    int: ("int", pa.int64()),
    float: ("float", pa.float64()),
    str: ("str", pa.string()),
    bytes: ("bytes", pa.binary()),
}
_ARROW = dict(_SCALARS.values())
_NOTHING = type(None)


@dataclass
class Layout:
    """How the values of keys become columns: scalars of one type, dicts of such scalars, or encoded values."""

    fields: dict[str, set[type]] | None = None  # of dicts, in order
    types: set[type] | None = None  # of scalars
    is_encoded: bool = False

    def add(self, entries: Iterable[Any], taken: Sequence[str]) -> None:
        """Take the values of another unit into account; `taken` are the key columns."""
        for value in entries:
            if self.is_encoded:
                return
            if type(value) is dict and self.types is None:
                self._add_fields(value, taken)
            elif self.fields is None and _is_scalar(value):
                self.types = (self.types or set()) | {type(value)}
            else:
                self.is_encoded = True
        self.is_encoded = self.is_encoded or any(map(_is_mixed, (self.fields or {"": self.types or set()}).values()))

    def _add_fields(self, value: dict[Any, Any], taken: Sequence[str]) -> None:
        if self.fields is None:
            self.fields = {name: set() for name in value}
        fits = list(value) == list(self.fields) and all(map(_is_scalar, value.values()))
        names = all(type(name) is str and name and name not in taken for name in value)
        if not value or not fits or not names or any(name.startswith("_") for name in value):
            self.is_encoded = True
            return
        for name, entry in value.items():
            self.fields[name].add(type(entry))

    def to_json(self) -> Any:
        if self.is_encoded:
            return "encoded"
        if self.fields is not None:
            return {name: _type_name(types) for name, types in self.fields.items()}
        return _type_name(self.types or set())


def _is_scalar(value: Any) -> bool:
    if type(value) is int:
        return -(1 << 63) <= value < 1 << 63
    if type(value) is str:
        return value.isascii() or value.encode(errors="ignore").decode() == value
    return value is None or type(value) in _SCALARS


def _is_mixed(types: set[type]) -> bool:
    return len(types - {_NOTHING}) > 1


def _type_name(types: set[type]) -> str:
    known = types - {_NOTHING}
    return _SCALARS[known.pop()][0] if known else "int"


def find_kind(operator: Operator) -> str | None:
    """Return the kind of the state of a bound operator; None if it has none."""
    if operator.stateless:
        return None
    if isinstance(operator, KeyedOperator):
        return KEYS
    value = operator.initial_state()
    if isinstance(value, KeyedColumns) and all(_is_routed(value, field) for field in operator.key_fields):
        return COLUMNS
    return TASK


def _is_routed(value: KeyedColumns, field: pa.Field) -> bool:
    """Return whether the columns hold this key column, so that the rows are in the task of their hash."""
    schema = value.key_schema
    return field.name in schema.names and to_hash_type(schema.field(field.name).type) == to_hash_type(field.type)


def keyed_rows(state: Mapping[Any, Any], fields: Sequence[pa.Field], layout: Any, stage: str) -> pa.Table:
    """Return one row per key of a state of kind `keys`."""
    names = [field.name for field in fields]
    arrays = to_arrow_keys(list(state), [field.type for field in fields])
    entries = list(state.values())
    if layout == "encoded":
        columns = {VALUE: pa.array([_encode(entry, stage, key) for key, entry in state.items()], pa.large_binary())}
    elif isinstance(layout, str):
        columns = {VALUE: pa.array(entries, _ARROW[layout])}
    else:
        columns = {name: pa.array([entry[name] for entry in entries], _ARROW[kind]) for name, kind in layout.items()}
    return pa.table([*arrays, *columns.values()], [*names, *columns])


def values_of(rows: pa.Table, layout: Any, trusted: bool) -> list[Any]:
    """Return the values of keys in rows of kind `keys`."""
    if layout == "encoded":
        return [values.decode(data, trusted=trusted) for data in rows[VALUE].to_pylist()]
    if isinstance(layout, str):
        entries: list[Any] = rows[VALUE].to_pylist()
        return entries
    fields: list[dict[str, Any]] = rows.select(list(layout)).to_pylist()
    return fields


def column_rows(state: KeyedColumns) -> pa.Table:
    """Return one row per key of a state of kind `columns`."""
    arrays = [*state.take_keys(), *(_to_arrow(state.column(name)) for name in state.names)]
    return pa.table(arrays, [*state.key_schema.names, *state.names])


def fill_columns(state: KeyedColumns, rows: pa.Table) -> None:
    """Put rows of kind `columns` into a state that has none of their keys; columns that are missing keep initials."""
    numbers = state.rows_for(rows.select(state.key_schema.names).combine_chunks())
    if len(np.unique(numbers)) < len(numbers):
        raise ValueError("some keys are there twice")
    for name in state.names:
        if name in rows.schema.names:
            column = state.column(name)
            column[numbers] = _from_arrow(rows[name], column.dtype)


def empty_copy(columns: KeyedColumns, key_types: Mapping[str, pa.DataType]) -> KeyedColumns:
    """Return the same columns without rows, with other types of some key columns."""
    schema = pa.schema([field.with_type(key_types.get(field.name, field.type)) for field in columns.key_schema])
    return KeyedColumns(schema, columns.dtypes, columns.initial)


def _to_arrow(column: np.ndarray[Any, Any]) -> pa.Array:
    if _is_natural(column.dtype):
        return pa.array(column.copy())
    raw = np.ascontiguousarray(column).view(f"V{column.dtype.itemsize}") if len(column) else column
    return pa.array([one.tobytes() for one in raw], pa.binary(column.dtype.itemsize))


def _is_natural(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "biu" or dtype in (np.dtype("f4"), np.dtype("f8"))


def _from_arrow(column: pa.ChunkedArray, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if column.null_count:
        raise ValueError("a column of numbers has nulls")
    if not _is_natural(dtype):
        raw = b"".join(column.to_pylist())
        return np.frombuffer(raw, dtype)
    wanted = pa.from_numpy_dtype(dtype)
    cast = cast_losslessly(column, wanted)
    return np.asarray(cast.to_numpy(), dtype)


def cast_losslessly(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return the column as another type; raises `ValueError` if a value would change."""
    if column.type == kind:
        return column
    try:
        cast = column.cast(kind)
        is_same = cast.cast(column.type).equals(column)
    except pa.ArrowException as cause:
        raise ValueError(f"{column.type} cannot become {kind}: {cause}") from cause
    if not is_same:
        raise ValueError(f"values of type {column.type} would change as {kind}")
    return cast


def task_value(operator: Operator, state: UnitState, stage: str) -> bytes | None:
    """Return the encoded value of a unit of kind `task`; None for a partial stage that holds nothing."""
    if isinstance(operator, PartialOperator):
        if state.value.num_rows:
            raise StateNotPortable(
                stage, "its tasks hold partials of an interval that is not over. Export it with every='1 batch'"
            )
        return None
    return _encode(state.value, stage, None)


def _encode(value: Any, stage: str, key: Any) -> bytes:
    try:
        return values.encode(value)
    except values.Unencodable as cause:
        where = "" if key is None else f" of key {key!r}"
        raise StateNotPortable(
            stage,
            f"the value{where} has a {cause}, which cannot be written without pickle. Keep numbers, texts, bytes, "
            "times, lists, tuples, dicts, arrays or tables instead; upgrade() can change what is stored",
        ) from cause


def python_keys(rows: pa.Table, names: Sequence[str]) -> list[Any]:
    """Return the keys of rows in the form that operators use."""
    columns = [rows[name].combine_chunks() for name in names]
    return list(map(to_canonical, to_python_keys(columns)))
