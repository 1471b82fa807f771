"""Where the sinks under test write: what opens a sink there, and what a reader finds.

As a program it delivers batches until it is done or killed: `python -m tests.elastic.results.targets KIND ADDRESS`.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from elastic.results import Sink, open_sink
from scripts.kafka_broker import KafkaBroker

RESULTS = "these-results"
BATCHES = 30
QUIET = frozenset({3, 11, 12})  # batches without rows
ROWS = 200


def batch_rows(batch: int, rows: int = ROWS) -> pa.Table:
    """Return the rows of a batch as a job delivers them; a batch without rows has no other columns."""
    count = 0 if batch in QUIET else rows
    origin = {"_batch": pa.array([batch] * count, pa.int64()), "_task": pa.array([0] * count, pa.int32())}
    if not count:
        return pa.table(origin)
    return pa.table({"n": pa.array([batch * rows + number for number in range(count)], pa.int64()), **origin})


def values_of(batches: int, rows: int = ROWS) -> list[int]:
    """Return the values that a reader finds after so many batches."""
    return [
        value for batch in range(batches) if batch not in QUIET for value in range(batch * rows, (batch + 1) * rows)
    ]


@dataclass(frozen=True)
class Target:
    """The place that a sink writes to. `last_call` is the call of its client that makes a batch durable."""

    kind: str
    address: str
    read: Callable[[], list[int]]

    def open_sink(self) -> Sink:
        return open_sink(f"{self.kind}:{self.address}")


def parquet_target(folder: Path) -> Target:
    def read() -> list[int]:
        files = sorted(folder.glob("*.parquet"))
        return [value for file in files for value in pq.read_table(file)["n"].to_pylist()]

    return Target("parquet", folder.as_uri(), read)


def delta_target(folder: Path) -> Target:
    def read() -> list[int]:
        from deltalake import DeltaTable

        return sorted(pa.table(DeltaTable(folder.as_uri()).to_pyarrow_table())["n"].to_pylist())

    return Target("delta", folder.as_uri(), read)


def iceberg_target(folder: Path) -> Target:
    folder.mkdir()
    properties = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": (folder / "tables").as_uri()}

    def read() -> list[int]:
        from pyiceberg.catalog import load_catalog

        return sorted(load_catalog("tests", **properties).load_table("counts.all").scan().to_arrow()["n"].to_pylist())

    query = "&".join(f"{name}={value}" for name, value in properties.items())
    return Target("iceberg", f"tests/counts.all?{query}", read)


def kafka_target(broker: KafkaBroker) -> Target:
    topic = broker.create_topic(f"contract-{uuid4().hex[:8]}", partitions=1)

    def read() -> list[int]:
        return [json.loads(record.value() or b"")["n"] for record in broker.read(topic)]

    return Target("kafka", f"//{broker.bootstrap_servers}/{topic}", read)


def deliver_all(sink: Sink, batches: int = BATCHES) -> Iterator[int]:
    """Deliver what the sink does not have, and yield after each batch."""
    for batch in range(sink.open(RESULTS) or 0, batches):
        sink.deliver(batch, batch_rows(batch))
        yield batch
    sink.close()


def kill_at(kind: str, moment: str, calls: int) -> None:
    """Let this process kill itself before or after the call that makes its batch number `calls` durable."""
    owner, name = _last_call(kind)
    original = getattr(owner, name)
    left = calls

    def call(*arguments: Any, **options: Any) -> Any:
        nonlocal left
        left -= 1
        if not left and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = original(*arguments, **options)
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    setattr(owner, name, call)


def _last_call(kind: str) -> tuple[Any, str]:
    if kind == "parquet":
        from storage.stores.file import FileStore

        return FileStore, "put"
    if kind == "delta":
        import deltalake

        return deltalake, "write_deltalake"
    if kind == "iceberg":
        from pyiceberg.catalog.sql import SqlCatalog

        return SqlCatalog, "commit_table"
    from elastic.results.kafka.transactions import Transactions

    return Transactions, "_commit"


def main(kind: str, address: str, moment: str, calls: str) -> None:
    """Deliver, and kill this process at the moment; print each batch, so that the test knows how far it came."""
    if moment in ("before", "after"):
        kill_at(kind, moment, int(calls))
    for batch in deliver_all(open_sink(f"{kind}:{address}")):
        print(batch, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
