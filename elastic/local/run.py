"""`local_run`: a whole job inside this process, without Spark or Java, for tests of operators and for teaching."""

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from copy import copy
from typing import Any

import pyarrow as pa

from elastic import threads
from elastic.core.pipeline import describe_pipeline
from elastic.driver.context import JobContext
from elastic.driver.launcher import Launcher
from elastic.errors import InvalidJob
from elastic.ingest.batch_ingest import BatchIngest
from elastic.ingest.batch_spec import BatchSpec
from elastic.ingest.partition_sender import Connections, PartitionStatus, send_partition
from elastic.job.assembly import Surroundings, assemble_job
from elastic.job.job import Job
from elastic.local.launcher import ThreadLauncher
from elastic.local.network import LocalNetwork
from elastic.node.spec import NodeSpec
from elastic.operators import Operator, Stage
from elastic.operators.stages import build_stages
from elastic.results import Sink, open_sink
from elastic.settings import Settings
from elastic.store_access import StoreAccess
from elastic.wire import Network
from storage import Secret

_QUERY = "local"  # there is one query
_IDLE_SECONDS = 0.005  # between two checks for another batch


class TableSource:
    """Arrow tables as the batches of a stream, each sent as one partition; `BatchSource` of a local job."""

    def __init__(self, network: Network, batches: Sequence[pa.Table] = (), *, ends: bool = False) -> None:
        self.batches = list(batches)
        self.ingested = 0  # as a checkpoint would have it
        self.ends = ends  # whether the stream ends after the last batch, as with the trigger availableNow
        self._connections = Connections(network)

    def append(self, rows: pa.Table) -> None:
        """Add a batch; the stream ingests it at once."""
        self.batches.append(rows)

    def query_id(self, _rows: pa.Table) -> str:
        return _QUERY

    def read_digest(self, _query: str, _batch: int) -> "Future[str | None]":
        digest: Future[str | None] = threads.Future()
        digest.set_result(None)
        return digest

    def send(self, rows: pa.Table, spec: BatchSpec) -> list[PartitionStatus]:
        return [send_partition(spec, 0, rows.to_batches(), self._connections)]


class TableStream:
    """A query over a `TableSource`: one thread ingests batch after batch, and ends with the first error."""

    def __init__(self, source: TableSource, ingest: BatchIngest) -> None:
        self._source = source
        self._ingest = ingest
        self._error: Exception | None = None
        self._stopped = False
        self._pausing = threads.Event()
        self._thread = threads.Thread(self._run, "stream")

    def start(self) -> None:
        self._pausing = threads.Event()
        self._thread = threads.Thread(self._run, "stream")
        self._thread.start()

    def stop(self) -> None:
        self._stopped = True
        self._end()

    @contextmanager
    def ending(self) -> Iterator[None]:
        self._stopped = True
        yield

    @contextmanager
    def interrupted(self) -> Iterator[None]:
        self._end()
        try:
            yield
        finally:
            if not self._stopped:
                self.start()

    @property
    def failure(self) -> BaseException | None:
        return None if self._stopped or self._thread.is_alive() else self._ingest.failure or self._error

    @property
    def has_ended(self) -> bool:
        running = self._stopped or self._pausing.is_set() or self._thread.is_alive() or self._thread.ident is None
        return not running and self._error is None

    def process_all_available(self) -> None:
        while self._thread.is_alive() and self._source.ingested < len(self._source.batches):
            threads.sleep(_IDLE_SECONDS)
        self.raise_failure()

    def raise_failure(self) -> None:
        if (error := self.failure) is not None:
            raise copy(error)

    def _end(self) -> None:
        self._pausing.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        source = self._source
        try:
            while not self._pausing.is_set():
                if source.ingested < len(source.batches):
                    self._ingest.ingest(source.batches[source.ingested], source.ingested)
                    source.ingested += 1
                elif source.ends:
                    return
                else:
                    self._pausing.wait(_IDLE_SECONDS)
        except Exception as error:  # noqa: BLE001 - whatever it is, the job ends with it
            self._error = error


def local_run(
    batches: Sequence[pa.Table] | TableSource,
    *,
    key: str | Sequence[str],
    operator: Operator | Stage | Sequence[Operator | Stage],
    schema: pa.Schema | None = None,
    name: str = "local",
    store: str | None = None,
    tasks: int = 8,
    nodes: int = 2,
    sink: str | Sink = "memory",
    event_time: str | None = None,
    watermark_delay_ms: int = 0,
    secret: Secret | None = None,
    network: Network | None = None,
    launcher: Callable[[NodeSpec], Launcher] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Job:
    """Run a job inside this process: the real driver and nodes in threads, Arrow tables instead of a DataFrame.

    `batches` are the batches that there are; a `TableSource` may get more while the job runs. Without a `store` the
    state is in memory and ends with the process; a job that the store has continues after its last batch. `schema` is
    needed if there is no batch to take it from. The handle is the one that `elastic.run` returns, without the methods
    that return DataFrames.
    """
    network = network or LocalNetwork()
    source = batches if isinstance(batches, TableSource) else TableSource(network, batches)
    if schema is None:
        if not source.batches:
            raise InvalidJob("there is no batch to take the schema of the rows from. Give schema=.")
        schema = source.batches[0].schema
    pipeline = describe_pipeline(build_stages(operator, key), schema, tasks)
    resolved = Settings.resolve(settings or {}, lambda _: None, os.environ)
    url = store or f"memory:{name}-{secrets.token_hex(8)}"
    access = StoreAccess(url, {}, (secret or Secret.random()).reveal())
    context = JobContext(
        name, pipeline, resolved, access, access.open(), network, "local", "local", secrets.token_hex(16)
    )

    def make_stream(ingest: BatchIngest) -> TableStream:
        if source is not batches:
            source.ingested = ingest.next_source_batch  # a `TableSource` has a checkpoint of its own
        return TableStream(source, ingest)

    surroundings = Surroundings(
        launcher=launcher or (lambda common: ThreadLauncher(common, network)),
        source=source,
        stream=make_stream,
        check_room=lambda _: None,
        on_end=lambda _: None,
    )
    job = assemble_job(
        context,
        surroundings,
        open_sink(sink) if isinstance(sink, str) else sink,
        nodes=nodes,
        event_time=event_time,
        watermark_delay_ms=watermark_delay_ms,
        job_class=Job,
    )
    job.start()
    return job
