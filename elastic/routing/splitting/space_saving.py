"""SpaceSaving: which keys have the most rows, with a fixed number of counters.

`frequent_items_sketch` of the package datasketches does the same for Python objects, one call per row; here the answer
is needed between two rows of a compiled loop, and for hashes in arrays. `elastic.routing.key_counter` counts whole
batches and may forget a key; a head key must keep its counter.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from elastic.errors import InvalidJob
from elastic.routing.compiled_loops import as_read_only, load_compiled
from elastic.routing.splitting.targets import Hashes, Numbers

if TYPE_CHECKING:
    from elastic.routing.splitting.compiled_heads import SketchArrays

_SLOTS_PER_COUNTER = 4


class KeyEstimates(NamedTuple):
    """Keys with counters, the heaviest first: a key has at most `counts` rows, and at least `counts - errors`."""

    hashes: npt.NDArray[np.uint64]
    counts: Numbers
    errors: Numbers


class SpaceSaving:
    """The heaviest keys of a stream, by the hash of a key, in `capacity` counters (Metwally et al., ICDT 2005).

    A key without a counter takes over the smallest one, the first of equals, with its count as the error.

    Invariant: `counts - errors <= rows of a key <= counts`, errors are at most `rows / capacity` (one more after
    `halve`), and a key with more rows than that has a counter. Not thread-safe.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise InvalidJob(f"cannot count keys with {capacity} counters. Use at least one.")
        self._hashes = np.zeros(capacity, np.uint64)
        self._counts = np.zeros(capacity, np.int64)
        self._errors = np.zeros(capacity, np.int64)
        self._used = 0
        self._rows = 0
        self._arrays: SketchArrays | None = None  # while it exists, its state replaces `_used` and `_rows`

    @property
    def capacity(self) -> int:
        return len(self._hashes)

    @property
    def rows(self) -> int:
        """The rows counted so far."""
        return self._rows if self._arrays is None else int(self._arrays.state[1])

    def add(self, hashes: Hashes) -> None:
        """Count rows one by one; without numba as one batch, which gives the same bounds and other errors."""
        count_rows = load_compiled("splitting.compiled_heads", "count_rows")
        if count_rows is None:
            self.add_batch(hashes)
        else:
            count_rows(as_read_only(hashes.view(np.uint64)), self.open_arrays(), np.empty(len(hashes), np.int64))

    def add_batch(self, hashes: Hashes) -> None:
        """Count rows as one batch, with NumPy.

        The batch is a summary without errors, and summaries are merged: a key that has no counter may have had as many
        rows as the smallest counter says. Of all keys the heaviest stay.
        """
        self._close_arrays()
        different, rows = np.unique(hashes.view(np.uint64), return_counts=True)
        is_full = self._used == self.capacity
        missed = int(self._counts.min()) if is_full else 0
        known = self._hashes[: self._used]
        order = np.argsort(known)
        places = np.minimum(np.searchsorted(known, different, sorter=order), max(self._used - 1, 0))
        at = order[places] if self._used else np.zeros(len(different), np.int64)
        is_known = known[at] == different if self._used else np.zeros(len(different), np.bool_)
        self._counts[at[is_known]] += rows[is_known]
        new = rows[~is_known] + missed
        counts = np.concatenate([self._counts[: self._used], new])
        kept = np.argsort(-counts, kind="stable")[: self.capacity]
        self._used = len(kept)
        self._rows += len(hashes)
        self._hashes[: self._used] = np.concatenate([known, different[~is_known]])[kept]
        self._errors[: self._used] = np.concatenate([self._errors[: len(known)], np.full(len(new), missed)])[kept]
        self._counts[: self._used] = counts[kept]

    def heaviest(self, least: float = 0) -> KeyEstimates:
        """Return the keys that may have at least `least` rows, the heaviest first."""
        self._close_arrays()
        counts = self._counts[: self._used]
        order = np.argsort(-counts, kind="stable")
        order = order[: np.count_nonzero(counts >= least)]
        return KeyEstimates(self._hashes[order], counts[order], self._errors[order])

    def halve(self) -> None:
        """Count all rows so far half, so that the sketch forgets keys that are no longer heavy.

        Rounded such that the bounds hold for half of the rows.
        """
        self._close_arrays()
        used = slice(self._used)
        self._counts[used] = (self._counts[used] + 1) // 2
        self._errors[used] = (self._errors[used] + 2) // 2
        self._rows = (self._rows + 1) // 2

    def open_arrays(self) -> "SketchArrays":
        """Return the arrays that compiled loops change; they are the state of the sketch until it is read."""
        from elastic.routing.splitting.compiled_heads import SketchArrays, fill_slots

        if self._arrays is None:
            state = np.array([self._used, self._rows, -1, 0], np.int64)
            slots = np.zeros(1 << (_SLOTS_PER_COUNTER * self.capacity - 1).bit_length(), np.int32)
            self._arrays = SketchArrays(self._hashes, self._counts, self._errors, slots, state)
            fill_slots(self._arrays)
        return self._arrays

    def _close_arrays(self) -> None:
        if self._arrays is not None:
            self._used, self._rows = self._arrays.state[:2].tolist()
            self._arrays = None
