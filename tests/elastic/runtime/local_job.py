"""A whole job without Spark: the real driver and real nodes, which run in threads and speak Flight on loopback.

Only Spark is replaced. `Source` is a stream whose query calls `foreachBatch` from a thread of its own; like Spark's,
its `stop` waits until that call has returned, however long it takes.
"""

import secrets as random_names
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from elastic.operators import Context, Operator, Stage, State
from elastic.operators.stages import runners_of, stages_of
from elastic.results import Description, ResultLog, StageDescription, open_sink
from elastic.routing import IntervalRouting, key_hash, routing_from_json, split
from elastic.runtime.access import StoreAccess
from elastic.runtime.controller import Controller, JobParts
from elastic.runtime.controller.nodes import Ended, Nodes
from elastic.runtime.intake.batches import Intake
from elastic.runtime.job import Job
from elastic.runtime.node.process import NodeProcess
from elastic.runtime.node.specification import NodeSpecification
from elastic.runtime.pipeline import emitting, runners
from elastic.runtime.protocol import Coordinator
from elastic.runtime.restart import find_published, recover_manifest
from elastic.settings import Settings
from storage import Secret, Store
from storage.state import Collector, InputLog, Manifests

JOB = "local"
SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.int64())])
SECRET = Secret.of("a secret of a local job")
_HOST, _TOKEN = "127.0.0.1", "the token of a local job"


class Counts(Operator):
    """Counts the rows of every key, and emits the count at every row."""

    output_schema = "key long, count long"

    def initial_state(self) -> Counter[int]:
        return Counter()

    def handle_batch(self, rows: pa.Table, state: State, _: Context) -> list[dict[str, int]]:
        state.value.update(rows["key"].to_pylist())
        return [{"key": key, "count": state.value[key]} for key in rows["key"].to_pylist()]


class ThreadLauncher:
    """Incarnations in threads. A thread cannot be killed, so `cancel` lets a node leave when it works again."""

    def __init__(self, template: NodeSpecification) -> None:
        self.template = template
        self.nodes: dict[str, NodeProcess] = {}
        self.cancelled: list[str] = []
        self._over: dict[str, threading.Event] = {}

    def start(self, node: str, incarnation: str, controller: str, ended: Ended) -> None:
        spec = replace(self.template, node=node, incarnation=incarnation, controller=controller)
        over = self._over[incarnation] = threading.Event()

        def run() -> None:
            process = self.nodes[incarnation] = NodeProcess(spec)
            try:
                why = process.run()
            finally:
                over.set()
            ended(node, incarnation, why, False)

        threading.Thread(target=run, name=incarnation, daemon=True).start()

    def cancel(self, incarnation: str) -> None:
        self.cancelled.append(incarnation)
        if incarnation in self.nodes:
            self.nodes[incarnation]._leave("it was cancelled")

    def wait(self, incarnations: Sequence[str], seconds: float) -> list[str]:
        ends = time.monotonic() + seconds
        known = [(one, self._over[one]) for one in incarnations if one in self._over]
        return [one for one, over in known if not over.wait(max(0.0, ends - time.monotonic()))]


class Query:
    """Spark's query: batches in a thread; an error in a batch ends it; `stop` waits for the batch under way."""

    def __init__(self, source: "Source", take: Callable[[Any, int], None]) -> None:
        self._source = source
        self._take = take
        self._stopping = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="query", daemon=True)
        self._thread.start()

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's names, here and below
        self._source.check()
        return self._thread.is_alive()

    def exception(self) -> Exception | None:
        self._source.check()
        return self._error

    def stop(self) -> None:
        self._source.check()
        self._stopping.set()
        self._thread.join()

    def processAllAvailable(self) -> None:  # noqa: N802
        while self._thread.is_alive() and self._source.taken < len(self._source.batches):
            self._stopping.wait(0.005)
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            while not self._stopping.wait(0.005):
                if self._source.taken < len(self._source.batches):
                    self._take(self._source.batches[self._source.taken], self._source.taken)
                    self._source.taken += 1
                elif self._source.ends:
                    return
        except Exception as error:  # noqa: BLE001 - as Spark does
            self._error = error


@dataclass
class Source:
    """A streaming DataFrame whose batches are known; with `ends`, as the trigger `availableNow` reads it."""

    batches: list[pa.Table] = field(default_factory=list)
    ends: bool = False
    taken: int = 0
    jvm_error: Exception | None = None  # what every call raises once the JVM is gone

    def check(self) -> None:
        if self.jvm_error is not None:
            raise self.jvm_error

    @property
    def writeStream(self) -> "Source":  # noqa: N802
        return self

    def queryName(self, _: str) -> "Source":  # noqa: N802
        return self

    def option(self, _name: str, _value: str) -> "Source":
        return self

    def trigger(self, **how: Any) -> "Source":
        self.ends = "availableNow" in how
        return self

    def foreachBatch(self, take: Callable[[Any, int], None]) -> "Source":  # noqa: N802
        self._take = take
        return self

    def start(self) -> Query:
        return Query(self, self._take)


