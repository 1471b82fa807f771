"""A job in threads of this process for experiments: several senders, and rows whose cost is slept or computed."""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from elastic.ingest.batch_spec import BatchSpec
from elastic.ingest.partition_sender import Connections, PartitionStatus, send_partition
from elastic.job.job import Job
from elastic.local import LocalNetwork
from elastic.local.launcher import ThreadLauncher
from elastic.local.run import TableSource, local_run
from elastic.node.spec import NodeSpec
from elastic.operators import Stage
from elastic.results.sinks import MemorySink


class SenderSource(TableSource):
    """Tables as batches, whose rows several senders send at once, as if each were a process of its own."""

    def __init__(self, senders: int) -> None:
        self.network = LocalNetwork()
        super().__init__(self.network)
        self._each = [Connections(self.network) for _ in range(senders)]
        self._pool = ThreadPoolExecutor(senders)

    def send(self, rows: pa.Table, spec: BatchSpec) -> list[PartitionStatus]:
        count = len(self._each)

        def send(number: int) -> PartitionStatus:
            mine = rows.take(np.arange(number, rows.num_rows, count))
            return send_partition(spec, number, mine.to_batches(), self._each[number])

        return list(self._pool.map(send, range(count)))

    def close(self) -> None:
        self._pool.shutdown()


class WrongResults(AssertionError):
    """A run whose results differ from those of the batch computation, which makes its measurements worthless."""


class EngineJob(NamedTuple):
    """A job that runs, with its source, its sink, and what starts its nodes."""

    job: Job
    source: SenderSource
    sink: MemorySink
    launcher: ThreadLauncher

    def kill(self, node: str) -> None:
        """End a node in the middle of its work; it reports nothing more."""
        *_, newest = (one for one in self.launcher.incarnations.values() if one.node == node)
        self.launcher.end(newest)

    def await_published(self) -> None:
        """Wait until the results of all batches are published."""
        self.job.process_all_available()


@contextmanager
def start_job(
    stages: Sequence[Stage],
    schema: pa.Schema,
    *,
    senders: int,
    nodes: int,
    tasks: int,
    settings: Mapping[str, Any],
    store: str | None = None,
) -> Iterator[EngineJob]:
    """Run a job on a source without batches; the block appends some. Without a `store` its state is in memory."""
    source, sink = SenderSource(senders), MemorySink()
    launchers: list[ThreadLauncher] = []

    def launch(common: NodeSpec) -> ThreadLauncher:
        launchers.append(ThreadLauncher(common, source.network))
        return launchers[-1]

    options = {"nodes": nodes, "tasks": tasks, "settings": settings, "network": source.network, "sink": sink}
    options |= {"store": store, "launcher": launch}
    try:
        with local_run(source, key=(), operator=stages, schema=schema, **options) as job:  # type: ignore[arg-type]
            yield EngineJob(job, source, sink, launchers[0])
    finally:
        source.close()


def append_paced(running: EngineJob, batches: Sequence[pa.Table], interval_seconds: float) -> npt.NDArray[np.float64]:
    """Append batches at fixed times, wait until all are published, and return when each was appended."""
    began, arrivals = time.monotonic(), []
    for number, rows in enumerate(batches):
        time.sleep(max(0.0, began + number * interval_seconds - time.monotonic()))
        arrivals.append(time.monotonic())
        running.source.append(rows)
    running.await_published()
    return np.array(arrivals)
