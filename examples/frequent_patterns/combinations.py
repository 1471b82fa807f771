"""Patterns: combinations of the words of a text, as strings.

The canonical form of a pattern is its words in ascending order, separated by one space. Texts are in that form, so a
choice of their words in order is a canonical pattern, and equal patterns are equal strings with one hash and one task.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from examples.frequent_patterns import kernels


def combinations(texts: Any, shortest: int, longest: int) -> tuple[pa.Array, NDArray[np.int64]]:
    """Return the patterns of `shortest` to `longest` words of every text, and the number of the text of each.

    `texts` are canonical, without nulls. A text has the sum of C(words, k) patterns: bound both.
    """
    offsets, data = _buffers(texts)
    counts, sizes = np.empty((2, len(offsets) - 1), np.int64)
    kernels.measure(offsets, data, shortest, longest, counts, sizes)
    made_offsets, made = np.empty(counts.sum() + 1, np.int32), np.empty(sizes.sum(), np.uint8)
    kernels.fill(offsets, data, shortest, longest, _max_words(texts), made_offsets, made)
    patterns = pa.StringArray.from_buffers(counts.sum(), pa.py_buffer(made_offsets), pa.py_buffer(made))
    return patterns, np.repeat(np.arange(len(counts)), counts)


def one_word_less(patterns: Any, longest: int) -> tuple[pa.Array, NDArray[np.int64]]:
    """Return every pattern without each of its words in turn, and the number of the original pattern of each.

    A pattern of one word gives none.
    """
    words = word_counts(patterns)
    made, origins = [pa.array([], pa.string())], [np.zeros(0, np.int64)]
    for size in range(2, longest + 1):
        chosen = np.flatnonzero(words == size)
        if len(chosen):
            shorter, origin = combinations(patterns.take(pa.array(chosen)), size - 1, size - 1)
            made.append(shorter)
            origins.append(chosen[origin])
    return pa.concat_arrays(made), np.concatenate(origins)


def word_counts(texts: Any) -> NDArray[np.int64]:
    """Return the number of words of each canonical text."""
    return np.asarray(pc.add(pc.count_substring(texts, " "), 1), np.int64)


def warm_up() -> None:
    """Compile the loops into the cache, or load them from it; takes seconds the first time on a machine."""
    combinations(pa.array(["a b"]), 1, 2)


def _max_words(texts: Any) -> int:
    return int(word_counts(texts).max(initial=1))


def _buffers(texts: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    array = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    array = array.cast(pa.string())
    if not len(array):
        return _read_only(np.zeros(1, np.int64)), _read_only(np.zeros(0, np.uint8))
    _, positions, data = array.buffers()
    offsets = np.frombuffer(positions, np.int32)[array.offset : array.offset + len(array) + 1]
    return _read_only(offsets.astype(np.int64)), _read_only(np.frombuffer(data or b"", np.uint8))


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.setflags(write=False)
    return view