class NoOffsets:
    """A source that reveals no offsets."""

    def read(self, _query: str, _batch: int) -> Future[None]:
        digest: Future[None] = Future()
        digest.set_result(None)
        return digest


class LocalIntake(Intake):
    """Takes tables instead of DataFrames: the driver itself is the sender, and nothing is uploaded."""

    log: InputLog

    def _claim(self, _: Any) -> str:
        return "the only query"

    def _send(self, frame: Any, batch: int) -> list[dict[str, Any]]:
        hashes = key_hash([frame[name] for name in self.key])
        slots = self.controller.route().routing.slots_of(hashes, 0)
        ref = self.log.append(batch, 0, split(frame, slots).slices())
        return [{"logs": [ref.to_json()], "rows": frame.num_rows, "bytes": frame.nbytes, "latest_ms": None}]


def _no_table(name: str) -> Any:
    raise KeyError(name)


def describe(operator: Operator, tasks: int) -> Description:
    named = stages_of([Stage(operator, ("key",))], ())
    described = tuple(
        StageDescription(stage.name, stage.key, stage.operator, runner.input_schema, runner.output_schema)
        for stage, runner in zip(named, runners_of(named, SCHEMA), strict=True)
    )
    return Description(described, tasks, "1")


@dataclass
class LocalJob:
    """A job that runs, and what it runs on."""

    job: Job
    source: Source
    controller: Controller
    launcher: ThreadLauncher
    store: Store

    def send(self, *keys: int) -> None:
        self.source.batches.append(pa.table({"key": list(keys), "value": [1] * len(keys)}, schema=SCHEMA))

    def close(self) -> None:
        """For the end of a test; a job that has stopped stays stopped."""
        with suppress(Exception):
            self.job.stop(drain=False)


def start_local_job(
    operator: Operator | None = None,
    *,
    url: str | None = None,
    nodes: int = 2,
    tasks: int = 4,
    sink: str = "none",
    trigger: dict[str, Any] | None = None,
    batches: Sequence[pa.Table] = (),
    taken: int = 0,
    **changes: Any,
) -> LocalJob:
    settings = Settings(**{"heartbeat_seconds": 0.1, "snapshot_seconds": 600.0, **changes})
    access = StoreAccess(url or f"memory:local-{random_names.token_hex(8)}", {}, SECRET.reveal())
    store = access.open()
    pipeline = describe(operator or Counts(), tasks)
    manifests = Manifests(store, SECRET, JOB)
    manifest = recover_manifest(manifests, JOB, pipeline, None, nodes)
    found = routing_from_json(manifest.assignment)
    assert isinstance(found, IntervalRouting)
    routing = replace(found, epoch=manifest.epoch)
    pipeline.save(store, SECRET, JOB)
    opened_sink = open_sink(sink)
    results = ResultLog(store, SECRET, JOB) if opened_sink.logs else None
    published = find_published(manifest, results, JOB)
    stages = runners(pipeline, "fail")
    names = list(routing.assignment.nodes)
    coordinator = Coordinator(manifest, routing, published, emitting(stages), names)
    template = NodeSpecification(
        JOB, "", "", "", _HOST, _TOKEN, access, pipeline, routing, settings, results is not None
    )
    launcher = ThreadLauncher(template)
    cluster = Nodes(
        names,
        launcher,
        host=_HOST,
        token=_TOKEN,
        node_timeout_seconds=settings.node_timeout_seconds,
        node_start_seconds=settings.node_start_seconds,
    )
    parts = JobParts(JOB, manifests, results, Collector(store, SECRET, JOB), coordinator, settings)
    controller = Controller(parts, cluster)
    offsets: Any = NoOffsets()
    intake = LocalIntake(JOB, controller, access, settings, ("key",), None, _TOKEN, offsets)
    intake.log = InputLog(store, SECRET, JOB)
    source: Any = Source(list(batches), taken=taken)  # those before are committed, as Spark's checkpoint says
    job = Job(
        JOB,
        source,
        pipeline,
        controller,
        cluster,
        intake,
        store,
        opened_sink,
        results,
        table=_no_table,
        on_end=lambda _: None,
        check_room=lambda _: None,
    )
    job.start("", trigger or {})
    return LocalJob(job, source, controller, launcher, store)
