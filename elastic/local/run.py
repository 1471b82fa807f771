"""`local_run`: a whole job inside this process, without Spark or Java, for tests of operators and for teaching."""

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from copy import copy
from typing import Any, TypeAlias

import pyarrow as pa

from elastic import threads
from elastic.core.pipeline import describe_pipeline
from elastic.driver.context import JobContext
from elastic.driver.launcher import Launcher
from elastic.errors import InvalidJob
from elastic.ingest.batch_ingest import BatchIngest
from elastic.ingest.batch_spec import INPUT_NUMBER, BatchSpec
from elastic.ingest.partition_sender import Connections, PartitionStatus, send_partition
from elastic.job.assembly import Surroundings, assemble_job
from elastic.job.job import Job
from elastic.local.launcher import ThreadLauncher
from elastic.local.network import LocalNetwork
from elastic.node.spec import NodeSpec
from elastic.operators import Operator, Stage
from elastic.operators.graph import DEFAULT_INPUT, Input, choose_key
from elastic.operators.stages import build_stages
from elastic.portable.importing import create_job_from_rows
from elastic.results.stage_sinks import SinkChoice, StageSinks
from elastic.settings import Settings
from elastic.store_access import StoreAccess
from elastic.wire import Network
from storage import Secret

Rows: TypeAlias = pa.Table | Mapping[str, pa.Table]  # of a batch

_QUERY = "local"  # there is one query
_IDLE_SECONDS = 0.005  # between two checks for another batch


class TableSource:
    """Arrow tables as the batches of a stream, each sent as one partition; `BatchSource` of a local job.

    A batch of a job with several inputs is a mapping from their names to tables; each is sent as a partition.
    """

    def __init__(self, network: Network, batches: Sequence[Rows] = (), *, ends: bool = False) -> None:
        self.batches = list(batches)
        self.ingested = 0  # as a checkpoint would have it
        self.ends = ends  # whether the stream ends after the last batch, as with the trigger availableNow
        self._connections = Connections(network)

    def append(self, rows: Rows) -> None:
        """Add a batch; the stream ingests it at once."""
        self.batches.append(rows)

    def query_id(self, _rows: Rows) -> str:
        return _QUERY

    def read_digest(self, _query: str, _batch: int) -> "Future[str | None]":
        digest: Future[str | None] = threads.Future()
        digest.set_result(None)
        return digest

    def send(self, rows: Rows, spec: BatchSpec) -> list[PartitionStatus]:
        numbers = {plan.name: number for number, plan in enumerate(spec.inputs)}
        given = rows if isinstance(rows, Mapping) else {spec.inputs[0].name: rows}
        if unknown := sorted(set(given).difference(numbers)):
            raise InvalidJob(f"a batch has rows of input {unknown[0]!r}. Name one of {', '.join(map(repr, numbers))}.")
        tables = [table if len(numbers) == 1 else _mark(table, numbers[name]) for name, table in given.items()]
        return [
            send_partition(spec, number, table.to_batches(), self._connections) for number, table in enumerate(tables)
        ]


def _mark(rows: pa.Table, number: int) -> pa.Table:
    """Return the rows with the number of their input."""
    return rows.append_column(INPUT_NUMBER, pa.repeat(pa.scalar(number, pa.int8()), rows.num_rows))


class UnionSource(TableSource):
    """The batches of several sources as those of one: each has the next of every source that has another one."""

    def __init__(self, network: Network, inputs: Sequence[Input]) -> None:
        super().__init__(network)
        self._inputs = [(each, _as_source(network, each.rows)) for each in inputs]
        self._taken = [0] * len(inputs)

    @property
    def batches(self) -> list[Rows]:
        """The batches so far; what a source gets later is in a later one."""
        while batch := self._next_batch():
            self._batches.append(batch)
        return self._batches

    @batches.setter
    def batches(self, batches: list[Rows]) -> None:
        self._batches = batches

    def _next_batch(self) -> dict[str, pa.Table]:
        batch = {}
        for number, (each, source) in enumerate(self._inputs):
            if self._taken[number] < len(source.batches):
                batch[each.name] = each.select(source.batches[self._taken[number]])
                self._taken[number] += 1
        return batch


