"""The input log: the rows of every batch, durable before the batch is committed, readable unit by unit.

One object holds what one source partition sent in one round of one batch, with one part per unit. A partition that
sends much is logged in several objects, its chunks, so that no process has to hold it all. Every append creates a new
object under its own key, even if the same rows were appended before (a retried Spark task, or two attempts at once):
nothing is overwritten. The commit of the batch names the refs of its objects; readers ignore all others, and the
collector deletes them with their batch.

The node that emits records to a later stage logs them in the same way, with the number of the round. What is no rows
at all is logged as bytes: a table for them would take 600 bytes more.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from storage.codec import Header, Secret, fetch_header, pack, unpack_part
from storage.errors import InvalidStorageInput
from storage.state.paths import Paths
from storage.state.refs import LogRef
from storage.stores.protocol import Store

# The form in which readers get bytes that were logged: a table with one value.
LOGGED_BYTES = pa.schema([("bytes", pa.large_binary())], metadata={b"storage.log": b"bytes"})

# What an object takes besides its parts, and a part besides its own bytes: an entry of the header, and alignment.
LOG_OBJECT_BYTES, LOG_PART_BYTES = 192, 236

_SMALL_GAP_BYTES = 16 * 1024  # reading over it costs less than another request


class InputLog:
    """The input log of one operator; safe to use from many threads and processes."""

    def __init__(self, store: Store, secret: Secret, operator: str, *, compression: str = "auto") -> None:
        self._store = store
        self._secret = secret
        self._paths = Paths(operator)
        self._compression = compression

    def append(
        self,
        batch: int,
        source_partition: int,
        slices: Mapping[int, pa.Table | pa.RecordBatch | bytes],
        *,
        round: int = 0,  # noqa: A002 - the word of the domain
        chunk: int = 0,
        meta: Mapping[str, Any] | None = None,
    ) -> LogRef:
        """Make rows or bytes durable, by unit number; readers see them when the commit of the batch names the ref."""
        return self.append_as(LogRef.new(batch, round, source_partition, chunk), slices, meta=meta)

    def append_as(
        self,
        ref: LogRef,
        slices: Mapping[int, pa.Table | pa.RecordBatch | bytes],
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> LogRef:
        """Make the rows durable under a ref that other processes know already; safe to repeat with the same rows."""
        found = {unit: rows if isinstance(rows, bytes) else _to_table(rows) for unit, rows in slices.items()}
        parts = {str(unit): found[unit] for unit in sorted(found) if len(found[unit])}
        key = self._paths.log(ref)
        data = pack(parts, key=key, secret=self._secret, compression=self._compression, meta=meta)
        self._store.put(key, data)
        return replace(ref, size=len(data))

    def read(self, ref: LogRef, units: Iterable[int]) -> dict[int, pa.Table]:
        """Return the rows of some units by number, without units that have none; fetches only the header and those.

        Bytes come as a table of `LOGGED_BYTES`.
        """
        key = self._paths.log(ref)
        prefix, header = fetch_header(self._store, key, self._secret)
        wanted = [unit for unit in sorted(set(units)) if str(unit) in header.parts]
        found = {}
        for group in _group_neighbours(header, wanted):
            start, stop = header.parts[str(group[0])].offset, header.parts[str(group[-1])].stop
            data = prefix[start:stop] if stop <= len(prefix) else self._store.get_range(key, start, stop)
            for unit in group:
                part = header.parts[str(unit)]
                value = unpack_part(header, part.name, data[part.offset - start : part.stop - start])
                found[unit] = _wrap(value) if isinstance(value, bytes) else value
        return found


def _wrap(data: bytes) -> pa.Table:
    return pa.table([pa.array([data], pa.large_binary())], schema=LOGGED_BYTES)


def _to_table(rows: pa.Table | pa.RecordBatch) -> pa.Table:
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if not isinstance(rows, pa.Table):
        raise InvalidStorageInput(
            f"rows of type {type(rows).__name__} cannot be logged. Give Arrow tables, batches, or bytes."
        )
    return rows


def _group_neighbours(header: Header, units: list[int]) -> list[list[int]]:
    """Group units whose parts are so close to each other that one request for all is cheaper."""
    groups: list[list[int]] = []
    for unit in units:
        part = header.parts[str(unit)]
        if groups and part.offset - header.parts[str(groups[-1][-1])].stop <= _SMALL_GAP_BYTES:
            groups[-1].append(unit)
        else:
            groups.append([unit])
    return groups
