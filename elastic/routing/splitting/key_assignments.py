"""Keys that stay where they were first sent: power of two choices without splitting, and greedy assignment."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elastic.routing.compiled_loops import as_read_only, load_compiled
from elastic.routing.splitting import reference
from elastic.routing.splitting.targets import Hashes, Numbers, Targets

_FEWEST_SLOTS = 1 << 10


class KeyFrequencies(NamedTuple):
    """The rows of every key of a stream; each hash occurs once."""

    hashes: npt.NDArray[np.uint64]
    rows: Numbers

    @classmethod
    def of(cls, hashes: Hashes) -> "KeyFrequencies":
        return cls(*np.unique(hashes.view(np.uint64), return_counts=True))


class KeyAssignments:
    """The target of every key seen so far, as a hash table that compiled loops fill; without numba a dict.

    A new key gets the less loaded of its two choices or, if `is_greedy`, the least loaded of all workers. Costs one
    entry per key, which is why paper 001 splits keys instead.
    """

    def __init__(self, targets: Targets, *, is_greedy: bool) -> None:
        self._targets = targets
        self._is_greedy = is_greedy
        self._positions: dict[int, int] = {}
        self._keys = 0
        self._slots = np.zeros(_FEWEST_SLOTS, np.uint64)
        self._slot_positions = np.full(_FEWEST_SLOTS, -1, np.int64)

    def __len__(self) -> int:
        return max(self._keys, len(self._positions))

    def route(self, hashes: Hashes, loads: Numbers) -> Numbers:
        """Return the target of each row, and add the rows to the loads of workers."""
        assign_rows = load_compiled("splitting.compiled_assignments", "assign_rows")
        enter = load_compiled("splitting.compiled_assignments", "enter_keys")
        words = hashes.view(np.uint64)
        if assign_rows is None or enter is None:
            routed = reference.route_unsplit(words, self._targets, loads, self._positions, is_greedy=self._is_greedy)
            return np.array(routed, np.int64)
        chosen = np.empty(len(hashes), np.int64)
        row = 0
        while row < len(hashes):
            room = len(self._slots) // 2 - self._keys
            found: Any = assign_rows(
                as_read_only(words),
                row,
                room,
                self._is_greedy,
                np.uint64(self._targets.seed),
                self._targets.arrays,
                loads,
                self._slots,
                self._slot_positions,
                chosen,
            )
            row, used = int(found[0]), int(found[1])
            self._keys += used
            if row < len(hashes):
                self._grow(enter)
        return chosen

    def assign_all(self, frequencies: KeyFrequencies) -> None:
        """Assign keys that are not known yet, the heaviest first, each to the worker with the fewest rows so far."""
        order = np.argsort(-frequencies.rows, kind="stable")
        hashes, rows = frequencies.hashes[order], frequencies.rows[order]
        assign = load_compiled("splitting.compiled_assignments", "assign_in_order") or reference.assign_in_order
        workers = np.array(assign(rows, self._targets.workers), np.int64)
        positions = np.argsort(self._targets.arrays.targets)[self._targets.of_worker(hashes, workers)]
        enter = load_compiled("splitting.compiled_assignments", "enter_keys")
        if enter is None:
            self._positions.update(zip(hashes.tolist(), positions.tolist(), strict=True))
            return
        while 2 * len(hashes) > len(self._slots):
            self._grow(enter)
        enter(hashes, positions, np.uint64(self._targets.seed), self._slots, self._slot_positions)
        self._keys += len(hashes)

    def _grow(self, enter: Callable[..., None]) -> None:
        used = self._slot_positions >= 0
        hashes, positions = self._slots[used], self._slot_positions[used]
        self._slots = np.zeros(2 * len(self._slots), np.uint64)
        self._slot_positions = np.full(len(self._slots), -1, np.int64)
        enter(hashes, positions, np.uint64(self._targets.seed), self._slots, self._slot_positions)
