"""Different texts (any bytes), numbered in the order of their first appearance."""

from typing import NamedTuple

import numpy as np

from elastic.operators import kernels
from elastic.operators.columns.growing import expected_rows, grown, read_only, room_in, slots_for
from elastic.operators.kernels import Bytes, Slots, Words


class Texts(NamedTuple):
    """Text i is `data[offsets[i]:offsets[i + 1]]`."""

    offsets: Words
    data: Bytes

    def __len__(self) -> int:
        return len(self.offsets) - 1


class TextIndex:
    """Texts <-> rows 0..count-1; equal bytes are equal texts. O(length) a text, some 5 to 10 million a second.

    Takes the bytes, 8 more a row for the offset and 12 to 24 for the index, which is made when it is first needed.
    """

    def __init__(self, texts: Texts | None = None) -> None:
        self._offsets: Words = np.zeros(2, np.int64) if texts is None or not len(texts) else texts.offsets
        self._data: Bytes = np.zeros(1, np.uint8) if texts is None or not len(texts.data) else texts.data
        self.count = 0 if texts is None else len(texts)
        self._slots: Slots | None = None

    @property
    def texts(self) -> Texts:
        """The text of every row; views."""
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
            slots = self._index()
            most = min(len(self._offsets) - 1, room_in(len(slots)))
            done, self.count = kernels.insert_texts(
                offsets, data, done, self._offsets, self._data, self.count, most, slots, rows
            )
            if done == len(texts):
                return rows
            rows_wanted = expected_rows(self.count, self.count - before, done, len(texts) - done)
            self._grow(rows_wanted, int(offsets[done + 1] - offsets[done]))

    def take(self, rows: Words) -> Texts:
        """The texts of some rows, copied."""
        lengths = self._offsets[rows + 1] - self._offsets[rows]
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        data = np.empty(offsets[-1], np.uint8)
        kernels.take_texts(self._offsets, self._data, read_only(rows), offsets, data)
        return Texts(offsets, data)

    def keep(self, rows: Words) -> None:
        """Only these rows, renumbered in this order."""
        self.__init__(self.take(rows))  # type: ignore[misc]

    def arrays(self) -> dict[str, Words | Bytes]:
        """What it takes to make it again: views, and yet later insertions do not change them, as rows only append."""
        offsets, data = self.texts
        return {"offsets": read_only(offsets), "data": read_only(data)}

    def _index(self) -> Slots:
        if self._slots is None:
            self._slots = slots_for(self.count)
            kernels.index_texts(self._offsets, self._data, self.count, self._slots)
        return self._slots

    def _grow(self, rows: int, next_bytes: int) -> None:
        """Room for that many rows, the next one of that many bytes, wherever there is no more room."""
        used = int(self._offsets[self.count])
        if used + next_bytes > len(self._data):
            mean = used // max(self.count, 1)
            self._data = grown(self._data, used, max(used + next_bytes, rows * mean))
        if self.count + 1 == len(self._offsets):
            self._offsets = grown(self._offsets, self.count + 1, rows + 1, fill=0)
        if self._slots is not None and self.count == room_in(len(self._slots)):
            self._slots = None  # before the next one is made, so that both need not fit into memory
            self._slots = slots_for(rows)
            kernels.index_texts(self._offsets, self._data, self.count, self._slots)
