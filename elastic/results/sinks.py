"""Sinks: destinations of results besides the log; all kinds by name in `SINKS`."""

import inspect
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from elastic import threads
from elastic.errors import InvalidSetting
from elastic.results.delta import DeltaSink
from elastic.results.iceberg import IcebergSink
from elastic.results.kafka import KafkaSink
from elastic.results.objects import ORIGIN
from elastic.results.parquet import ParquetSink

_MEMORY_ROWS = 1_000_000  # some hundred megabytes for rows of a usual size


class Sink(Protocol):
    """Receives the results of one stage, batch by batch, in order.

    A batch may be delivered again after a crash or a timeout; the sink must then hold it once. While it cannot be
    reached, `open` and `deliver` raise `SinkUnavailable` within a bound, and are called again.
    """

    @property
    def needs_log(self) -> bool:
        """Whether nodes write results to the log."""
        ...

    @property
    def needs_writer(self) -> bool:
        """Whether a `SinkWriter` must deliver the log to it."""
        ...

    def open(self, results: str) -> int | None:
        """Prepare for the results of this identity; return the first batch to deliver, None for the oldest there is."""
        ...

    def deliver(self, batch: int, rows: pa.Table) -> None:
        """Store a batch; when this returns, it is as durable as this sink makes it."""
        ...

    def close(self) -> None:
        """Release resources; no more batches follow."""
        ...


class _Passive:
    """A sink to which nothing is delivered."""

    needs_log: ClassVar = False
    needs_writer: ClassVar = False

    def open(self, results: str) -> int | None:  # noqa: ARG002 - the protocol's
        return None

    def deliver(self, batch: int, rows: pa.Table) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class NoSink(_Passive):
    """Nodes discard results; the job serves its state only."""


class StoreSink(_Passive):
    """Results stay in the log, where readers find them."""

    needs_log: ClassVar = True


class MemorySink:
    """Keeps the newest batches in this process; drops the oldest ones above `max_rows` rows.

    The newest batch is kept even if it alone is larger. Thread-safe.
    """

    needs_log: ClassVar = True
    needs_writer: ClassVar = True

    def __init__(self, max_rows: int = _MEMORY_ROWS) -> None:
        if max_rows < 1:
            raise InvalidSetting("max_rows", max_rows, "give room for at least one row")
        self.dropped_rows = 0
        self._max_rows = max_rows
        self._batches: deque[tuple[int, pa.Table]] = deque()
        self._lock = threads.Lock()

    def open(self, results: str) -> int | None:  # noqa: ARG002 - it starts empty for any results
        with self._lock:
            return self._batches[-1][0] + 1 if self._batches else None

    def deliver(self, batch: int, rows: pa.Table) -> None:
        with self._lock:
            if self._batches and batch <= self._batches[-1][0]:
                return
            self._batches.append((batch, rows))
            while len(self._batches) > 1 and self._count_rows() > self._max_rows:
                self.dropped_rows += self._batches.popleft()[1].num_rows

    def table(self) -> pa.Table:
        """Return all kept rows, in order."""
        with self._lock:
            tables = [rows for _, rows in self._batches if rows.num_rows]
        return pa.concat_tables(tables, promote_options="permissive") if tables else ORIGIN.empty_table()

    def close(self) -> None:
        """Do nothing: the rows stay readable."""

    def __repr__(self) -> str:
        with self._lock:
            return f"MemorySink(batches={len(self._batches)}, rows={self._count_rows()})"

    def _count_rows(self) -> int:
        return sum(rows.num_rows for _, rows in self._batches)


SINKS: Mapping[str, Callable[..., Sink]] = {
    "none": NoSink,
    "store": StoreSink,
    "memory": MemorySink,
    "parquet": ParquetSink,
    "kafka": KafkaSink.from_url,
    "delta": DeltaSink,
    "iceberg": IcebergSink.from_url,
}
_EXAMPLES = {  # of sinks with an address
    "parquet": "parquet:file:///results",
    "kafka": "kafka://127.0.0.1:9092/topic",
    "delta": "delta:file:///table",
    "iceberg": "iceberg:namespace.table",
}


def open_sink(name: str, **settings: Any) -> Sink:
    """Open a sink by name, such as `parquet:file:///results` with its folder; `settings` are those of its class."""
    kind, _, address = name.partition(":")
    if kind not in SINKS:
        raise InvalidSetting("sink", name, f"use one of {', '.join(_EXAMPLES.get(kind, kind) for kind in SINKS)}")
    if address and kind not in _EXAMPLES:
        raise InvalidSetting("sink", name, f"{kind} has no address; others have: {', '.join(_EXAMPLES.values())}")
    addresses = (address,) if address else ()
    try:
        inspect.signature(SINKS[kind]).bind(*addresses, **settings)
    except TypeError as cause:
        example = f"; for example {_EXAMPLES[kind]}" if kind in _EXAMPLES else ""
        raise InvalidSetting("sink", name, f"{cause}{example}") from cause
    return SINKS[kind](*addresses, **settings)