def _as_source(network: Network, rows: Any) -> TableSource:
    return rows if isinstance(rows, TableSource) else TableSource(network, list(rows or ()))


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
        """Wait until everything that the source has now is ingested, through interruptions too."""
        while self._source.ingested < len(self._source.batches) and not self._is_over:
            threads.sleep(_IDLE_SECONDS)
        self.raise_failure()

    def raise_failure(self) -> None:
        if (error := self.failure) is not None:
            raise copy(error)

    @property
    def _is_over(self) -> bool:
        return self._stopped or self.has_ended or self.failure is not None

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
        except Exception as error:  # noqa: BLE001 - any error ends the job
            self._error = error


def local_run(
    batches: Sequence[pa.Table] | TableSource | Sequence[Input] | Mapping[str, Any],
    *,
    key: str | Sequence[str] = (),
    operator: Operator | Stage | Sequence[Operator | Stage],
    schema: pa.Schema | None = None,
    name: str = "local",
    store: str | None = None,
    tasks: int = 8,
    nodes: int = 2,
    sink: SinkChoice = "memory",
    event_time: str | None = None,
    watermark_delay_ms: int = 0,
    secret: Secret | None = None,
    network: Network | None = None,
    launcher: Callable[[NodeSpec], Launcher] | None = None,
    settings: Mapping[str, Any] | None = None,
    initial_state: pa.Table | None = None,
    inputs: Sequence[Input] = (),
) -> Job:
    """Run a job inside this process: the real driver and nodes in threads, Arrow tables instead of a DataFrame.

    `batches` are the batches that there are; a `TableSource` may get more while the job runs. Several inputs are a
    sequence of `Input`, or a mapping from names to inputs, tables or sources; a batch has the next table of each. With
    `inputs`, which have schemas instead of rows, each of the `batches` is a mapping from their names to tables; a
    `TableSource` of such may outlive the job.

    Without a `store` the state is in memory and ends with the process; a job that the store has continues after its
    last batch. `schema` is needed if there is no batch to take it from. The handle is the one that `elastic.run`
    returns, without the methods that return DataFrames. `initial_state` has a row of state per key, for a job that the
    store does not have. `sink` gets the results of the last stage; a mapping from names of stages to sinks, those of
    each.
    """
    network = network or LocalNetwork()
    if inputs:
        source = _as_source(network, batches)
    else:
        inputs = _to_inputs(batches, schema, event_time, watermark_delay_ms)
        is_plain = len(inputs) == 1 and not inputs[0].columns
        source = _as_source(network, inputs[0].rows) if is_plain else UnionSource(network, inputs)
    stages = build_stages(operator, choose_key(inputs, key), [each.name for each in inputs])
    pipeline = describe_pipeline(stages, [each.bind(_find_schema(each)) for each in inputs], tasks)
    sinks = StageSinks.choose(sink, pipeline)
    resolved = Settings.resolve(settings or {}, lambda _: None, os.environ)
    url = store or f"memory:{name}-{secrets.token_hex(8)}"
    access = StoreAccess(url, {}, (secret or Secret.random()).reveal())
    opened = access.open()
    if initial_state is not None:
        create_job_from_rows(opened, access.secret, name, pipeline, lambda: initial_state)
    context = JobContext(name, pipeline, resolved, access, opened, network, "local", "local", secrets.token_hex(16))

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
        sinks,
        nodes=nodes,
        job_class=Job,
    )
    job.start()
    return job


def _to_inputs(
    batches: Any, schema: pa.Schema | None, event_time: str | None, watermark_delay_ms: int
) -> Sequence[Input]:
    """Return the inputs that a user gave: batches of one, a sequence of inputs, or a mapping from names to either."""
    if isinstance(batches, Mapping):
        return [
            rows.with_name(name) if isinstance(rows, Input) else Input(rows, name=name)
            for name, rows in batches.items()
        ]
    if isinstance(batches, Input):
        return [batches]
    if isinstance(batches, Sequence) and any(isinstance(each, Input) for each in batches):
        return list(batches)
    delay = f"{watermark_delay_ms} ms" if event_time is not None else None
    return [Input(batches, event_time=event_time, watermark_delay=delay, schema=schema)]


def _find_schema(each: Input) -> pa.Schema:
    """Return the schema of an input's rows, before columns are selected."""
    if each.schema is not None:
        return each.schema
    batches = each.rows.batches if isinstance(each.rows, TableSource) else list(each.rows or ())
    if not batches:
        what = "" if each.name == DEFAULT_INPUT else f" of input {each.name!r}"
        raise InvalidJob(f"there is no batch to take the schema of the rows{what} from. Give schema=.")
    first: Any = batches[0]
    schema: pa.Schema = first.schema
    return schema
