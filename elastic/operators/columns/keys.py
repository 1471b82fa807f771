"""The keys of keyed columns: rows of key columns <-> row numbers, in one of three shapes.

One column of words, one column of texts, or a composite: several columns, or structs, whose rows become fixed-size
texts of one word each. All three number keys in the order of first appearance, except that a null in a single column
comes after the other new keys of its batch.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types as kinds

from elastic.errors import InvalidJob
from elastic.operators.columns.indexes import TextIndex, Texts
from elastic.operators.columns.key_columns import (
    as_words,
    find_in,
    from_words,
    insert_into,
    is_word,
    new_index,
    read_texts,
    set_nulls,
    take_from,
    take_or_null,
)
from elastic.operators.kernels import Words


class Keys(Protocol):
    """Different keys, numbered 0..count-1; numbers are stable until `keep`, which does not change shallow copies."""

    @property
    def count(self) -> int: ...

    @property
    def nbytes(self) -> int:
        """Bytes of `arrays()`."""

    def insert(self, columns: Sequence[pa.Array]) -> Words:
        """Return the row of every key; unknown keys get the next rows."""

    def find(self, columns: Sequence[pa.Array]) -> Words:
        """Return the row of every key, -1 for unknown keys."""

    def take(self, rows: Words | None) -> list[pa.Array]:
        """Return the key columns of some rows, or of all."""

    def keep(self, rows: Words) -> None:
        """Keep only these rows, renumbered in this order."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that restore them; later changes do not affect the arrays."""


def new_keys(types: Sequence[pa.DataType], arrays: Mapping[str, NDArray[Any]] | None = None) -> Keys:
    """Return an empty set of keys, or restore one from its `arrays()`."""
    if len(types) == 1 and not kinds.is_struct(types[0]):
        return SingleKeys(types[0], arrays)
    return CompositeKeys(types, arrays)


_WORD_BYTES = 8
_NONE = -1


class SingleKeys:
    """Keys of one column, words or texts; the row of the null is kept apart from the index."""

    def __init__(self, kind: pa.DataType, arrays: Mapping[str, NDArray[Any]] | None = None) -> None:
        self._kind = kind
        self._index = new_index(kind, arrays)
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
            return self._outer(insert_into(self._index, array))
        valid = insert_into(self._index, array.drop_null())
        if self._null_row == _NONE:
            self._null_row = self._index.count
        return self._with_nulls(array, valid)

    def find(self, columns: Sequence[pa.Array]) -> Words:
        (array,) = columns
        if not array.null_count:
            return self._outer(find_in(self._index, array))
        return self._with_nulls(array, find_in(self._index, array.drop_null()))

    def take(self, rows: Words | None) -> list[pa.Array]:
        if self._null_row == _NONE:
            return [take_from(self._index, rows, self._kind)]
        rows = np.arange(self.count) if rows is None else rows
        inner = rows - (rows > self._null_row)
        return [take_or_null(self._index, inner, rows == self._null_row, self._kind)]

    def keep(self, rows: Words) -> None:
        null = np.flatnonzero(rows == self._null_row) if self._null_row != _NONE else rows[:0]
        inner = rows if self._null_row == _NONE else rows - (rows > self._null_row)
        self._index = self._index.select(np.delete(inner, null))
        self._null_row = int(null[0]) if len(null) else _NONE

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**self._index.arrays(), "null_row": np.array([self._null_row])}

    def _outer(self, rows: Words) -> Words:
        """Convert rows of the index to row numbers, which leave a gap for the null."""
        return rows if self._null_row == _NONE else rows + (rows >= self._null_row)

    def _with_nulls(self, array: pa.Array, valid: Words) -> Words:
        rows = np.full(len(array), self._null_row, np.int64)
        rows[array.is_valid().to_numpy(zero_copy_only=False)] = self._outer(valid)
        return rows


_MAX_LEAVES = 63  # bits of a word that mark nulls


