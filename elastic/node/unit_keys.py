"""The keys of one unit in the running interval: how many rows and how much time each had."""

import math

import numpy as np
import numpy.typing as npt

from elastic.routing.key_counter import KeyCounter, KeyCounts

Hashes = npt.NDArray[np.int64]


class UnitKeyCounter:
    """Counts the rows of a unit by key; `began` is when the unit came to the node, or the interval began.

    Rows and seconds of the unit are exact. Some of its rows, perhaps all, are counted by key, as a sample of all.
    """

    def __init__(self, limit: int, began: float) -> None:
        self.began = began
        self.rows = 0
        self.seconds = 0.0
        self._stride = 1  # the largest
        self._counter = KeyCounter(limit)

    def add_step(self, rows: int, seconds: float) -> None:
        """Add a step with its number of rows, some of which `count` gets later."""
        self.rows += rows
        self.seconds += seconds

    def count(self, hashes: Hashes, stride: int) -> None:
        """Count rows by the hashes of their keys, each for `stride` rows."""
        self._stride = max(self._stride, stride)
        self._counter.add(hashes, stride)

    def count_groups(self, hashes: Hashes, amounts: npt.NDArray[np.int64]) -> None:
        """Count groups of rows of a key by their hashes, with their rows and nanoseconds."""
        self._counter.add_groups(hashes, amounts)

    @property
    def error_rows(self) -> int:
        """Number of rows of a key that may be missing because the unit has more keys than counters."""
        return math.ceil(self._counter.error * self._scale)

    @property
    def keys(self) -> int:
        """The number of keys that were counted."""
        return self._counter.keys

    def weigh_keys(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]] | None:
        """Return ascending seconds, and the number of keys that have at least these and fewer than the next.

        None if the time of each key was measured.
        """
        if self._counter.nanoseconds:
            return None
        histogram = self._counter.histogram(self._stride)
        seconds = np.arange(len(histogram), dtype=np.float64) * (self._stride * self._seconds_per_count)
        return seconds, histogram

    def counts(self, least_seconds: float = 0.0) -> KeyCounts:
        """Return the keys that were counted, with their rows as far as they are known.

        Keys below `least_seconds` may be left out.
        """
        is_measured, weight = self._counter.nanoseconds > 0, self._seconds_per_count
        least = 1 if is_measured or not weight else max(1, math.floor(least_seconds / weight))
        counts = self._counter.counts(least)
        if self._scale == 1.0:
            return counts
        return counts._replace(rows=np.rint(counts.rows * self._scale).astype(np.int64))

    def attribute_seconds(self, counts: KeyCounts) -> npt.NDArray[np.float64]:
        """Return the seconds of each key: those that were measured, and its share by rows of all others."""
        others = max(0.0, self.seconds - self._counter.nanoseconds / 1e9)
        seconds: npt.NDArray[np.float64] = counts.nanoseconds / 1e9 + counts.rows * (others / max(self.rows, 1))
        return seconds

    def begin_interval(self, now: float, limit: int, protected: Hashes) -> None:
        """Begin a new interval; protected keys always have a counter."""
        self.began, self.rows, self.seconds, self._stride = now, 0, 0.0, 1
        self._counter.clear(limit, protected)

    @property
    def _seconds_per_count(self) -> float:
        return self.seconds * self._scale / max(self.rows, 1)

    @property
    def _scale(self) -> float:
        """Factor from the number of rows that were counted to the exact number."""
        return self.rows / self._counter.rows if self._counter.rows else 1.0
