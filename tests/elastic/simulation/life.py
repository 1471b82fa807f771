"""One life of a simulated driver, with all real parts of a job around it, and the nodes that it starts."""

import random
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from elastic import threads
from elastic.driver.context import JobContext
from elastic.driver.launcher import Ended
from elastic.ingest.batch_ingest import BatchIngest
from elastic.ingest.batch_spec import BatchSpec
from elastic.ingest.partition_sender import Connections, PartitionStatus, send_partition
from elastic.job.assembly import Surroundings, assemble_job
from elastic.job.job import Job
from elastic.local import ThreadLauncher
from elastic.local.launcher import Incarnation
from elastic.local.run import TableStream
from elastic.node.process import NodeProcess
from elastic.node.spec import NodeSpec
from elastic.results import Description, MemorySink
from elastic.results.stage_sinks import StageSinks
from elastic.settings import Settings
from elastic.store_access import StoreAccess
from elastic.wire import Network
from storage import Secret, Store
from tests.elastic.simulation.scheduler import Process, Scheduler, SimulatedThread

JOB = "simulated"
SECRET = Secret.of("a secret of the simulated world")
_NOTICE_SECONDS = (0.0, 0.0, 0.2, 20.0)
_REPEATED = 0.05  # of all partitions are sent twice, because Spark gave up on the first attempt


@dataclass(frozen=True)
class SimulatedAccess(StoreAccess):
    """Opens the store of the world."""

    opened: Any = field(default=None, repr=False)

    def open(self) -> Store:
        store: Store = self.opened
        return store


class SimulatedLauncher(ThreadLauncher):
    """Nodes as processes of their own, which can be killed."""

    def __init__(self, common: NodeSpec, network: Network, scheduler: Scheduler) -> None:
        super().__init__(common, network)
        self._scheduler = scheduler
        self.processes: dict[str, Process] = {}
        self.callbacks: dict[str, Ended] = {}

    def start(self, node: str, incarnation: str, driver: str, ended: Ended) -> None:
        self.callbacks[incarnation] = ended

        def notice(*end: Any) -> None:
            """Spark takes its time to notice that a process has died: the driver's own connection may be faster."""
            self._scheduler.sleep(_NOTICE_SECONDS[int(self._scheduler.random_seconds(len(_NOTICE_SECONDS)))])
            ended(*end)

        super().start(node, incarnation, driver, notice)

    def make_thread(self, live: Callable[[], None], incarnation: str) -> Any:
        process = self.processes[incarnation] = Process(incarnation)
        return self._scheduler.thread(live, "main", process)

    def end(self, incarnation: Incarnation) -> None:
        """Let Spark kill the task; that takes a while, or does not work: then the node goes on as a zombie."""
        process = self.processes[incarnation.name]

        def kill() -> None:
            seconds = self._scheduler.random_seconds(4.0)
            if seconds < 3.0:
                self._scheduler.sleep(seconds)
                self._scheduler.kill(process)

        self._scheduler.spawn(kill, f"kill {incarnation.name}", self._scheduler.world)

    def living_nodes(self) -> dict[str, NodeProcess]:
        """Those that have started, by incarnation."""
        nodes = {name: self.incarnations[name].process for name in self.living()}
        return {name: node for name, node in nodes.items() if isinstance(node, NodeProcess)}

    def current_name(self, name: str) -> str:
        """Return the incarnation that a process is, which a spare has only since it was told; else its own name."""
        process = self.incarnations[name].process
        if isinstance(process, NodeProcess):
            return process._context.incarnation
        named = None if process is None else process._named
        return name if named is None else named.incarnation

    def living(self) -> list[str]:
        """Incarnations and spares whose process runs, by the name that they were started with."""
        return [
            name
            for name, process in self.processes.items()
            if process.is_alive and not self.incarnations[name].over.is_set()
        ]


class Checkpoint:
    """What the source has noted as taken; outlives drivers, and never goes back."""

    def __init__(self) -> None:
        self.taken = 0

    def note(self, batch: int) -> None:
        self.taken = max(self.taken, batch + 1)


