"""Columnar state by key, for operators with many keys."""

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from elastic.errors import InvalidJob, UnknownColumn
from elastic.operators import kernels
from elastic.operators.columns.indexes import grow, read_only
from elastic.operators.columns.key_columns import check_key_type
from elastic.operators.columns.keys import Keys, new_keys
from elastic.operators.columns.row_store import RowStore
from elastic.operators.kernels import Words
from elastic.operators.keys import to_arrow_value
from elastic.operators.schemas import SchemaLike, to_schema
from elastic.routing import xxh64
from elastic.routing.hashing import hash_keys, is_among

DESCRIPTION = "keyed-columns"  # the entry that describes the other arrays
_KEYS = "keys."
_COLUMN = "column."
_ONE = np.ones(1, np.int64)


class KeyedColumns:
    """A table with one row per key: `rows_for` maps keys to row numbers, and columns are NumPy arrays by row.

        counts = KeyedColumns("word string", {"count": "int64"})
        rows = counts.rows_for(words)
        np.add.at(counts.column("count"), rows, 1)

    Rows are numbered 0..len-1 without gaps, in order of first appearance, and are stable until `keep` or `part`. New
    rows hold the `initial` value of each column, else zero. Any key type that can be routed works, also several columns
    and nulls. A lookup is O(1) per key and creates no Python objects; memory is that of the keys and columns, up to
    twice that while growing, and 12 to 24 bytes per row for the index.
    """

    def __init__(
        self, keys: SchemaLike, columns: Mapping[str, DTypeLike], initial: Mapping[str, Any] | None = None
    ) -> None:
        self.key_schema = to_schema(keys)
        if not len(self.key_schema):
            raise InvalidJob("keyed columns need a key. Name at least one key column.")
        for field in self.key_schema:
            check_key_type(field.name, field.type)
        duplicates = set(columns) & set(self.key_schema.names)
        if duplicates:
            raise InvalidJob(f"{sorted(duplicates)} are both keys and columns. Give every column a unique name.")
        self._initial = {name: np.asarray(value).item() for name, value in (initial or {}).items()}
        self._keys: Keys = new_keys(self.key_schema.types)
        self._columns: dict[str, NDArray[Any]] = {name: np.zeros(0, np.dtype(kind)) for name, kind in columns.items()}
        self._seen = np.zeros(0, np.uint8)

    def __len__(self) -> int:
        return self._keys.count

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, without the keys."""
        return tuple(self._columns)

    @property
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """The types of the columns, without the keys."""
        return {name: array.dtype for name, array in self._columns.items()}

    @property
    def initial(self) -> dict[str, Any]:
        """Initial values of new rows in some columns; zero in the others."""
        return dict(self._initial)

    @property
    def nbytes(self) -> int:
        """The bytes of keys and columns, which are stored and moved."""
        return self._keys.nbytes + sum(array.itemsize for array in self._columns.values()) * len(self)

    def rows_for(self, keys: Any) -> Words:
        """Return the row number of every key; unknown keys get a new row.

        `keys` is a table that has the key columns, or a column if there is one key column, or a sequence of columns.
        """
        return self._keys.insert(self._key_columns(keys))

    def find(self, keys: Any) -> Words:
        """Return the row number of every key, -1 for unknown keys."""
        return self._keys.find(self._key_columns(keys))

    def column(self, name: str) -> NDArray[Any]:
        """Return the column of all rows, writable; call it again after `rows_for`, which may have reallocated it."""
        if name not in self._columns:
            raise UnknownColumn(name, self._columns)
        array = self._columns[name]
        if len(array) < len(self):
            array = self._columns[name] = self._with_room(name, array)
        return array[: len(self)]

    def count(self, name: str, rows: Words, amounts: Words | None = None) -> Words:
        """Add one, or its amount, to an int64 column for every entry of `rows`; return the different rows, in order."""
        counts = self.column(name)
        if len(self._seen) < len(self):
            self._seen = np.zeros(2 * len(self), np.uint8)
        touched = np.empty(len(rows), np.int64)
        found = kernels.count_rows(
            read_only(rows), read_only(_ONE if amounts is None else amounts), counts, self._seen, touched
        )
        return touched[:found]

    def to_table(self, rows: Words | None = None) -> pa.Table:
        """Return keys and columns of some rows, or of all. Keys may share memory with this object; columns never do."""
        arrays = [*self._keys.take(rows)]
        for name in self._columns:
            column = self.column(name)
            arrays.append(pa.array(column.copy() if rows is None else column[rows]))
        return pa.Table.from_arrays(arrays, [*self.key_schema.names, *self._columns])

    def take_keys(self, rows: Words | None = None) -> list[pa.Array]:
        """Return the key columns of some rows, or of all; they may share memory with this object."""
        return self._keys.take(rows)

    def find_key(self, key: Sequence[Any]) -> int:
        """Return the row number of one key, given as one value per key column; -1 for an unknown key."""
        types = self.key_schema.types
        columns = [pa.array([to_arrow_value(value, kind)], kind) for value, kind in zip(key, types, strict=True)]
        return int(self._keys.find(columns)[0])

    def get(self, key: Sequence[Any]) -> dict[str, Any] | None:
        """Return the columns of one key, given as one value per key column; None for an unknown key."""
        row = self.find_key(key)
        return None if row < 0 else {name: self.column(name)[row].item() for name in self._columns}

    def keep(self, rows: NDArray[Any]) -> None:
        """Drop all other rows; `rows` is a mask, or row numbers in their new order. O(rows)."""
        numbers = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        self._columns = {name: self.column(name)[numbers] for name in self._columns}
        self._keys = copy.copy(self._keys)
        self._keys.keep(numbers)
        self._seen = np.zeros(0, np.uint8)

    def select(self, rows: NDArray[Any]) -> Self:
        """Return a copy of some rows; `rows` is a mask, or row numbers in their new order. O(rows)."""
        selected = copy.copy(self)
        selected.keep(rows)
        return selected

    def hash_keys(self, key: Sequence[str] = ()) -> NDArray[np.int64]:
        """Return the hash of every row's key, or of some of its columns; O(rows)."""
        columns = dict(zip(self.key_schema.names, self._keys.take(None), strict=True))
        names = list(key) or self.key_schema.names
        return hash_keys([columns[name] for name in names], names)

    def part(self, hashes: NDArray[np.int64], key: Sequence[str] = ()) -> Self:
        """Take the rows out whose key has one of these hashes, and return them as keyed columns of their own.

        `key` names the columns that are hashed, by default all key columns; hashes are those of
        `elastic.routing.hash_keys`. The other rows keep their order. O(rows), and an index of the other rows when it is
        next needed.
        """
        is_parted = is_among(self.hash_keys(key), hashes)
        parted = self.select(is_parted)
        if len(parted):
            self.keep(~is_parted)
        return parted

    def join(self, part: Self) -> None:
        """Append the rows of a part, in their order; for a key that is in both, the row of the part replaces this one.

        O(rows of the part).
        """
        if part.names != self.names or not part.key_schema.equals(self.key_schema):
            raise InvalidJob(
                f"a part with the keys {part.key_schema.names} and the columns {list(part.names)} cannot join "
                f"{self.key_schema.names} and {list(self.names)}. Join parts of the same operator only."
            )
        rows = self._keys.insert(part._keys.take(None))
        for name in self._columns:
            self.column(name)[rows] = part.column(name)

    def copy(self) -> Self:
        """Return an independent copy, at the cost of copying memory."""
        return self.from_arrays(self.to_arrays())

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything as NumPy arrays that later changes do not affect; only columns are copied."""
        return {
            DESCRIPTION: np.frombuffer(self._description(), np.uint8),
            **{_KEYS + name: array for name, array in self._keys.arrays().items()},
            **{_COLUMN + name: self.column(name).copy() for name in self._columns},
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Restore it from `to_arrays()`; copies memory, and builds the index on first use."""
        description = json.loads(arrays[DESCRIPTION].tobytes())
        schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(description["keys"])))
        restored = cls(schema, description["columns"], description["initial"])
        stored = {name.removeprefix(_KEYS): array for name, array in arrays.items() if name.startswith(_KEYS)}
        restored._keys = new_keys(schema.types, stored)
        restored._columns = {name: np.array(arrays[_COLUMN + name]) for name in restored._columns}
        return restored

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_arrays, (self.to_arrays(),)

    def _description(self) -> bytes:
        columns = {name: array.dtype.str for name, array in self._columns.items()}
        keys = self.key_schema.serialize().to_pybytes().hex()
        return json.dumps({"keys": keys, "columns": columns, "initial": self._initial}).encode()

    def _with_room(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        fill = self._initial.get(name, 0)
        return grow(array, len(array), len(self), fill)

    def _key_columns(self, keys: Any) -> list[pa.Array]:
        if isinstance(keys, pa.Table | pa.RecordBatch):
            columns = [keys.column(name) for name in self.key_schema.names]
        else:
            columns = [keys] if len(self.key_schema) == 1 else list(keys)
        return [_as_array(column, kind) for column, kind in zip(columns, self.key_schema.types, strict=True)]


def _as_array(column: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not isinstance(column, pa.Array):
        column = pa.array(column, kind)
    return column if column.type == kind else column.cast(kind)


def load_kernels() -> None:
    """Run every kernel once: compiles them into the cache, in seconds, or loads them from it, in half a second."""
    xxh64.load()
    for keys in ("key long", "key string"):
        columns = KeyedColumns(keys, {"count": "int64"})
        values = [1, 2] if keys == "key long" else ["a", "b"]
        columns.to_table(columns.count("count", columns.rows_for(values)))
        KeyedColumns.from_arrays(columns.to_arrays()).find(values)
    store = RowStore(pa.schema([("value", pa.int64())]))
    store.rows_of(store.append(pa.table({"value": [1]}), np.zeros(1, np.int64)))
