"""What the reporter gives out, put together again: the maximal patterns after every batch."""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from examples.frequent_patterns.reporter import VANISHED

Patterns = Mapping[str, int]


class Change(NamedTuple):
    """One batch of news, and the patterns with their counts after it."""

    batch: int
    patterns: Patterns
    appeared: int
    vanished: int


class Board:
    """A sink that holds the current patterns of a job, and shows every batch to whoever `watches`.

    Batches come in order, each once. It starts empty and is told everything that the store still has, so after a
    restart it is right as long as no results have expired (`retain_result_batches`). Safe to read from any thread.
    """

    logs: ClassVar = True
    follows: ClassVar = True

    def __init__(self, watches: Callable[[Change], None] | None = None) -> None:
        self._watches = watches
        self._last = Change(-1, {}, 0, 0)
        self._lock = threading.Lock()

    @property
    def last(self) -> Change:
        """The newest batch."""
        with self._lock:
            return self._last

    def open(self, results: str) -> int | None:  # noqa: ARG002 - the protocol's
        return self.last.batch + 1 if self.last.batch >= 0 else None

    def deliver(self, batch: int, rows: pa.Table) -> None:
        before = self.last
        if batch <= before.batch:
            return
        news = rows.to_pylist() if "pattern" in rows.column_names else []
        patterns = updated(before.patterns, news)
        appeared, vanished = patterns.keys() - before.patterns.keys(), before.patterns.keys() - patterns.keys()
        change = Change(batch, patterns, len(appeared), len(vanished))
        with self._lock:
            self._last = change
        if self._watches is not None:
            self._watches(change)

    def close(self) -> None:
        """What it holds stays readable."""


def updated(patterns: Patterns, news: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The patterns after one batch of what the reporter gives out."""
    after = dict(patterns)
    for row in news:
        if row["change"] == VANISHED:
            del after[row["pattern"]]
        else:
            after[row["pattern"]] = row["texts"]
    return after