class SimulatedSource:
    """A source whose queries start from a checkpoint, and bring a batch every now and then."""

    def __init__(
        self, network: Network, batches: list[list[pa.Table]], checkpoint: Checkpoint, chance: random.Random
    ) -> None:
        self.batches = batches
        self.checkpoint = checkpoint
        self.chance = chance
        self._connections = Connections(network)

    def query_id(self, _: Any) -> str:
        return "the only query"

    def read_digest(self, _: str, batch: int) -> "Future[str | None]":
        digest: Future[str | None] = threads.Future()
        digest.set_result(f"digest of {batch}")
        return digest

    def send(self, rows: list[pa.Table], spec: BatchSpec) -> list[PartitionStatus]:
        """Send each partition in a thread of its own, some of them twice."""

        def send(number: int) -> PartitionStatus:
            attempts = 2 if self.chance.random() < _REPEATED else 1
            sent = [send_partition(spec, number, rows[number].to_batches(), self._connections) for _ in range(attempts)]
            return sent[-1]

        with threads.ThreadPool(2, "sender") as pool:
            statuses = list(pool.map(send, range(len(rows))))
        self.chance.shuffle(statuses)  # as senders end
        return statuses


class SimulatedStream(TableStream):
    """A query. Its driver may die after a batch is ingested and before that is noted."""

    def __init__(self, source: SimulatedSource, ingest: BatchIngest, pace_seconds: float) -> None:
        super().__init__(source, ingest)  # type: ignore[arg-type]
        self._pace_seconds = pace_seconds

    def _run(self) -> None:
        source: Any = self._source
        batch = source.checkpoint.taken
        try:
            while not self._pausing.wait(2 * source.chance.random() * self._pace_seconds):
                if batch < len(source.batches):
                    self._ingest.ingest(source.batches[batch], batch)
                    threads.sleep(0.01 * source.chance.random())
                    source.checkpoint.note(batch)
                    batch += 1
        except Exception as error:  # noqa: BLE001 - whatever it is, the job ends with it
            self._error = error


@dataclass(frozen=True)
class Setting:
    """What does not change between two lives."""

    scheduler: Scheduler
    chance: random.Random
    network: Network
    store: Store
    pipeline: Description
    settings: Settings
    batches: list[list[pa.Table]]
    checkpoint: Checkpoint
    nodes: int
    pace_seconds: float


class Life:
    """A driver process; `job` is None until it is put together, `error` is why it did not start."""

    def __init__(self, number: int, setting: Setting) -> None:
        self.process = Process(f"driver-{number}")
        self.sink = MemorySink()
        self.job: Job | None = None
        self.launcher: SimulatedLauncher | None = None
        self.error: BaseException | None = None
        self.is_stopping = False
        self._number = number
        self._setting = setting
        self._main = setting.scheduler.spawn(self._start, "main", self.process)

    @property
    def is_running(self) -> bool:
        return self.job is not None and not self._main.is_alive() and self.error is None and self.process.is_alive

    @property
    def failure(self) -> BaseException | None:
        """What ended the job."""
        return None if self.job is None else self.job._driver.views.error

    def spawn(self, call: Callable[[], object], name: str) -> SimulatedThread:
        """Call something of the driver in a thread of its process."""
        return self._setting.scheduler.spawn(call, name, self.process)

    def _start(self) -> None:
        setting = self._setting
        access = SimulatedAccess("memory:faulty", {}, SECRET.reveal(), setting.store)
        token = f"token of life {self._number}"
        context = JobContext(
            JOB, setting.pipeline, setting.settings, access, setting.store, setting.network, "local", "local", token
        )
        source = SimulatedSource(setting.network, setting.batches, setting.checkpoint, setting.chance)
        surroundings = Surroundings(
            launcher=self._make_launcher,
            source=source,
            stream=lambda ingest: SimulatedStream(source, ingest, setting.pace_seconds),
            check_room=lambda _: None,
            on_end=lambda _: None,
        )
        try:
            self.job = assemble_job(
                context,
                surroundings,
                StageSinks.choose(self.sink, setting.pipeline),
                nodes=setting.nodes,
                job_class=Job,
            )
            self.job.start()
        except Exception as error:  # noqa: BLE001 - the world decides whether that may be
            self.error = error

    def _make_launcher(self, common: NodeSpec) -> SimulatedLauncher:
        self.launcher = SimulatedLauncher(common, self._setting.network, self._setting.scheduler)
        return self.launcher
