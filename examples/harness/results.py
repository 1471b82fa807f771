"""A sink that keeps results until they are checked, and notes when they were published."""

import threading
import time
from typing import ClassVar

import pyarrow as pa

from examples.harness.application import Application


class Results:
    """Keeps the results of a job since the last `take`, and the publication time of the batches of its source.

    The engine may commit batches without rows of its own, so its numbers may differ from those of the source.
    Thread-safe.
    """

    needs_log: ClassVar = True
    needs_writer: ClassVar = True

    def __init__(self, application: Application) -> None:
        self._application = application
        self._schema = application.results
        self._tables: list[pa.Table] = []
        self._published: dict[int, float] = {}
        self._last_batch = -1
        self._lock = threading.Lock()

    @property
    def last_batch(self) -> int:
        """The newest batch of the engine that was delivered; -1 before the first."""
        with self._lock:
            return self._last_batch

    @property
    def published(self) -> dict[int, float]:
        """When batches of the source were delivered, in seconds since 1970; those without results may be missing."""
        with self._lock:
            return dict(self._published)

    def take(self) -> pa.Table:
        """Return the results since the last call, in order of batches."""
        with self._lock:
            taken, self._tables = self._tables, []
        return pa.concat_tables([self._schema.empty_table(), *taken])

    def open(self, results: str) -> int | None:  # noqa: ARG002 - the protocol's
        return self.last_batch + 1 or None

    def deliver(self, batch: int, rows: pa.Table) -> None:
        with self._lock:
            if batch <= self._last_batch:
                return
            self._last_batch = batch
            if rows.num_rows:
                self._tables.append(rows.select(self._schema.names).cast(self._schema))
                known = max(self._published, default=-1)
                self._published[self._application.source_batch(self._tables[-1], known)] = time.time()

    def close(self) -> None:
        """Do nothing: the results stay readable."""
