"""Keys of one column."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastic.operators.columns.indexes import found, index_of, inserted, taken, taken_but_nulls
from elastic.operators.kernels import Words

_WORD_BYTES = 8
_NONE = -1


class SingleKeys:
    """Keys of one column, words or texts; the null has no place among them, so its row is only remembered."""

    def __init__(self, kind: pa.DataType, arrays: Mapping[str, NDArray[Any]] | None = None) -> None:
        self._kind = kind
        self._index = index_of(kind, arrays)
        self._null_row = int(arrays["null_row"][0]) if arrays else _NONE

    @property
    def count(self) -> int:
        return self._index.count + (self._null_row != _NONE)

    @property
    def nbytes(self) -> int:
        return self._index.nbytes + _WORD_BYTES

    def insert(self, columns: Sequence[pa.Array]) -> Words:
        (array,) = columns
        if not array.null_count:
            return self._outer(inserted(self._index, array))
        valid = inserted(self._index, array.drop_null())
        if self._null_row == _NONE:
            self._null_row = self._index.count
        return self._with_nulls(array, valid)

    def find(self, columns: Sequence[pa.Array]) -> Words:
        (array,) = columns
        if not array.null_count:
            return self._outer(found(self._index, array))
        return self._with_nulls(array, found(self._index, array.drop_null()))

    def take(self, rows: Words | None) -> list[pa.Array]:
        if self._null_row == _NONE:
            return [taken(self._index, rows, self._kind)]
        rows = np.arange(self.count) if rows is None else rows
        inner = rows - (rows > self._null_row)
        return [taken_but_nulls(self._index, inner, rows == self._null_row, self._kind)]

    def keep(self, rows: Words) -> None:
        null = np.flatnonzero(rows == self._null_row) if self._null_row != _NONE else rows[:0]
        inner = rows if self._null_row == _NONE else rows - (rows > self._null_row)
        self._index.keep(np.delete(inner, null))
        self._null_row = int(null[0]) if len(null) else _NONE

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**self._index.arrays(), "null_row": np.array([self._null_row])}

    def _outer(self, rows: Words) -> Words:
        """Row numbers of the index, with a gap for the null."""
        return rows if self._null_row == _NONE else rows + (rows >= self._null_row)

    def _with_nulls(self, array: pa.Array, valid: Words) -> Words:
        rows = np.full(len(array), self._null_row, np.int64)
        rows[array.is_valid().to_numpy(zero_copy_only=False)] = self._outer(valid)
        return rows
