"""The keys of keyed columns: rows of key columns <-> row numbers, in one of three shapes.

One column of words, one column of texts, or a composite: several columns, or structs, whose rows become fixed-size
texts of a word each. All three number keys in the order of first appearance, except that a null in a single column
comes after the other new keys of its batch.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types as kinds

from elastic.errors import InvalidJob
from elastic.operators.columns.growing import read_only
from elastic.operators.columns.key_types import as_texts, as_words, from_texts, from_words, is_word
from elastic.operators.columns.text_index import TextIndex, Texts
from elastic.operators.columns.word_index import WordIndex
from elastic.operators.kernels import Words

_WORD_BYTES = 8
_NONE = -1
_MOST_LEAVES = 63  # as many bits as a word has for nulls


class Keys(Protocol):
    """Different keys, numbered 0..count-1; a number, once given, stays until `keep`."""

    @property
    def count(self) -> int: ...

    @property
    def nbytes(self) -> int:
        """Bytes of `arrays()`."""

    def insert(self, columns: Sequence[pa.Array]) -> Words:
        """The row of every key; unknown ones get the next rows."""

    def find(self, columns: Sequence[pa.Array]) -> Words:
        """The row of every key, -1 where it has none."""

    def take(self, rows: Words | None) -> list[pa.Array]:
        """The key columns of some rows, or of all."""

    def keep(self, rows: Words) -> None:
        """Only these rows, renumbered in this order."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What it takes to make them again; nothing that happens later changes it."""


def keys_of(types: Sequence[pa.DataType], arrays: Mapping[str, NDArray[Any]] | None = None) -> Keys:
    """Empty, or from what `arrays` gave."""
    if len(types) == 1 and not kinds.is_struct(types[0]):
        return SingleKeys(types[0], arrays)
    return CompositeKeys(types, arrays)


class SingleKeys:
    """Keys of one column, words or texts; the null has no place among them, so its row is only remembered."""

    def __init__(self, kind: pa.DataType, arrays: Mapping[str, NDArray[Any]] | None = None) -> None:
        self._kind = kind
        self._index = _index(kind, arrays)
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
            return self._outer(_insert(self._index, array))
        valid = _insert(self._index, array.drop_null())
        if self._null_row == _NONE:
            self._null_row = self._index.count
        return self._with_nulls(array, valid)

    def find(self, columns: Sequence[pa.Array]) -> Words:
        (array,) = columns
        if not array.null_count:
            return self._outer(_find(self._index, array))
        return self._with_nulls(array, _find(self._index, array.drop_null()))

    def take(self, rows: Words | None) -> list[pa.Array]:
        if self._null_row == _NONE:
            return [_taken(self._index, rows, self._kind)]
        rows = np.arange(self.count) if rows is None else rows
        inner = rows - (rows > self._null_row)
        return [_taken_but_nulls(self._index, inner, rows == self._null_row, self._kind)]

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


class CompositeKeys:
    """Keys of several columns: a row is a text of words, one per leaf column and one whose bits say what is null.

    Texts among the columns are numbered in an index of their own first; those numbers are their words.
    """

    def __init__(self, types: Sequence[pa.DataType], arrays: Mapping[str, NDArray[Any]] | None = None) -> None:
        self._types = tuple(types)
        leaves = [leaf for kind in types for leaf in _leaf_types(kind)]
        if len(leaves) > _MOST_LEAVES:
            raise InvalidJob(
                f"a key of {len(leaves)} columns and fields. Use at most {_MOST_LEAVES}, or make one of some."
            )
        self._interned = {
            place: TextIndex(_texts(arrays, f"leaf{place}.") if arrays else None)
            for place, leaf in enumerate(leaves)
            if not kinds.is_struct(leaf) and not is_word(leaf)
        }
        self._width = (len(leaves) + 1) * _WORD_BYTES
        self._index = TextIndex(_texts(arrays, "") if arrays else None)

    @property
    def count(self) -> int:
        return self._index.count

    @property
    def nbytes(self) -> int:
        return self._index.nbytes + sum(index.nbytes for index in self._interned.values())

    def insert(self, columns: Sequence[pa.Array]) -> Words:
        return self._index.insert(self._rows(columns, _insert))

    def find(self, columns: Sequence[pa.Array]) -> Words:
        return self._index.find(self._rows(columns, _find))

    def take(self, rows: Words | None) -> list[pa.Array]:
        texts = self._index.texts if rows is None else self._index.take(rows)
        words = texts.data.view(np.int64).reshape(len(texts), self._width // _WORD_BYTES)
        leaves = enumerate(words.T[1:])
        return [self._column(kind, leaves, words[:, 0]) for kind in self._types]

    def keep(self, rows: Words) -> None:
        columns = self.take(rows)
        self.__init__(self._types)  # type: ignore[misc]
        self.insert(columns)

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
        offsets = np.arange(len(words) + 1, dtype=np.int64) * self._width
        return Texts(offsets, words.reshape(-1).view(np.uint8))

    def _column(self, kind: pa.DataType, leaves: Iterator[tuple[int, Words]], validity: Words) -> pa.Array:
        place, words = next(leaves)
        null = (validity >> place) & 1 == 0
        if kinds.is_struct(kind):
            fields = [self._column(field.type, leaves, validity) for field in kind]
            return pa.StructArray.from_arrays(fields, fields=list(kind), mask=pa.array(null))
        if place in self._interned:
            return _taken_but_nulls(self._interned[place], words, null, kind)
        return _nullified(from_words(np.ascontiguousarray(words), kind), null)


def _leaf_types(kind: pa.DataType) -> Iterator[pa.DataType]:
    yield kind
    if kinds.is_struct(kind):
        for field in kind:
            yield from _leaf_types(field.type)


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    """A struct itself (only whether it is null matters), then its fields, depth first."""
    yield array
    if kinds.is_struct(array.type):
        for field in array.flatten():
            yield from _leaves(field)


def _taken_but_nulls(index: WordIndex | TextIndex, rows: Words, null: NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    """The keys of some rows, null where it says so, whatever row is named there."""
    if not index.count:
        return pa.nulls(len(rows), kind)
    return _nullified(_taken(index, np.where(null, 0, rows), kind), null)


def _nullified(array: pa.Array, null: NDArray[np.bool_]) -> pa.Array:
    return array.take(pa.array(np.arange(len(array)), mask=null)) if null.any() else array


def _index(kind: pa.DataType, arrays: Mapping[str, NDArray[Any]] | None) -> WordIndex | TextIndex:
    if is_word(kind):
        return WordIndex(np.array(arrays["words"]) if arrays else None)
    return TextIndex(_texts(arrays, "") if arrays else None)


def _texts(arrays: Mapping[str, NDArray[Any]], prefix: str) -> Texts:
    # Copies: what comes from storage is read-only, and would keep all of the object's memory alive.
    return Texts(np.array(arrays[f"{prefix}offsets"]), np.array(arrays[f"{prefix}data"]))


def _insert(index: WordIndex | TextIndex, array: pa.Array) -> Words:
    return index.insert(as_words(array)) if isinstance(index, WordIndex) else index.insert(as_texts(array))


def _find(index: WordIndex | TextIndex, array: pa.Array) -> Words:
    return index.find(as_words(array)) if isinstance(index, WordIndex) else index.find(as_texts(array))


def _taken(index: WordIndex | TextIndex, rows: Words | None, kind: pa.DataType) -> pa.Array:
    if isinstance(index, WordIndex):
        return from_words(read_only(index.words if rows is None else index.words[rows]), kind)
    return from_texts(index.texts if rows is None else index.take(rows), kind)
