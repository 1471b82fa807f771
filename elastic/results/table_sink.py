"""Base of sinks that append to a table: one commit per batch, and a position that the table records."""

import logging
from typing import Any, ClassVar

import pyarrow as pa

from elastic.results.errors import SinkUnavailable
from elastic.results.objects import ORIGIN

_MARK_EVERY = 100  # batches without rows: few commits, and far below the retention of the log

_logger = logging.getLogger(__name__)


class TableSink:
    """Appends each batch of the results in one commit, together with the position of the sink.

    A subclass loads the newest version of the table and the position in it, and commits a batch on that version, so
    that of two writers only one succeeds.
    """

    needs_log: ClassVar = True
    needs_writer: ClassVar = True

    _table: Any = None  # None: it does not exist yet

    def __init__(self) -> None:
        self._results = ""
        self._next = 0  # first batch that the sink does not have
        self._recorded = 0  # the same as the table says; batches without rows may be in between

    def open(self, results: str) -> int | None:
        self._results = results
        self._refresh()
        return self._next or None

    def deliver(self, batch: int, rows: pa.Table) -> None:
        self._refresh()
        if batch < self._next:
            return
        if rows.num_rows or (self._table is not None and batch + 1 - self._recorded >= _MARK_EVERY):
            self._commit(batch, rows)
            self._recorded = batch + 1
        self._next = batch + 1

    def close(self) -> None:
        if self._next > self._recorded and self._table is not None:
            try:
                self._commit(self._next - 1, ORIGIN.empty_table())
                self._recorded = self._next
            except SinkUnavailable as cause:
                _logger.info("%r closes with its position behind some batches without rows: %s", self, cause)

    def _refresh(self) -> None:
        """Load the newest version of the table, if it exists."""
        recorded = self._load()
        if recorded is not None:
            self._recorded = recorded
            self._next = max(self._next, recorded)

    def _load(self) -> int | None:
        """Load the newest version of the table and return the position in it; None if there is no table."""
        raise NotImplementedError

    def _commit(self, batch: int, rows: pa.Table) -> None:
        """Append a batch to the version that was loaded; raises `SinkUnavailable` if it has to be delivered again."""
        raise NotImplementedError
