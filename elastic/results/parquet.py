"""Results as a folder of Parquet files, one for every batch with rows; each result is in the folder exactly once.

A file is named after its batch and written atomically, so a repeated batch replaces its own file. The file names give
the position after a restart. Batches without rows have no file; so that the position never falls behind the retention
of the log, a marker that readers of the folder skip (`_committed.json`) records the position every so often. It also
records the identity of the results, because another job, or the same job started from scratch, numbers other batches.
"""

import json
import re
from contextlib import suppress
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

import storage
from elastic.results.errors import ForeignFolder
from storage.errors import AlreadyExists, ObjectMissing
from storage.stores.protocol import Store

_MARKER = "_committed.json"
_FILE = re.compile(r"batch-(\d{12,})\.parquet")
_MARK_EVERY = 100  # batches without rows: few puts, and far below the retention


class ParquetSink:
    """Writes to a folder of any store, such as `file:///results` or `s3://bucket/results`."""

    needs_log: ClassVar = True
    needs_writer: ClassVar = True

    def __init__(self, folder: str | Store, **store_settings: Any) -> None:
        if isinstance(folder, str) and folder.startswith("file:"):
            store_settings = {
                "shared": True,
                **store_settings,
            }  # for other readers: apply the umask
        self._store = storage.open(folder, **store_settings) if isinstance(folder, str) else folder
        self._results = ""
        self._recorded = 0  # first batch whose delivery neither the marker nor a file name records
        self._next = 0

    def open(self, results: str) -> int | None:
        """Claim the folder; raises `ForeignFolder` if it holds other results."""
        self._results = results
        files = self._list_batches()
        self._recorded = self._claim(bool(files))
        self._next = max([self._recorded, *(batch + 1 for batch in files)])
        return self._next or None

    def deliver(self, batch: int, rows: pa.Table) -> None:
        if rows.num_rows:
            sink = pa.BufferOutputStream()
            pq.write_table(rows, sink, compression="zstd")
            self._store.put(f"batch-{batch:012d}.parquet", memoryview(sink.getvalue()))
            self._recorded = batch + 1  # the file name records it
        self._next = batch + 1
        if self._next - self._recorded >= _MARK_EVERY:
            self._write_marker()

    def close(self) -> None:
        if self._next > self._recorded:
            self._write_marker()
        self._store.close()

    def __repr__(self) -> str:
        return f"ParquetSink({self._store.url!r}, next={self._next})"

    def _list_batches(self) -> list[int]:
        found = (_FILE.fullmatch(entry.key) for entry in self._store.list("batch-"))
        return [int(name[1]) for name in found if name]

    def _claim(self, has_files: bool) -> int:
        """Return the position in the marker; it is written before any file, so files without it are not ours."""
        try:
            marker = self._read_marker()
        except ObjectMissing:
            if has_files:
                raise ForeignFolder(self._store.url, f"it holds Parquet files but no {_MARKER}") from None
            with suppress(AlreadyExists):  # another writer of the same job was first
                self._store.put_if_absent(_MARKER, self._encode_marker(0))
            marker = self._read_marker()
        if marker.get("results") != self._results:
            raise ForeignFolder(self._store.url, f"it holds results {marker.get('results')}, not {self._results}")
        return int(marker["next"])

    def _read_marker(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(bytes(self._store.get(_MARKER)))
        return found

    def _write_marker(self) -> None:
        self._store.put(_MARKER, self._encode_marker(self._next))
        self._recorded = self._next

    def _encode_marker(self, next_batch: int) -> bytes:
        return json.dumps({"results": self._results, "next": next_batch}).encode()
