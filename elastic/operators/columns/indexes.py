"""One column of keys and its index of words or texts."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastic.operators.columns.growing import read_only
from elastic.operators.columns.key_types import as_texts, as_words, from_texts, from_words, is_word
from elastic.operators.columns.text_index import TextIndex, Texts
from elastic.operators.columns.word_index import WordIndex
from elastic.operators.kernels import Words

Index: TypeAlias = WordIndex | TextIndex


def taken_but_nulls(index: Index, rows: Words, null: NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    """The keys of some rows, null where it says so, whatever row is named there."""
    if not index.count:
        return pa.nulls(len(rows), kind)
    return nullified(taken(index, np.where(null, 0, rows), kind), null)


def nullified(array: pa.Array, null: NDArray[np.bool_]) -> pa.Array:
    return array.take(pa.array(np.arange(len(array)), mask=null)) if null.any() else array


def index_of(kind: pa.DataType, arrays: Mapping[str, NDArray[Any]] | None) -> Index:
    if is_word(kind):
        return WordIndex(np.array(arrays["words"]) if arrays else None)
    return TextIndex(texts_from(arrays, "") if arrays else None)


def texts_from(arrays: Mapping[str, NDArray[Any]], prefix: str) -> Texts:
    # Copies: what comes from storage is read-only, and would keep all of the object's memory alive.
    return Texts(np.array(arrays[f"{prefix}offsets"]), np.array(arrays[f"{prefix}data"]))


def inserted(index: Index, array: pa.Array) -> Words:
    return index.insert(as_words(array)) if isinstance(index, WordIndex) else index.insert(as_texts(array))


def found(index: Index, array: pa.Array) -> Words:
    return index.find(as_words(array)) if isinstance(index, WordIndex) else index.find(as_texts(array))


def taken(index: Index, rows: Words | None, kind: pa.DataType) -> pa.Array:
    if isinstance(index, WordIndex):
        return from_words(read_only(index.words if rows is None else index.words[rows]), kind)
    return from_texts(index.texts if rows is None else index.take(rows), kind)
