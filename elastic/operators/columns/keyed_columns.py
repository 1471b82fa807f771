"""Columnar state by key: the state of choice where there are many keys."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from elastic.errors import InvalidJob, UnknownColumn
from elastic.operators import kernels
from elastic.operators.columns.growing import grown, read_only
from elastic.operators.columns.key_types import check_key_type
from elastic.operators.columns.keys import Keys, keys_of
from elastic.operators.kernels import Words
from elastic.operators.schemas import SchemaLike, schema_of

DESCRIPTION = "keyed-columns"  # the entry that says what the other arrays are
_KEYS = "keys."
_COLUMN = "column."
_ONE = np.ones(1, np.int64)


class KeyedColumns:
    """A table with one row per key: `rows_for` turns keys into row numbers, and columns are NumPy arrays by row.

        counts = KeyedColumns("word string", {"count": "int64"})
        rows = counts.rows_for(words)
        np.add.at(counts.column("count"), rows, 1)

    Rows are numbered 0..len-1 without gaps, in order of first appearance, and stay until `keep`. New rows hold the
    `initial` value of each column, else zero. Any key type that can be routed works, also several columns and nulls.
    A lookup is O(1) a key without a Python object for any of them; memory is that of the keys and columns, up to twice
    that while growing, and 12 to 24 bytes a row for the index.
    """

    def __init__(
        self, keys: SchemaLike, columns: Mapping[str, DTypeLike], initial: Mapping[str, Any] | None = None
    ) -> None:
        self.key_schema = schema_of(keys)
        if not len(self.key_schema):
            raise InvalidJob("keyed columns without a key. Name at least one key column.")
        for field in self.key_schema:
            check_key_type(field.name, field.type)
        twice = set(columns) & set(self.key_schema.names)
        if twice:
            raise InvalidJob(f"{sorted(twice)} are keys and columns at once. Give every column a name of its own.")
        self._initial = {name: np.asarray(value).item() for name, value in (initial or {}).items()}
        self._keys: Keys = keys_of(self.key_schema.types)
        self._columns: dict[str, NDArray[Any]] = {name: np.zeros(0, np.dtype(kind)) for name, kind in columns.items()}
        self._seen = np.zeros(0, np.uint8)

    def __len__(self) -> int:
        return self._keys.count

    @property
    def names(self) -> tuple[str, ...]:
        """The columns without the keys."""
        return tuple(self._columns)

    @property
    def nbytes(self) -> int:
        """Bytes of keys and columns, which is what is stored and moved."""
        return self._keys.nbytes + sum(array.itemsize for array in self._columns.values()) * len(self)

    def rows_for(self, keys: Any) -> Words:
        """The row number of every key; unknown keys get a row.

        `keys` is a table that has the key columns, or a column if there is one key column, or a sequence of columns.
        """
        return self._keys.insert(self._key_columns(keys))

    def find(self, keys: Any) -> Words:
        """The row number of every key, -1 where it has none."""
        return self._keys.find(self._key_columns(keys))

    def column(self, name: str) -> NDArray[Any]:
        """The column of all rows, to read and to write; ask again after `rows_for`, which may have moved it."""
        if name not in self._columns:
            raise UnknownColumn(name, self._columns)
        array = self._columns[name]
        if len(array) < len(self):
            array = self._columns[name] = self._with_room(name, array)
        return array[: len(self)]

    def count(self, name: str, rows: Words, amounts: Words | None = None) -> Words:
        """Add one, or its amount, to a column of int64 for every mention of a row.

        Gives the rows mentioned, each once, in order.
        """
        counts = self.column(name)
        if len(self._seen) < len(self):
            self._seen = np.zeros(2 * len(self), np.uint8)
        touched = np.empty(len(rows), np.int64)
        found = kernels.count_rows(
            read_only(rows), read_only(_ONE if amounts is None else amounts), counts, self._seen, touched
        )
        return touched[:found]

    def to_table(self, rows: Words | None = None) -> pa.Table:
        """Keys and columns of some rows, or of all. Keys may share memory with this; columns never do."""
        arrays = [*self._keys.take(rows)]
        for name in self._columns:
            column = self.column(name)
            arrays.append(pa.array(column.copy() if rows is None else column[rows]))
        return pa.Table.from_arrays(arrays, [*self.key_schema.names, *self._columns])

    def get(self, key: Sequence[Any]) -> dict[str, Any] | None:
        """The columns of one key, given as one value per key column; None if there is no such key."""
        types = self.key_schema.types
        columns = [pa.array([_for_arrow(value, kind)], kind) for value, kind in zip(key, types, strict=True)]
        row = int(self._keys.find(columns)[0])
        return None if row < 0 else {name: self.column(name)[row].item() for name in self._columns}

    def keep(self, rows: NDArray[Any]) -> None:
        """Forget all other rows; `rows` is a mask or row numbers, which are renumbered in this order. O(rows)."""
        numbers = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        self._columns = {name: self.column(name)[numbers] for name in self._columns}
        self._keys.keep(numbers)

    def copy(self) -> Self:
        """One that changes on its own; the cost of copying memory."""
        return self.from_arrays(self.to_arrays())

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Everything as NumPy arrays, which later changes do not reach; only columns are copied, keys only append."""
        return {
            DESCRIPTION: np.frombuffer(self._description(), np.uint8),
            **{_KEYS + name: array for name, array in self._keys.arrays().items()},
            **{_COLUMN + name: self.column(name).copy() for name in self._columns},
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """From what `to_arrays` gave; copies memory, and makes the index when it is first needed."""
        description = json.loads(arrays[DESCRIPTION].tobytes())
        schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(description["keys"])))
        made = cls(schema, description["columns"], description["initial"])
        stored = {name.removeprefix(_KEYS): array for name, array in arrays.items() if name.startswith(_KEYS)}
        made._keys = keys_of(schema.types, stored)
        made._columns = {name: np.array(arrays[_COLUMN + name]) for name in made._columns}
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_arrays, (self.to_arrays(),)

    def _description(self) -> bytes:
        columns = {name: array.dtype.str for name, array in self._columns.items()}
        keys = self.key_schema.serialize().to_pybytes().hex()
        return json.dumps({"keys": keys, "columns": columns, "initial": self._initial}).encode()

    def _with_room(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        fill = self._initial.get(name, 0)
        return grown(array, len(array), len(self), fill)

    def _key_columns(self, keys: Any) -> list[pa.Array]:
        if isinstance(keys, pa.Table | pa.RecordBatch):
            columns = [keys.column(name) for name in self.key_schema.names]
        else:
            columns = [keys] if len(self.key_schema) == 1 else list(keys)
        return [_as_array(column, kind) for column, kind in zip(columns, self.key_schema.types, strict=True)]


def _for_arrow(value: Any, kind: pa.DataType) -> Any:
    """A key as operators see it, with structs as Arrow wants them: dicts, not tuples."""
    if not pa.types.is_struct(kind) or not isinstance(value, tuple):
        return value
    return {field.name: _for_arrow(part, field.type) for field, part in zip(kind, value, strict=True)}


def _as_array(column: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not isinstance(column, pa.Array):
        column = pa.array(column, kind)
    return column if column.type == kind else column.cast(kind)
