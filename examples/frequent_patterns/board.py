"""A sink that reconstructs the maximal patterns after every batch from the reporter's changes."""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from examples.frequent_patterns.reporter import VANISHED

Patterns = Mapping[str, int]


class Change(NamedTuple):
    """The patterns with their counts after a batch, and the number of changes in it."""

    batch: int
    patterns: Patterns
    appeared: int
    vanished: int


class Board:
    """A sink that holds the current patterns of a job, and calls `on_change` with every batch.

    It starts empty and gets all results that the store still has, so after a restart it is correct unless results have
    expired (`retain_result_batches`). Thread-safe.
    """

    needs_log: ClassVar = True
    needs_writer: ClassVar = True

    def __init__(self, on_change: Callable[[Change], None] | None = None) -> None:
        self._on_change = on_change
        self._last = Change(-1, {}, 0, 0)
        self._lock = threading.Lock()

    @property
    def last(self) -> Change:
        """The patterns after the newest batch."""
        with self._lock:
            return self._last

    def open(self, results: str) -> int | None:  # noqa: ARG002 - the protocol's
        return self.last.batch + 1 if self.last.batch >= 0 else None

    def deliver(self, batch: int, rows: pa.Table) -> None:
        before = self.last
        if batch <= before.batch:
            return
        changes = rows.to_pylist() if "pattern" in rows.column_names else []
        patterns = update(before.patterns, changes)
        appeared, vanished = patterns.keys() - before.patterns.keys(), before.patterns.keys() - patterns.keys()
        change = Change(batch, patterns, len(appeared), len(vanished))
        with self._lock:
            self._last = change
        if self._on_change is not None:
            self._on_change(change)

    def close(self) -> None:
        """Do nothing: the patterns stay readable."""


def update(patterns: Patterns, changes: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Apply one batch of the reporter's changes to the patterns."""
    after = dict(patterns)
    for row in changes:
        if row["change"] == VANISHED:
            del after[row["pattern"]]
        else:
            after[row["pattern"]] = row["texts"]
    return after
