"""Key columns as words or texts, and back: what fits into 64 bits is a word, all else is a text.

Two values are one key if Spark says so: -0.0 is 0.0, and every NaN is the same.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types as kinds

from elastic.errors import UnsupportedKeyType
from elastic.operators.columns.text_index import Texts
from elastic.operators.kernels import Words

_LARGEST_OFFSET = (1 << 31) - 1


def is_word(kind: pa.DataType) -> bool:
    """Whether values of this type fit into 64 bits."""
    return bool(
        kinds.is_boolean(kind)
        or kinds.is_integer(kind)
        or kinds.is_float32(kind)
        or kinds.is_float64(kind)
        or kinds.is_date(kind)
        or kinds.is_timestamp(kind)
    )


def is_text(kind: pa.DataType) -> bool:
    """Whether values of this type are kept as bytes."""
    return bool(
        kinds.is_string(kind)
        or kinds.is_large_string(kind)
        or kinds.is_binary(kind)
        or kinds.is_large_binary(kind)
        or kinds.is_fixed_size_binary(kind)
        or kinds.is_decimal(kind)
    )


def check_key_type(name: str, kind: pa.DataType) -> None:
    """`UnsupportedKeyType` for what can be neither a word nor a text nor a struct of these."""
    if kinds.is_struct(kind):
        for field in kind:
            check_key_type(f"{name}.{field.name}", field.type)
    elif not is_word(kind) and not is_text(kind):
        raise UnsupportedKeyType(name, kind)


def as_words(array: pa.Array) -> Words:
    """One word per value; what stands in a null's place is 0."""
    kind = array.type
    if kinds.is_boolean(kind):
        array = array.cast(pa.int8())
    elif not kinds.is_floating(kind):
        array = array.view(_number_of(kind))
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
    number = _number_of(kind)
    return pa.array(words.astype(number.to_pandas_dtype(), copy=False)).view(kind)


def as_texts(array: pa.Array) -> Texts:
    """One text per value; what stands in a null's place is empty."""
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
    """The texts as an Arrow column; a string or binary column above 2 GiB comes as its large sibling."""
    if kinds.is_string(kind) or kinds.is_binary(kind):
        if len(texts.data) <= _LARGEST_OFFSET:
            return _of_texts(texts, kind, np.int32)
        return _of_texts(texts, pa.large_string() if kinds.is_string(kind) else pa.large_binary(), np.int64)
    if kinds.is_large_string(kind) or kinds.is_large_binary(kind):
        return _of_texts(texts, kind, np.int64)
    fixed = _of_texts(texts, pa.large_binary(), np.int64).cast(pa.binary(kind.bit_width // 8))
    return fixed.view(kind)


def _of_texts(texts: Texts, kind: pa.DataType, offset: type[np.generic]) -> pa.Array:
    buffers = [None, pa.py_buffer(texts.offsets.astype(offset)), pa.py_buffer(texts.data)]
    return pa.Array.from_buffers(kind, len(texts), buffers, null_count=0)


def _number_of(kind: pa.DataType) -> pa.DataType:
    """The integers that a type's values lie in memory as."""
    if kinds.is_integer(kind):
        return kind
    return pa.int32() if kind.bit_width == 32 else pa.int64()


def _float_words(values: NDArray[Any]) -> Words:
    canonical = np.where(np.isnan(values), values.dtype.type(np.nan), values + values.dtype.type(0))
    bits: NDArray[Any] = canonical.view(np.int32 if values.dtype == np.float32 else np.int64)
    return bits.astype(np.int64, copy=False)
