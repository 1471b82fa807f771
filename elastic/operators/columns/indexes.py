"""Hash indexes: different words or texts, numbered in the order of their first appearance, in arrays that grow."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from elastic.operators import kernels
from elastic.operators.kernels import Buckets, Bytes, Words

_MIN_ROWS = 64  # a job has many tasks, most of which may be small


def grow(array: NDArray[Any], used: int, needed: int, fill: Any = None) -> NDArray[Any]:
    """Return a larger array with the first `used` entries of this one, for at least `needed` entries.

    The size at least doubles, so appending costs O(1) amortised. Views of the old array stay valid.
    """
    capacity = max(needed, 2 * len(array), _MIN_ROWS)
    if fill is None:
        larger = np.empty(capacity, array.dtype)
    elif not np.any(fill):
        larger = np.zeros(capacity, array.dtype)  # untouched pages take no memory
    else:
        larger = np.full(capacity, fill, array.dtype)
    larger[:used] = array[:used]
    return larger


def estimate_rows(count: int, new: int, done: int, left: int) -> int:
    """Return the rows to allocate when `done` keys of a batch gave `new` rows and `left` keys remain.

    Extrapolates from the beginning of the batch, but within two and eight times the current size: a batch that begins
    with new keys may continue with known ones.
    """
    return min(max(count + left * new // max(done, 1), 2 * count, _MIN_ROWS), max(8 * count, _MIN_ROWS))


def new_buckets(rows: int) -> NDArray[np.uint64]:
    """Return the buckets of an empty index for this many rows."""
    size = 2 * _MIN_ROWS
    while max_rows(size) < rows:
        size *= 2
    return np.zeros(size, np.uint64)


def max_rows(buckets: int) -> int:
    """Return the number of rows that an index may hold: above two thirds full, probing is slow."""
    return buckets * 2 // 3


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.setflags(write=False)
    return view


class WordIndex:
    """Words <-> rows 0..count-1. Lookup and insertion are O(1) per word, some 10 to 40 million per second.

    Takes 8 bytes per row for the word and 12 to 24 for the index, which is built on first use.
    """

    def __init__(self, words: Words | None = None) -> None:
        self._stored: Words = np.zeros(1, np.int64) if words is None or not len(words) else words
        self.count = 0 if words is None else len(words)
        self._buckets: Buckets | None = None

    @property
    def words(self) -> Words:
        """The word of every row, as a view."""
        return self._stored[: self.count]

    @property
    def nbytes(self) -> int:
        return int(self.words.nbytes)

    def find(self, words: Words) -> Words:
        rows = np.empty(len(words), np.int64)
        kernels.find_words(read_only(words), self._stored, self._index(), rows)
        return rows

    def insert(self, words: Words) -> Words:
        rows = np.empty(len(words), np.int64)
        words = read_only(words)
        done, before = 0, self.count
        while True:
            buckets = self._index()
            most = min(len(self._stored), max_rows(len(buckets)))
            done, self.count = kernels.insert_words(words, done, self._stored, self.count, most, buckets, rows)
            if done == len(words):
                return rows
            self._grow(estimate_rows(self.count, self.count - before, done, len(words) - done))

    def select(self, rows: Words) -> Self:
        """Return an index of these rows only, renumbered in this order."""
        return type(self)(self.words[rows])

    def arrays(self) -> dict[str, Words]:
        """Return the arrays that restore it: views that insertions do not change, since rows are only appended."""
        return {"words": read_only(self.words)}

    def _index(self) -> Buckets:
        if self._buckets is None:
            self._buckets = new_buckets(self.count)
            kernels.index_words(self._stored, self.count, self._buckets)
        return self._buckets

    def _grow(self, rows: int) -> None:
        """Make room for this many rows in every array that is full."""
        if self.count == len(self._stored):
            self._stored = grow(self._stored, self.count, rows)
        if self._buckets is not None and self.count == max_rows(len(self._buckets)):
            self._buckets = None  # freed first, so that both need not fit into memory
            self._buckets = new_buckets(rows)
            kernels.index_words(self._stored, self.count, self._buckets)


class Texts(NamedTuple):
    """Texts of any bytes: text i is `data[offsets[i]:offsets[i + 1]]`."""

    offsets: Words
    data: Bytes

    def __len__(self) -> int:
        return len(self.offsets) - 1


class TextIndex:
    """Texts <-> rows 0..count-1; equal bytes are equal texts. O(length) per text, some 5 to 10 million per second.

    Takes the bytes, 8 per row for the offset and 12 to 24 for the index, which is built on first use.
    """

    def __init__(self, texts: Texts | None = None) -> None:
        self._offsets: Words = np.zeros(2, np.int64) if texts is None or not len(texts) else texts.offsets
        self._data: Bytes = np.zeros(1, np.uint8) if texts is None or not len(texts.data) else texts.data
        self.count = 0 if texts is None else len(texts)
        self._buckets: Buckets | None = None

    @property
    def texts(self) -> Texts:
        """The text of every row, as views."""
        offsets = self._offsets[: self.count + 1]
        return Texts(offsets, self._data[: offsets[-1]])

    @property
    def nbytes(self) -> int:
        offsets, data = self.texts
        return int(offsets.nbytes + data.nbytes)

    def find(self, texts: Texts) -> Words:
        rows = np.empty(len(texts), np.int64)
        offsets, data = read_only(texts.offsets), read_only(texts.data)
        kernels.find_texts(offsets, data, self._offsets, self._data, self._index(), rows)
        return rows

    def insert(self, texts: Texts) -> Words:
        rows = np.empty(len(texts), np.int64)
        offsets, data = read_only(texts.offsets), read_only(texts.data)
        done, before = 0, self.count
        while True:
            buckets = self._index()
            most = min(len(self._offsets) - 1, max_rows(len(buckets)))
            done, self.count = kernels.insert_texts(
                offsets, data, done, self._offsets, self._data, self.count, most, buckets, rows
            )
            if done == len(texts):
                return rows
            rows_wanted = estimate_rows(self.count, self.count - before, done, len(texts) - done)
            self._grow(rows_wanted, int(offsets[done + 1] - offsets[done]))

    def take(self, rows: Words) -> Texts:
        """Copy the texts of some rows."""
        lengths = self._offsets[rows + 1] - self._offsets[rows]
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        data = np.empty(offsets[-1], np.uint8)
        kernels.take_texts(self._offsets, self._data, read_only(rows), offsets, data)
        return Texts(offsets, data)

    def select(self, rows: Words) -> Self:
        """Return an index of these rows only, renumbered in this order."""
        return type(self)(self.take(rows))

    def arrays(self) -> dict[str, Words | Bytes]:
        """Return the arrays that restore it: views that insertions do not change, since rows are only appended."""
        offsets, data = self.texts
        return {"offsets": read_only(offsets), "data": read_only(data)}

    def _index(self) -> Buckets:
        if self._buckets is None:
            self._buckets = new_buckets(self.count)
            kernels.index_texts(self._offsets, self._data, self.count, self._buckets)
        return self._buckets

    def _grow(self, rows: int, next_bytes: int) -> None:
        """Make room for this many rows, the next one of `next_bytes` bytes, in every array that is full."""
        used = int(self._offsets[self.count])
        if used + next_bytes > len(self._data):
            mean = used // max(self.count, 1)
            self._data = grow(self._data, used, max(used + next_bytes, rows * mean))
        if self.count + 1 == len(self._offsets):
            self._offsets = grow(self._offsets, self.count + 1, rows + 1, fill=0)
        if self._buckets is not None and self.count == max_rows(len(self._buckets)):
            self._buckets = None  # freed first, so that both need not fit into memory
            self._buckets = new_buckets(rows)
            kernels.index_texts(self._offsets, self._data, self.count, self._buckets)