class CompositeKeys:
    """Keys of several columns or of structs: a row is a text of words, one per leaf column and one that marks nulls.

    Texts among the columns are numbered in an index of their own; those numbers are their words.
    """

    def __init__(self, types: Sequence[pa.DataType], arrays: Mapping[str, NDArray[Any]] | None = None) -> None:
        self._types = tuple(types)
        leaves = [leaf for kind in types for leaf in _leaf_types(kind)]
        if len(leaves) > _MAX_LEAVES:
            raise InvalidJob(
                f"a key cannot have {len(leaves)} columns and fields. Use at most {_MAX_LEAVES}, or combine some."
            )
        self._interned = {
            place: TextIndex(read_texts(arrays, f"leaf{place}.") if arrays else None)
            for place, leaf in enumerate(leaves)
            if not kinds.is_struct(leaf) and not is_word(leaf)
        }
        self._width = (len(leaves) + 1) * _WORD_BYTES
        self._index = TextIndex(read_texts(arrays, "") if arrays else None)

    @property
    def count(self) -> int:
        return self._index.count

    @property
    def nbytes(self) -> int:
        return self._index.nbytes + sum(index.nbytes for index in self._interned.values())

    def insert(self, columns: Sequence[pa.Array]) -> Words:
        return self._index.insert(self._rows(columns, insert_into))

    def find(self, columns: Sequence[pa.Array]) -> Words:
        return self._index.find(self._rows(columns, find_in))

    def take(self, rows: Words | None) -> list[pa.Array]:
        words = self._words(self._index.texts if rows is None else self._index.take(rows))
        leaves = enumerate(words.T[1:])
        return [self._column(kind, leaves, words[:, 0]) for kind in self._types]

    def keep(self, rows: Words) -> None:
        words = self._words(self._index.take(rows))
        interned = {}
        for place, index in self._interned.items():
            is_valid = words[:, 0] >> place & 1 == 1
            is_used = np.zeros(index.count, np.bool_)
            is_used[words[is_valid, place + 1]] = True
            interned[place] = index.select(np.flatnonzero(is_used))
            words[is_valid, place + 1] = (np.cumsum(is_used) - 1)[words[is_valid, place + 1]]
        self._index = TextIndex(self._texts(words))
        self._interned = interned

    def arrays(self) -> dict[str, NDArray[Any]]:
        interned = {
            f"leaf{place}.{name}": array
            for place, index in self._interned.items()
            for name, array in index.arrays().items()
        }
        return {**self._index.arrays(), **interned}

    def _rows(self, columns: Sequence[pa.Array], number: Any) -> Texts:
        leaves = [leaf for array in columns for leaf in _leaves(array)]
        words = np.zeros((len(columns[0]), len(leaves) + 1), np.int64)
        for place, leaf in enumerate(leaves):
            valid = leaf.is_valid().to_numpy(zero_copy_only=False)
            words[:, 0] |= valid.astype(np.int64) << place
            if place in self._interned:
                words[valid, place + 1] = number(self._interned[place], leaf.drop_null())
            elif not kinds.is_struct(leaf.type):
                words[:, place + 1] = as_words(leaf)
        return self._texts(words)

    def _texts(self, words: NDArray[np.int64]) -> Texts:
        offsets = np.arange(len(words) + 1, dtype=np.int64) * self._width
        return Texts(offsets, words.reshape(-1).view(np.uint8))

    def _words(self, texts: Texts) -> NDArray[np.int64]:
        """Return one row per text, as a view: the word that marks nulls, then a word per leaf."""
        return texts.data.view(np.int64).reshape(len(texts), self._width // _WORD_BYTES)

    def _column(self, kind: pa.DataType, leaves: Iterator[tuple[int, Words]], validity: Words) -> pa.Array:
        place, words = next(leaves)
        null = (validity >> place) & 1 == 0
        if kinds.is_struct(kind):
            fields = [self._column(field.type, leaves, validity) for field in kind]
            return pa.StructArray.from_arrays(fields, fields=list(kind), mask=pa.array(null))
        if place in self._interned:
            return take_or_null(self._interned[place], words, null, kind)
        return set_nulls(from_words(np.ascontiguousarray(words), kind), null)


def _leaf_types(kind: pa.DataType) -> Iterator[pa.DataType]:
    yield kind
    if kinds.is_struct(kind):
        for field in kind:
            yield from _leaf_types(field.type)


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    """Yield a struct itself, for its validity only, then its fields, depth first."""
    yield array
    if kinds.is_struct(array.type):
        for field in array.flatten():
            yield from _leaves(field)
