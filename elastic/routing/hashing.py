"""Hashes of keys, equal to Spark SQL's `xxhash64`.

Spark may hash the rows of a source, and Python hashes the rows that operators emit; both must find the same task. The
rules are Spark's: the first column starts from the seed 42, every next one from the hash so far; a null leaves the hash
unchanged; a struct is hashed field by field. -0.0 hashes as 0.0, and all NaNs alike. A type that Spark hashes depending
on a setting (strings with a collation) or not at all (maps) cannot be a key.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as kinds

from elastic.errors import InvalidJob, InvalidKey, UnknownColumn, UnsupportedKeyType
from elastic.routing import xxh64

SEED = 42  # as in Spark
_LONG_DIGITS = 18  # decimals up to this precision are hashed as one 64-bit number

_Hasher = Callable[[pa.Array, xxh64.Hashes], xxh64.Hashes]


def hash_keys(columns: Sequence[pa.Array | pa.ChunkedArray], names: Sequence[str] = ()) -> npt.NDArray[np.int64]:
    """Return one hash per row, equal to Spark SQL's `xxhash64(c1, c2, ...)`; `names` are for error messages."""
    if not columns:
        raise InvalidJob("the key has no columns. Name at least one key column.")
    running = np.full(len(columns[0]), SEED, np.uint64)
    for position, column in enumerate(columns):
        name = names[position] if position < len(names) else str(position)
        start = 0
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            _fold(chunk, running[start : start + len(chunk)], name)
            start += len(chunk)
    return running.view(np.int64)


