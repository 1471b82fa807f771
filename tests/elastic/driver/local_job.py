"""A whole job without Spark: the real driver, with nodes in threads of this process or in processes of their own."""

import multiprocessing
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import cloudpickle
import pyarrow as pa

from elastic import threads
from elastic.core.ids import Batch
from elastic.core.pipeline import describe_pipeline
from elastic.driver.context import JobContext
from elastic.driver.driver import Driver
from elastic.driver.launcher import Ended
from elastic.job.assembly import Surroundings, assemble_job
from elastic.job.job import Job
from elastic.job.status import JobStatus
from elastic.local import LocalNetwork, ThreadLauncher
from elastic.local.run import TableSource, TableStream
from elastic.node.spec import NodeSpec
from elastic.operators import Context, Operator, State
from elastic.operators.stages import build_stages
from elastic.results import ResultLog
from elastic.results.stage_sinks import SinkChoice, StageSinks
from elastic.routing import hash_keys
from elastic.settings import Settings
from elastic.spark.node_entry import StartFailed, host_node
from elastic.store_access import StoreAccess
from elastic.wire import FlightNetwork, Network
from storage import Secret, Store

JOB = "local"
SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.int64())])
ROWS = pa.schema({"key": pa.string(), "value": pa.int64()})
SECRET = Secret.of("a secret of a local job")
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["elastic.spark.node_entry", "tests.elastic.driver.local_job"])


class Counts(Operator):
    """Counts the rows of every key, and emits the count at every row."""

    output_schema = "key long, count long"

    def initial_state(self) -> Counter[int]:
        return Counter()

    def handle_batch(self, rows: pa.Table, state: State, _: Context) -> list[dict[str, int]]:
        state.value.update(rows["key"].to_pylist())
        return [{"key": key, "count": state.value[key]} for key in rows["key"].to_pylist()]


@dataclass
class LocalJob:
    """A job, and what it runs on; `launcher` is a `ThreadLauncher` or a `ProcessLauncher`."""

    job: Job
    source: TableSource
    launcher: Any
    store: Store

    @property
    def driver(self) -> Driver:
        return self.job._driver

    @property
    def results(self) -> ResultLog:
        assert self.job._results is not None
        return self.job._results

    def send(self, *keys: int) -> None:
        """Let the source have a batch of rows with these keys."""
        self.source.append(pa.table({"key": list(keys), "value": [1] * len(keys)}, schema=SCHEMA))

    def commit(self, rows: Sequence[tuple[str, int]]) -> Batch:
        """Let the source have a batch of these rows, and return its number when it is committed."""
        batch = Batch(self.driver.view.newest_batch + 1)
        self.source.append(pa.Table.from_pylist([{"key": key, "value": value} for key, value in rows], schema=ROWS))
        self.driver.views.wait_for(lambda view: view.newest_batch >= batch, 30)
        return batch

    def task_of(self, key: str) -> int:
        hashes = hash_keys([pa.chunked_array([pa.array([key])])])
        return int(self.driver.view.routing.unit_numbers(hashes, 0)[0])

    def output(self, batch: int) -> list[dict[str, Any]]:
        """The results of a published batch, in any order."""
        rows = self.results.read(batch, self.job.pipeline.stages[0].name).to_pylist()
        return [{name: value for name, value in row.items() if not name.startswith("_")} for row in rows]

    def status(self) -> JobStatus:
        return self.job.status()

    def close(self) -> None:
        """For the end of a test; a job that has stopped stays stopped."""
        with suppress(Exception):
            self.job.stop(drain=False)


