"""Key columns as words or texts, and back: what fits into 64 bits is a word, everything else is a text.

Two values are one key if Spark says so: -0.0 equals 0.0, and every NaN is the same.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types as kinds

from elastic.errors import UnsupportedKeyType
from elastic.operators.columns.indexes import TextIndex, Texts, WordIndex, read_only
from elastic.operators.kernels import Words

_LARGEST_OFFSET = (1 << 31) - 1


def is_word(kind: pa.DataType) -> bool:
    """Return whether values of this type fit into 64 bits."""
    return bool(
        kinds.is_boolean(kind)
        or kinds.is_integer(kind)
        or kinds.is_float32(kind)
        or kinds.is_float64(kind)
        or kinds.is_date(kind)
        or kinds.is_timestamp(kind)
    )


def is_text(kind: pa.DataType) -> bool:
    """Return whether values of this type are stored as bytes."""
    return bool(
        kinds.is_string(kind)
        or kinds.is_large_string(kind)
        or kinds.is_binary(kind)
        or kinds.is_large_binary(kind)
        or kinds.is_fixed_size_binary(kind)
        or kinds.is_decimal(kind)
    )


def check_key_type(name: str, kind: pa.DataType) -> None:
    """Raise `UnsupportedKeyType` for a type that is neither a word, nor a text, nor a struct of these."""
    if kinds.is_struct(kind):
        for field in kind:
            check_key_type(f"{name}.{field.name}", field.type)
    elif not is_word(kind) and not is_text(kind):
        raise UnsupportedKeyType(name, kind)


def as_words(array: pa.Array) -> Words:
    """Return one word per value, 0 for nulls."""
    kind = array.type
    if kinds.is_boolean(kind):
        array = array.cast(pa.int8())
    elif not kinds.is_floating(kind):
        array = array.view(_integer_type(kind))
    values: NDArray[Any] = (pc.fill_null(array, 0) if array.null_count else array).to_numpy()
    if kinds.is_floating(kind):
        return _float_words(values)
    return values.view(np.int64) if values.dtype == np.uint64 else values.astype(np.int64, copy=False)


def from_words(words: Words, kind: pa.DataType) -> pa.Array:
    if kinds.is_float64(kind):
        return pa.array(words.view(np.float64))
    if kinds.is_float32(kind):
        return pa.array(words.astype(np.int32).view(np.float32))
    if kinds.is_boolean(kind):
        return pa.array(words.astype(np.bool_))
    number = _integer_type(kind)
    return pa.array(words.astype(number.to_pandas_dtype(), copy=False)).view(kind)


def as_texts(array: pa.Array) -> Texts:
    """Return one text per value, empty for nulls."""
    if kinds.is_decimal(array.type):
        array = array.view(pa.binary(array.type.bit_width // 8))
    if array.null_count:
        array = pc.fill_null(array.cast(pa.large_binary()), b"")
    wide = kinds.is_large_string(array.type) or kinds.is_large_binary(array.type)
    if not wide and not kinds.is_string(array.type) and not kinds.is_binary(array.type):
        array, wide = array.cast(pa.large_binary()), True
    _, positions, data = array.buffers()
    if not len(array):
        return Texts(np.zeros(1, np.int64), np.zeros(0, np.uint8))
    offsets = np.frombuffer(positions, np.int64 if wide else np.int32)[array.offset : array.offset + len(array) + 1]
    return Texts(offsets.astype(np.int64, copy=False), np.frombuffer(data or b"", np.uint8))


def from_texts(texts: Texts, kind: pa.DataType) -> pa.Array:
    """Return the texts as an Arrow column; above 2 GiB as large_string or large_binary."""
    if kinds.is_string(kind) or kinds.is_binary(kind):
        if len(texts.data) <= _LARGEST_OFFSET:
            return _build_texts(texts, kind, np.int32)
        return _build_texts(texts, pa.large_string() if kinds.is_string(kind) else pa.large_binary(), np.int64)
    if kinds.is_large_string(kind) or kinds.is_large_binary(kind):
        return _build_texts(texts, kind, np.int64)
    fixed = _build_texts(texts, pa.large_binary(), np.int64).cast(pa.binary(kind.bit_width // 8))
    return fixed.view(kind)


def _build_texts(texts: Texts, kind: pa.DataType, offset: type[np.generic]) -> pa.Array:
    buffers = [None, pa.py_buffer(texts.offsets.astype(offset)), pa.py_buffer(texts.data)]
    return pa.Array.from_buffers(kind, len(texts), buffers, null_count=0)


def _integer_type(kind: pa.DataType) -> pa.DataType:
    """Return the integer type with the same memory layout."""
    if kinds.is_integer(kind):
        return kind
    return pa.int32() if kind.bit_width == 32 else pa.int64()


def _float_words(values: NDArray[Any]) -> Words:
    canonical = np.where(np.isnan(values), values.dtype.type(np.nan), values + values.dtype.type(0))
    bits: NDArray[Any] = canonical.view(np.int32 if values.dtype == np.float32 else np.int64)
    return bits.astype(np.int64, copy=False)


Index: TypeAlias = WordIndex | TextIndex


def take_or_null(index: Index, rows: Words, null: NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    """Return the keys of some rows; null where the mask says so."""
    if not index.count:
        return pa.nulls(len(rows), kind)
    return set_nulls(take_from(index, np.where(null, 0, rows), kind), null)


def set_nulls(array: pa.Array, null: NDArray[np.bool_]) -> pa.Array:
    return array.take(pa.array(np.arange(len(array)), mask=null)) if null.any() else array


def new_index(kind: pa.DataType, arrays: Mapping[str, NDArray[Any]] | None) -> Index:
    if is_word(kind):
        return WordIndex(np.array(arrays["words"]) if arrays else None)
    return TextIndex(read_texts(arrays, "") if arrays else None)


def read_texts(arrays: Mapping[str, NDArray[Any]], prefix: str) -> Texts:
    # Copies: arrays from storage are read-only, and would keep the whole object in memory.
    return Texts(np.array(arrays[f"{prefix}offsets"]), np.array(arrays[f"{prefix}data"]))


def insert_into(index: Index, array: pa.Array) -> Words:
    return index.insert(as_words(array)) if isinstance(index, WordIndex) else index.insert(as_texts(array))


def find_in(index: Index, array: pa.Array) -> Words:
    return index.find(as_words(array)) if isinstance(index, WordIndex) else index.find(as_texts(array))


def take_from(index: Index, rows: Words | None, kind: pa.DataType) -> pa.Array:
    if isinstance(index, WordIndex):
        return from_words(read_only(index.words if rows is None else index.words[rows]), kind)
    return from_texts(index.texts if rows is None else index.take(rows), kind)
