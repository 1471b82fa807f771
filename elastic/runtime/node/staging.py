"""Rows that senders brought before their batch was committed: a cache of the log, where everything is."""

import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa

from elastic.runtime.wire import Refused
from storage.state import LogRef


class _Staged(NamedTuple):
    epoch: int
    batch: int
    slices: dict[int, pa.Table]
    size: int


class Staging:
    """Staged slices by log object, within a limit of bytes. Safe to use from many threads.

    An entry holds the rows of all units that the node had in the entry's epoch, and says nothing about another epoch.
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
        self.put(ref, header["epoch"], slices, table.nbytes)

    def put(self, ref: LogRef, epoch: int, slices: dict[int, pa.Table], size: int) -> None:
        with self._lock:
            if ref.batch <= self._done:
                raise Refused(f"batch {ref.batch} is over")
            if self.size + size > self._limit:
                raise Refused(f"{self._limit} bytes are staged already")
            if ref.nonce not in self._entries:
                self._entries[ref.nonce] = _Staged(epoch, ref.batch, slices, size)
                self.size += size

    def rows(self, ref: LogRef, epoch: int, slots: Iterable[int]) -> dict[int, pa.Table] | None:
        """The slices of these units; None if they are not staged."""
        with self._lock:
            entry = self._entries.get(ref.nonce)
        if entry is None or entry.epoch != epoch:
            return None
        return {slot: entry.slices[slot] for slot in slots if slot in entry.slices}

    def forget(self, through: int) -> None:
        """Nothing of batches up to this one is needed any more, committed or not."""
        with self._lock:
            self._done = max(self._done, through)
            for nonce in [nonce for nonce, entry in self._entries.items() if entry.batch <= through]:
                self.size -= self._entries.pop(nonce).size
