"""Grouping of the rows of a batch by key."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types as kinds

from elastic.operators.keys import to_python_keys


class GroupedRows(NamedTuple):
    """Rows grouped by key: key i has rows offsets[i]..offsets[i+1]-1 of `rows`, in their original order.

    Keys are in order of first appearance.
    """

    keys: list[Any]
    rows: pa.Table
    offsets: list[int]


def group_rows(rows: pa.Table, key: Sequence[str]) -> GroupedRows:
    """Group by the key columns; O(n log n) in Arrow and NumPy, and one Python object per key."""
    columns = [_plain(rows.column(name)) for name in key]
    codes = _codes([leaf for column in columns for leaf in _leaves(column)])
    first = np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))
    keys = to_python_keys([column.take(pa.array(first)) for column in columns])
    counts = np.bincount(codes)
    if len(counts) < len(codes):  # else every key has one row, and rows are in order
        rows = rows.combine_chunks().take(pa.array(np.argsort(codes, kind="stable")))
    return GroupedRows(keys, rows, [0, *np.cumsum(counts).tolist()])


def _codes(leaves: Sequence[pa.Array]) -> NDArray[np.int64]:
    """Return a code for each row, equal for equal keys, in order of first appearance."""
    codes, *others = map(_encode, leaves)
    for other in others:
        # Both are below the number of rows, so the product fits into 64 bits.
        codes = _encode(pa.array(codes * (int(other.max()) + 1) + other))
    return codes


def _encode(leaf: pa.Array) -> NDArray[np.int64]:
    encode = leaf.dictionary_encode(null_encoding="encode")
    numbers: NDArray[np.int64] = encode.indices.to_numpy().astype(np.int64)
    return numbers


def _leaves(column: pa.Array) -> Iterator[pa.Array]:
    """Yield the columns that decide whether two keys are equal: for a struct its validity and its fields."""
    if kinds.is_struct(column.type):
        yield column.is_valid()
        for field in column.flatten():
            yield from _leaves(field)
    elif kinds.is_floating(column.type):
        yield pa.array(column.to_numpy(zero_copy_only=False) + 0.0, mask=_nulls(column), from_pandas=False)
    else:
        yield column


def _nulls(column: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), np.bool_)


def _plain(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return array.dictionary_decode() if kinds.is_dictionary(array.type) else array
