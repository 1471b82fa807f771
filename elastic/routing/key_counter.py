"""Counts rows by the hash of their key: exactly for up to a number of keys, within a bound beyond it."""

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from elastic.errors import InvalidJob
from elastic.routing.compiled_loops import as_read_only, load_compiled

Hashes = npt.NDArray[np.int64]
Amounts = npt.NDArray[np.int64]  # a row per hash: rows, nanoseconds

_FEWEST_SLOTS = 1 << 8
_MOST_BINS = 256  # of a histogram
_LEAST_ROOM = 1_024  # counters besides those of protected keys, for any limit


class KeyCounts(NamedTuple):
    """The keys of a `KeyCounter`, each once: at least `rows` rows, and the nanoseconds that were measured for them."""

    hashes: Hashes
    rows: npt.NDArray[np.int64]
    nanoseconds: npt.NDArray[np.int64]


class KeyCounter:
    """Rows and nanoseconds by the hash of a key.

    It is exact while there are at most `limit` keys. With more, it is a Misra-Gries summary with purges of half of the
    counters: the median count is subtracted from all counters, and those that have nothing left are dropped. Keys that
    were protected before the first row are never purged.

    Invariant: `found <= rows of a key <= found + error`, with equality on the left for protected keys, and
    `error <= 4 * rows / limit`; `rows` is exact. Costs 3 to 11 ns per row, and 24 to 72 bytes per key. Not thread-safe.
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise InvalidJob(f"cannot count {limit} keys. Count at least one.")
        self._limit = limit
        self._protected: Hashes = np.zeros(0, np.int64)
        self._table: _Table = _create_table()
        self.rows = 0
        self.nanoseconds = 0
        self.error = 0  # rows of a key that may be missing

    def clear(self, limit: int, protected: Hashes) -> None:
        """Begin anew, with another limit and other protected keys."""
        self._limit = max(limit, 2 * len(protected) + _LEAST_ROOM)
        self._protected = protected
        self._table.clear()
        self.rows = self.nanoseconds = self.error = 0

    def halve(self) -> None:
        """Halve all counts, so that new rows weigh more than old ones; keys that have nothing left are dropped."""
        hashes, amounts = self._table.entries()
        amounts //= 2
        is_kept = amounts[:, 0] > 0
        self._table.clear()
        self._table.add(hashes[is_kept], amounts[is_kept], 0, self._limit)
        self.rows, self.nanoseconds = self.rows // 2, self.nanoseconds // 2
        self.error = -(-self.error // 2) + 1  # a count loses up to one by rounding

    def add(self, hashes: Hashes, weight: int = 1) -> None:
        """Count more rows, given by the hashes of their keys, each as many times as `weight` says."""
        self.rows += weight * len(hashes)
        self._add(hashes, weight)

    def add_groups(self, hashes: Hashes, amounts: Amounts) -> None:
        """Count groups of rows of a key, given by their hashes, with their rows and nanoseconds."""
        rows, nanoseconds = amounts.sum(axis=0).tolist()
        self.rows, self.nanoseconds = self.rows + rows, self.nanoseconds + nanoseconds
        self._add(hashes, amounts)

    @property
    def keys(self) -> int:
        """The number of keys that have a counter."""
        return len(self._table)

    def counts(self, least: int = 1) -> KeyCounts:
        """Return the keys with at least `rows` rows, in any order; cheap if they are few."""
        hashes, amounts = self._table.entries(least)
        return KeyCounts(hashes, amounts[:, 0], amounts[:, 1])

    def histogram(self, width: int) -> npt.NDArray[np.int64]:
        """Return how many keys have at least 0, `width`, 2 `width`, ... rows, and fewer than the next has."""
        rows = self._table.rows()
        return np.bincount(np.minimum(rows[rows > 0] // width, _MOST_BINS - 1), minlength=_MOST_BINS)

    def _add(self, hashes: Hashes, amounts: Amounts | int) -> None:
        start = 0
        while start < len(hashes):
            start = self._table.add(hashes, amounts, start, self._limit)
            if start < len(hashes):
                self._purge()

    def _purge(self) -> None:
        hashes, amounts = self._table.entries()
        is_protected = np.isin(hashes, self._protected)
        counts = amounts[~is_protected, 0]
        median = int(np.partition(counts, len(counts) // 2)[len(counts) // 2])
        amounts[~is_protected, 0] -= median
        is_kept = amounts[:, 0] > 0
        self.error += median
        self._table.clear()
        self._table.add(hashes[is_kept], amounts[is_kept], 0, self._limit)


class _Table(Protocol):
    """Amounts by hash."""

    def add(self, hashes: Hashes, amounts: Amounts | int, start: int, limit: int) -> int:
        """Add rows from `start` on until there are more than `limit` keys; return the first row that was not added.

        Each row has its own amounts, or all have one number of rows.
        """
        ...

    def entries(self, least: int = 1) -> tuple[Hashes, Amounts]:
        """Return a copy of the keys with at least `rows` rows."""
        ...

    def rows(self) -> npt.NDArray[np.int64]:
        """Return the rows of every key, and perhaps zeros."""
        ...

    def clear(self) -> None: ...

    def __len__(self) -> int: ...


class _SlotTable:
    """A hash table with linear probing, at most half full, which compiled loops fill.

    A slot has a hash and its rows, side by side because both are needed for every row; no rows mean that it is empty.
    """

    def __init__(self, count_rows: Any, add_amounts: Any) -> None:
        self._count_rows = count_rows
        self._add_amounts = add_amounts
        self._keys = 0
        self._slots: Amounts = np.zeros((_FEWEST_SLOTS, 2), np.int64)
        self._nanoseconds: Amounts = np.zeros(0, np.int64)  # by slot; empty if none was ever measured

    def add(self, hashes: Hashes, amounts: Amounts | int, start: int, limit: int) -> int:
        if not isinstance(amounts, int) and not len(self._nanoseconds):
            self._nanoseconds = np.zeros(len(self._slots), np.int64)
        while True:
            room = min(limit, len(self._slots) // 2) - self._keys
            start, used = self._fill(hashes, amounts, start, room)
            self._keys += used
            if start == len(hashes) or self._keys == limit:
                return start
            self._grow()

    def __len__(self) -> int:
        return self._keys

    def rows(self) -> npt.NDArray[np.int64]:
        return self._slots[:, 1]

    def entries(self, least: int = 1) -> tuple[Hashes, Amounts]:
        used = np.flatnonzero(self._slots[:, 1] >= least)
        slots = self._slots[used]
        amounts = np.zeros((len(used), 2), np.int64)
        amounts[:, 0] = slots[:, 1]
        if len(self._nanoseconds):
            amounts[:, 1] = self._nanoseconds[used]
        return slots[:, 0].copy(), amounts

    def clear(self) -> None:
        if _FEWEST_SLOTS < len(self._slots) > 8 * self._keys:
            self._create_slots(len(self._slots) // 2, is_measured=len(self._nanoseconds) > 0)
        else:
            self._slots[:] = 0
            self._nanoseconds[:] = 0
        self._keys = 0

    def _fill(self, hashes: Hashes, amounts: Amounts | int, start: int, room: int) -> tuple[int, int]:
        rows = as_read_only(hashes)
        if isinstance(amounts, int):
            stop, used = self._count_rows(rows, amounts, start, room, self._slots)
        else:
            stop, used = self._add_amounts(rows, as_read_only(amounts), start, room, self._slots, self._nanoseconds)
        return int(stop), int(used)

    def _grow(self) -> None:
        hashes, amounts = self.entries()
        is_measured = len(self._nanoseconds) > 0
        self._create_slots(2 * len(self._slots), is_measured=True)
        self._fill(hashes, amounts, 0, len(hashes))
        if not is_measured:
            self._nanoseconds = self._nanoseconds[:0]

    def _create_slots(self, count: int, *, is_measured: bool) -> None:
        self._slots = np.zeros((count, 2), np.int64)
        self._nanoseconds = np.zeros(count if is_measured else 0, np.int64)


class _SortedTable:
    """The same without a compiler: ascending hashes, some ten times slower."""

    def __init__(self) -> None:
        self._hashes: Hashes = np.zeros(0, np.int64)
        self._amounts: Amounts = np.zeros((0, 2), np.int64)

    def add(self, hashes: Hashes, amounts: Amounts | int, start: int, limit: int) -> int:
        room = limit - len(self._hashes)
        stop = len(hashes) if len(hashes) - start <= room else self._find_overflow(hashes, start, room)
        given = np.tile(np.array([amounts, 0], np.int64), (len(hashes), 1)) if isinstance(amounts, int) else amounts
        merged, places = np.unique(np.concatenate([self._hashes, hashes[start:stop]]), return_inverse=True)
        sums = np.zeros((len(merged), 2), np.int64)
        np.add.at(sums, places, np.concatenate([self._amounts, given[start:stop]]))
        self._hashes, self._amounts = merged, sums
        return stop

    def __len__(self) -> int:
        return len(self._hashes)

    def rows(self) -> npt.NDArray[np.int64]:
        return self._amounts[:, 0]

    def entries(self, least: int = 1) -> tuple[Hashes, Amounts]:
        chosen = self._amounts[:, 0] >= least
        return self._hashes[chosen], self._amounts[chosen]

    def clear(self) -> None:
        self._hashes, self._amounts = self._hashes[:0], self._amounts[:0]

    def _find_overflow(self, hashes: Hashes, start: int, room: int) -> int:
        """Return the row of the first key for which there is no room; the number of rows if there is none."""
        different, first = np.unique(hashes[start:], return_index=True)
        new = np.sort(first[~np.isin(different, self._hashes)])
        return start + int(new[room]) if len(new) > room else len(hashes)


def _create_table() -> _Table:
    loops = load_compiled("compiled_key_counter", "count_rows"), load_compiled("compiled_key_counter", "add_amounts")
    return _SortedTable() if None in loops else _SlotTable(*loops)


def choose_rows(rows: int, stride: int, seed: int) -> npt.NDArray[np.int64]:
    """Return one of every `stride` rows, ascending, each row with the same probability; the seed is not 0."""
    choose = load_compiled("compiled_key_counter", "choose_rows")
    if choose is None:
        firsts = np.arange(0, rows, stride)
        chosen = firsts + np.random.default_rng(seed).integers(0, stride, len(firsts))
    else:
        chosen = np.empty(-(-rows // stride), np.int64)
        choose(np.uint64(seed), stride, chosen)
    return chosen[: np.searchsorted(chosen, rows)]


def load() -> None:
    """Load the compiled loops, or compile them into their cache."""
    counter = KeyCounter(1)
    counter.add(np.zeros(1, np.int64))
    counter.add_groups(np.zeros(1, np.int64), np.ones((1, 2), np.int64))
    choose_rows(1, 2, 1)
