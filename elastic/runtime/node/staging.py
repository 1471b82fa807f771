"""Rows that senders brought before their batch was committed: a cache of the log, where everything is."""

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from elastic.runtime.wire import Refused
from storage.state import LogRef


class _Staged(NamedTuple):
    batch: int
    covers: Sequence[Sequence[int]]  # runs of slots, [first, last + 1), whose rows are all here
    slices: dict[int, pa.Table]
    size: int

    def has(self, slot: int) -> bool:
        return any(start <= slot < stop for start, stop in self.covers)


class Staging:
    """Staged slices by log object, within a limit of bytes. Safe to use from many threads.

    An entry says which slots it covers: of these it has all rows, perhaps none; of others it knows nothing.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._entries: dict[str, _Staged] = {}
        self._lock = threading.Lock()
        self._done = -1  # newest batch that needs nothing more
        self.size = 0

    def upload(self, header: dict[str, Any], table: pa.Table) -> None:
        """Handler of uploads; the rows are sorted by slot, `offsets` says where each of `slots` ends."""
        ref = LogRef.from_json(header["ref"])
        slices, start = {}, 0
        for slot, stop in zip(header["slots"], header["offsets"], strict=True):
            slices[slot] = table.slice(start, stop - start)
            start = stop
        self.put(ref, _Staged(ref.batch, header["covers"], slices, table.nbytes))

    def put(self, ref: LogRef, entry: _Staged) -> None:
        with self._lock:
            if ref.batch <= self._done:
                raise Refused(f"batch {ref.batch} is over")
            if self.size + entry.size > self._limit:
                raise Refused(f"{self._limit} bytes are staged already")
            if ref.nonce not in self._entries:
                self._entries[ref.nonce] = entry
                self.size += entry.size

    def covered(self, logs: Sequence[LogRef], slots: Sequence[int]) -> tuple[int, ...]:
        """Those of the slots whose rows in all these log objects are here."""
        with self._lock:
            entries = [self._entries.get(ref.nonce) for ref in logs]
        return tuple(slot for slot in slots if all(entry is not None and entry.has(slot) for entry in entries))

    def rows(self, logs: Sequence[LogRef], slots: Sequence[int]) -> dict[int, list[pa.Table]]:
        """The slices of covered slots, in the order of the log."""
        with self._lock:
            entries = [self._entries[ref.nonce] for ref in logs]
        found: dict[int, list[pa.Table]] = {}
        for entry in entries:
            for slot in slots:
                if slot in entry.slices:
                    found.setdefault(slot, []).append(entry.slices[slot])
        return found

    def forget(self, through: int) -> None:
        """Nothing of batches up to this one is needed any more, committed or not."""
        with self._lock:
            self._done = max(self._done, through)
            for nonce in [nonce for nonce, entry in self._entries.items() if entry.batch <= through]:
                self.size -= self._entries.pop(nonce).size
