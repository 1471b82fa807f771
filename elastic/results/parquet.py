"""Results as a folder of Parquet files, one for every batch that has rows; each result is in it once, always.

A file is named by its batch and put whole, so a batch that comes again replaces its own file. Where to go on is read
from the names. Batches without rows have no file; so that a long quiet time does not fall out of the log's retention, a
marker that readers skip (`_committed.json`) says now and then how far the sink is. It also says whose results these
are: the numbers of another job, or of the same one started anew, mean other batches.
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
_MARK_EVERY = 100  # batches without rows: few puts, and far below any retention


class ParquetSink:
    """Writes to a folder of any store, such as `file:///results` or `s3://bucket/results`."""

    logs: ClassVar = True
    follows: ClassVar = True

    def __init__(self, folder: str | Store, **store_settings: Any) -> None:
        if isinstance(folder, str) and folder.startswith("file:"):
            store_settings = {"shared": True, **store_settings}  # readers are other programs: the umask lets them in
        self._store = storage.open(folder, **store_settings) if isinstance(folder, str) else folder
        self._results = ""
        self._marked = 0  # the first batch that the marker does not cover
        self._next = 0

    def open(self, results: str) -> int | None:
        """Claims the folder; `ForeignFolder` if it is somebody else's."""
        self._results = results
        files = self._files()
        self._marked = self._claim(bool(files))
        self._next = max([self._marked, *(batch + 1 for batch in files)])
        return self._next or None

    def deliver(self, batch: int, rows: pa.Table) -> None:
        if rows.num_rows:
            sink = pa.BufferOutputStream()
            pq.write_table(rows, sink, compression="zstd")
            self._store.put(f"batch-{batch:012d}.parquet", memoryview(sink.getvalue()))
            self._marked = batch + 1  # the name of the file says it
        self._next = batch + 1
        if self._next - self._marked >= _MARK_EVERY:
            self._mark()

    def close(self) -> None:
        if self._next > self._marked:
            self._mark()
        self._store.close()

    def _files(self) -> list[int]:
        found = (_FILE.fullmatch(entry.key) for entry in self._store.list("batch-"))
        return [int(name[1]) for name in found if name]

    def _claim(self, has_files: bool) -> int:
        """What the marker says; it is written before the first file, so files without it are not ours."""
        try:
            marker = self._read_marker()
        except ObjectMissing:
            if has_files:
                raise ForeignFolder(self._store.url, f"it has results, and no {_MARKER}") from None
            with suppress(AlreadyExists):  # by another follower of the same job, if all is well
                self._store.put_if_absent(_MARKER, self._marker(0))
            marker = self._read_marker()
        if marker.get("results") != self._results:
            raise ForeignFolder(self._store.url, f"it holds results {marker.get('results')}, not {self._results}")
        return int(marker["next"])

    def _read_marker(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(bytes(self._store.get(_MARKER).data))
        return found

    def _mark(self) -> None:
        self._store.put(_MARKER, self._marker(self._next))
        self._marked = self._next

    def _marker(self, next_batch: int) -> bytes:
        return json.dumps({"results": self._results, "next": next_batch}).encode()