def assemble_local_job(
    operator: Operator,
    schema: pa.Schema,
    url: str,
    *,
    network: Network,
    host: str,
    launch: Callable[[NodeSpec], Any],
    nodes: int,
    tasks: int,
    sink: SinkChoice,
    batches: Sequence[pa.Table] = (),
    ends: bool = False,
    **settings: Any,
) -> LocalJob:
    """Put a job together as `elastic.run` does, around Arrow tables instead of a DataFrame; it is not started."""
    access = StoreAccess(url, {}, SECRET.reveal())
    pipeline = describe_pipeline(build_stages(operator, "key"), schema, tasks)
    context = JobContext(
        JOB,
        pipeline,
        Settings(**{"heartbeat_seconds": 0.1, "snapshot_seconds": 600.0, **settings}),
        access,
        access.open(),
        network,
        host,
        host,
        secrets.token_hex(16),
    )
    source = TableSource(network, batches, ends=ends)
    launchers: list[Any] = []

    def make_launcher(common: NodeSpec) -> Any:
        launchers.append(launch(common))
        return launchers[0]

    surroundings = Surroundings(
        launcher=make_launcher,
        source=source,
        stream=lambda ingest: TableStream(source, ingest),
        check_room=lambda _: None,
        on_end=lambda _: None,
    )
    job = assemble_job(context, surroundings, StageSinks.choose(sink, pipeline), nodes=nodes, job_class=Job)
    return LocalJob(job, source, launchers[0], context.store)


def start_local_job(
    operator: Operator | None = None,
    *,
    url: str | None = None,
    nodes: int = 2,
    tasks: int = 4,
    sink: SinkChoice = "none",
    batches: Sequence[pa.Table] = (),
    ingested: int = 0,
    ends: bool = False,
    **settings: Any,
) -> LocalJob:
    """Start a job with nodes in threads; the source's checkpoint says that `ingested` of the batches are committed."""
    network = LocalNetwork()
    local = assemble_local_job(
        operator or Counts(),
        SCHEMA,
        url or f"memory:local-{secrets.token_hex(8)}",
        network=network,
        host="local",
        launch=lambda common: ThreadLauncher(common, network),
        nodes=nodes,
        tasks=tasks,
        sink=sink,
        batches=batches,
        ends=ends,
        **settings,
    )
    local.source.ingested = ingested
    local.job.start()
    return local


@contextmanager
def run_processes(
    operator: Operator, folder: Path, *, tasks: int = 4, nodes: int = 2, start: bool = True, **settings: Any
) -> Iterator[LocalJob]:
    """A job whose nodes are processes, which speak Flight on loopback and share a store of files."""
    local = assemble_local_job(
        operator,
        ROWS,
        f"file://{folder}",
        network=FlightNetwork(),
        host="127.0.0.1",
        launch=ProcessLauncher,
        nodes=nodes,
        tasks=tasks,
        sink="store",
        **settings,
    )
    try:
        if start:
            local.job.start()
        yield local
    finally:
        local.close()


def _become_node(pickled: bytes, answers: Connection) -> None:
    [left] = host_node(cloudpickle.loads(pickled), [])
    answers.send(left)


@dataclass
class _Child:
    process: Any
    over: threading.Event = field(default_factory=threading.Event)


class ProcessLauncher:
    """Incarnations as child processes of this one, through the function that a Spark task runs."""

    def __init__(self, common: NodeSpec) -> None:
        self._common = common
        self.incarnations: dict[str, _Child] = {}

    def start(self, node: str, incarnation: str, driver: str, ended: Ended) -> None:
        spec = replace(self._common, node=node, incarnation=incarnation, driver=driver)
        answers, theirs = _processes.Pipe(duplex=False)
        process = _processes.Process(target=_become_node, args=(cloudpickle.dumps(spec), theirs), daemon=True)
        child = self.incarnations[incarnation] = _Child(process)
        process.start()
        theirs.close()

        def watch() -> None:
            process.join()
            child.over.set()
            if process.exitcode != 0 or not answers.poll():
                ended(node, incarnation, f"its process died ({process.exitcode})", False)
                return
            left = answers.recv()
            failed = isinstance(left, StartFailed)
            ended(node, incarnation, left.why if isinstance(left, StartFailed) else left, failed)

        threads.Thread(watch, f"watch-{incarnation}").start()

    def cancel(self, incarnation: str) -> None:
        self.incarnations[incarnation].process.kill()

    def wait(self, incarnations: Sequence[str], seconds: float) -> list[str]:
        return [name for name in incarnations if not self.incarnations[name].over.wait(seconds)]


def until(condition: Callable[[], object], what: str = "the condition", seconds: float = 30.0) -> None:
    """Wait for it; fails with `what` when that takes too long."""
    waiting = threading.Event()
    for _ in range(int(seconds / 0.02)):
        if condition():
            return
        waiting.wait(0.02)
    raise AssertionError(f"timed out after {seconds:g} s waiting for {what}")
