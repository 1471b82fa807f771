"""Where results go besides the log; all kinds by name in `SINKS`."""

import inspect
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from elastic.errors import InvalidSetting
from elastic.results.objects import PLACE
from elastic.results.parquet import ParquetSink

_MEMORY_ROWS = 1_000_000  # enough to look at, and some hundred megabytes at most for rows of a usual size


class Sink(Protocol):
    """Takes the results of one stage, batch by batch, in order.

    A batch may come again after a crash or a doubt; whatever a sink makes of it, it must be there once.
    """

    @property
    def logs(self) -> bool:
        """Whether nodes write results to the log at all."""
        ...

    @property
    def follows(self) -> bool:
        """Whether a `Follower` must feed it from the log."""
        ...

    def open(self, results: str) -> int | None:
        """Get ready for the results of that identity: the first batch that is not there yet, None for the oldest."""
        ...

    def deliver(self, batch: int, rows: pa.Table) -> None:
        """Take a batch; when this returns, it is as durable as this sink makes things."""
        ...

    def close(self) -> None:
        """No more will come."""
        ...


class _Nowhere:
    """Takes nothing, because nobody asks it to."""

    logs: ClassVar = False
    follows: ClassVar = False

    def open(self, results: str) -> int | None:  # noqa: ARG002 - the protocol's
        return None

    def deliver(self, batch: int, rows: pa.Table) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""


class NoSink(_Nowhere):
    """Results are dropped by the nodes; the job is there for its state."""


class StoreSink(_Nowhere):
    """Results stay in the log, for who reads it."""

    logs: ClassVar = True


class MemorySink:
    """The newest batches, in this process; older ones make room when there are more than `max_rows`.

    The newest batch stays even if it alone is larger. Safe to read from any thread.
    """

    logs: ClassVar = True
    follows: ClassVar = True

    def __init__(self, max_rows: int = _MEMORY_ROWS) -> None:
        if max_rows < 1:
            raise InvalidSetting("max_rows", max_rows, "there must be room for a row")
        self.dropped_rows = 0
        self._max_rows = max_rows
        self._batches: deque[tuple[int, pa.Table]] = deque()
        self._lock = threading.Lock()

    def open(self, results: str) -> int | None:  # noqa: ARG002 - it starts empty, whatever the results are
        with self._lock:
            return self._batches[-1][0] + 1 if self._batches else None

    def deliver(self, batch: int, rows: pa.Table) -> None:
        with self._lock:
            if self._batches and batch <= self._batches[-1][0]:
                return
            self._batches.append((batch, rows))
            while len(self._batches) > 1 and self._rows() > self._max_rows:
                self.dropped_rows += self._batches.popleft()[1].num_rows

    def table(self) -> pa.Table:
        """All rows that are kept, in order."""
        with self._lock:
            tables = [rows for _, rows in self._batches if rows.num_rows]
        return pa.concat_tables(tables, promote_options="permissive") if tables else PLACE.empty_table()

    def close(self) -> None:
        """What it holds stays readable."""

    def _rows(self) -> int:
        return sum(rows.num_rows for _, rows in self._batches)


SINKS: Mapping[str, Callable[..., Sink]] = {
    "none": NoSink,
    "store": StoreSink,
    "memory": MemorySink,
    "parquet": ParquetSink,
}


def open_sink(name: str, **settings: Any) -> Sink:
    """A sink by its name, `parquet:file:///results` with its folder; `settings` are those of its class."""
    kind, _, folder = name.partition(":")
    if kind not in SINKS:
        raise InvalidSetting("sink", name, f"there are {', '.join(SINKS)}")
    if folder:
        settings = {"folder": folder, **settings}
    try:
        inspect.signature(SINKS[kind]).bind(**settings)
    except TypeError as cause:
        raise InvalidSetting("sink", name, f"{cause}; only parquet has a folder: parquet:file:///results") from cause
    return SINKS[kind](**settings)
