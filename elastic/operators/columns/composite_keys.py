"""Keys of several columns, or of structs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types as kinds

from elastic.errors import InvalidJob
from elastic.operators.columns.indexes import found, inserted, nullified, taken_but_nulls, texts_from
from elastic.operators.columns.key_types import as_words, from_words, is_word
from elastic.operators.columns.text_index import TextIndex, Texts
from elastic.operators.kernels import Words

_WORD_BYTES = 8
_MOST_LEAVES = 63  # as many bits as a word has for nulls


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
            place: TextIndex(texts_from(arrays, f"leaf{place}.") if arrays else None)
            for place, leaf in enumerate(leaves)
            if not kinds.is_struct(leaf) and not is_word(leaf)
        }
        self._width = (len(leaves) + 1) * _WORD_BYTES
        self._index = TextIndex(texts_from(arrays, "") if arrays else None)

    @property
    def count(self) -> int:
        return self._index.count

    @property
    def nbytes(self) -> int:
        return self._index.nbytes + sum(index.nbytes for index in self._interned.values())

    def insert(self, columns: Sequence[pa.Array]) -> Words:
        return self._index.insert(self._rows(columns, inserted))

    def find(self, columns: Sequence[pa.Array]) -> Words:
        return self._index.find(self._rows(columns, found))

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
            return taken_but_nulls(self._interned[place], words, null, kind)
        return nullified(from_words(np.ascontiguousarray(words), kind), null)


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