def hash_rows(rows: pa.Table, key: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the hash of each row by its key columns; without any, the hashes of all rows are equal."""
    return hash_keys([rows[name] for name in key], key) if key else np.zeros(rows.num_rows, np.int64)


def hash_key(*values: Any, types: Sequence[pa.DataType] | None = None) -> int:
    """Return the hash of one key, given as Python values.

    `types` are those of the key columns. Without them integers have 64 bits and floats are doubles; a key column of 32
    bits has other hashes. Raises `InvalidKey` for a value of another type. A struct is a tuple or a dict in the order
    of its fields. Costs a tenth of a millisecond: use it for single lookups.
    """
    if types is not None and len(types) != len(values):
        raise InvalidKey(f"{len(values)} values for {len(types)} columns")
    try:
        flat = list(_flatten(values, types or [None] * len(values)))
    except (TypeError, ValueError) as cause:
        raise InvalidKey(f"{values!r} does not have the structure of {', '.join(map(str, types or ()))}") from cause
    columns = [_column(value, kind) for value, kind in flat]
    return int(hash_keys(columns)[0]) if columns else SEED


def _column(value: Any, kind: pa.DataType | None) -> pa.Array:
    """Return a column of one value; refuse a value that Arrow would change, since no such key is stored."""
    try:
        column = pa.array([value], kind)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as cause:
        raise InvalidKey(f"{value!r} is not a {kind or 'value that can be a key'}") from cause
    if kind is not None and not kinds.is_floating(kind) and column[0].as_py() != value:
        raise InvalidKey(f"{value!r} is not a {kind}")
    return column


def is_among(hashes: npt.NDArray[np.int64], some: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return for each hash whether it is one of `some`, in O(hashes + some)."""
    found = pc.is_in(pa.array(hashes), value_set=pa.array(some, pa.int64()))
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


def to_tasks(hashes: npt.NDArray[np.int64], tasks: int) -> npt.NDArray[np.int64]:
    """Return the task of each hash: `pmod(hash, tasks)`, never negative."""
    return np.mod(hashes, np.int64(tasks))


def spark_hash_expression(key_columns: Iterable[str]) -> str:
    """Return the SQL expression that equals `hash_keys` of these columns."""
    quoted = ", ".join("`" + column.replace("`", "``") + "`" for column in key_columns)
    return f"xxhash64({quoted})"


def check_key(schema: pa.Schema, key: Sequence[str]) -> None:
    """Raise `UnknownColumn` or `UnsupportedKeyType` for an invalid key; called before a job starts."""
    for column in key:
        if column not in schema.names:
            raise UnknownColumn(column, schema.names)
    hash_keys([pa.nulls(0, schema.field(column).type) for column in key], key)


def _fold(array: pa.Array, running: xxh64.Hashes, name: str) -> None:
    """Fold one more column into the running hashes, in place; nulls leave them unchanged."""
    kind = array.type
    if kinds.is_null(kind):
        return
    if kinds.is_dictionary(kind):
        _fold(array.dictionary_decode(), running, name)
    elif kinds.is_struct(kind):
        for field, values in zip(kind, array.flatten(), strict=True):  # flatten() nulls the fields of a null struct
            _fold(values, running, f"{name}.{field.name}")
    else:
        hashes = _find_hasher(kind, name)(array, running)
        where = True if array.null_count == 0 else array.is_valid().to_numpy(zero_copy_only=False)
        np.copyto(running, hashes, where=where)


def _find_hasher(kind: pa.DataType, name: str) -> _Hasher:
    for is_kind, hasher in _HASHERS:
        if is_kind(kind):
            return hasher
    raise UnsupportedKeyType(name, kind)


def _small(array: pa.Array, seeds: xxh64.Hashes) -> xxh64.Hashes:
    return xxh64.hash_ints(_numbers(array.cast(pa.int32())), seeds)


def _long(array: pa.Array, seeds: xxh64.Hashes) -> xxh64.Hashes:
    return xxh64.hash_longs(_numbers(array), seeds)


def _float(array: pa.Array, seeds: xxh64.Hashes) -> xxh64.Hashes:
    return xxh64.hash_ints(_to_canonical(_numbers(array)).view(np.int32), seeds)


def _double(array: pa.Array, seeds: xxh64.Hashes) -> xxh64.Hashes:
    return xxh64.hash_longs(_to_canonical(_numbers(array)).view(np.int64), seeds)


def _date(array: pa.Array, seeds: xxh64.Hashes) -> xxh64.Hashes:
    return xxh64.hash_ints(_numbers(array.cast(pa.date32()).view(pa.int32())), seeds)


def _timestamp(array: pa.Array, seeds: xxh64.Hashes) -> xxh64.Hashes:
    ticks = _numbers(array.view(pa.int64()))
    if array.type.unit == "ns":
        return xxh64.hash_longs(ticks // 1000, seeds)
    return xxh64.hash_longs(ticks * {"s": 1_000_000, "ms": 1_000, "us": 1}[array.type.unit], seeds)


def _decimal(array: pa.Array, seeds: xxh64.Hashes) -> xxh64.Hashes:
    if array.type.precision <= _LONG_DIGITS:
        # A decimal128 has 16 bytes, low word first, and these values fit into that word.
        words = np.frombuffer(array.buffers()[1] or b"", np.int64)
        return xxh64.hash_longs(np.ascontiguousarray(words[2 * array.offset :: 2][: len(array)]), seeds)
    return xxh64.hash_bytes(map(_unscaled_bytes, array.fill_null(Decimal(0))), seeds)


def _unscaled_bytes(value: pa.Scalar) -> bytes:
    """Return the unscaled number as the JVM's BigInteger encodes it: big-endian, with as few bytes as possible."""
    sign, digits, _ = value.as_py().as_tuple()
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    bits = (number if number >= 0 else ~number).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def _bytes(array: pa.Array, seeds: xxh64.Hashes) -> xxh64.Hashes:
    array = array.cast(pa.large_binary())
    _, positions, data = array.buffers()
    if positions is None:
        return xxh64.hash_bytes([], seeds)
    offsets = np.frombuffer(positions, np.int64)[array.offset : array.offset + len(array) + 1]
    return xxh64.hash_texts(offsets, np.frombuffer(data or b"", np.uint8), seeds)


def _numbers(array: pa.Array) -> npt.NDArray[Any]:
    if array.null_count:
        array = pc.fill_null(array, 0)  # with nulls, to_numpy() would return floats; the values of nulls are unused
    numbers: npt.NDArray[Any] = array.to_numpy()
    return numbers


def _to_canonical(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the values with one zero and one NaN, in the JVM's bits; adding 0.0 turns -0.0 into 0.0."""
    zero, nan = values.dtype.type(0), values.dtype.type(np.nan)
    canonical: npt.NDArray[Any] = np.where(np.isnan(values), nan, values + zero)
    return canonical


def _flatten(values: Iterable[Any], kinds: Iterable[pa.DataType | None]) -> Iterator[tuple[Any, pa.DataType | None]]:
    """Replace structs by their fields, which hash alike; Arrow does not accept tuples for structs."""
    for value, kind in zip(values, kinds, strict=True):
        if isinstance(value, tuple | dict):
            fields = value.values() if isinstance(value, dict) else value
            yield from _flatten(fields, [field.type for field in kind] if kind is not None else [None] * len(value))
        else:
            yield value, kind


_HASHERS: tuple[tuple[Callable[[pa.DataType], bool], _Hasher], ...] = (
    (kinds.is_boolean, _small),
    (kinds.is_int8, _small),
    (kinds.is_int16, _small),
    (kinds.is_int32, _small),
    (kinds.is_int64, _long),
    (kinds.is_float32, _float),
    (kinds.is_float64, _double),
    (kinds.is_date, _date),
    (kinds.is_timestamp, _timestamp),
    (kinds.is_decimal128, _decimal),
    (kinds.is_string, _bytes),
    (kinds.is_large_string, _bytes),
    (kinds.is_string_view, _bytes),
    (kinds.is_binary, _bytes),
    (kinds.is_large_binary, _bytes),
    (kinds.is_binary_view, _bytes),
    (kinds.is_fixed_size_binary, _bytes),
)
