"""A job on real node processes without Spark: the real controller, calls over loopback, a store of files."""

import multiprocessing
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import cloudpickle
import pyarrow as pa

from elastic.operators import Operator, Stage
from elastic.operators.stages import runners_of, stages_of
from elastic.results import Description, ResultLog, StageDescription
from elastic.routing import IntervalRouting, key_hash, split
from elastic.runtime.access import StoreAccess
from elastic.runtime.controller import Controller, JobParts
from elastic.runtime.controller.nodes import Ended, Nodes
from elastic.runtime.node.entry import StartFailed, host_node
from elastic.runtime.node.specification import NodeSpecification
from elastic.runtime.pipeline import emitting, runners
from elastic.runtime.protocol import Coordinator
from elastic.runtime.status import JobStatus
from elastic.runtime.wire import wire_token
from elastic.settings import Settings
from migration import Assignment
from storage.state import BatchTime, Collector, InputLog, Manifest, Manifests, Unit

SECRET = b"a secret of these tests, long enough"
ROWS = pa.schema({"key": pa.string(), "value": pa.int64()})
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["elastic.runtime.node.entry", "tests.elastic.runtime.local_nodes"])


def _become_node(pickled: bytes, answers: Connection) -> None:
    [left] = host_node(cloudpickle.loads(pickled), [])
    answers.send(left)


class LocalLauncher:
    """Incarnations as child processes of this one."""

    def __init__(self, template: NodeSpecification) -> None:
        self._template = template
        self._running: dict[str, tuple[Any, threading.Event]] = {}
        self.started: list[str] = []

    def start(self, node: str, incarnation: str, controller: str, ended: Ended) -> None:
        spec = replace(self._template, node=node, incarnation=incarnation, controller=controller)
        answers, theirs = _processes.Pipe(duplex=False)
        process = _processes.Process(target=_become_node, args=(cloudpickle.dumps(spec), theirs), daemon=True)
        over = threading.Event()
        self._running[incarnation] = (process, over)
        self.started.append(incarnation)
        process.start()
        theirs.close()

        def watch() -> None:
            process.join()
            over.set()
            if process.exitcode != 0 or not answers.poll():
                ended(node, incarnation, f"its process died ({process.exitcode})", False)
                return
            left = answers.recv()
            failed = isinstance(left, StartFailed)
            ended(node, incarnation, left.why if isinstance(left, StartFailed) else left, failed)

        threading.Thread(target=watch, daemon=True).start()

    def cancel(self, incarnation: str) -> None:
        self._running[incarnation][0].kill()

    def wait(self, incarnations: Sequence[str], seconds: float) -> list[str]:
        return [name for name in incarnations if not self._running[name][1].wait(seconds)]


class LocalJob:
    """One life of a job with some tasks on some nodes; `take` stands for Spark and its senders."""

    def __init__(self, operator: Operator, folder: Path, tasks: int, nodes: int, **settings: Any) -> None:
        stages: tuple[Stage, ...] = stages_of(operator, "key")
        described = tuple(
            StageDescription(stage.name, stage.key, stage.operator, runner.input_schema, runner.output_schema)
            for stage, runner in zip(stages, runners_of(stages, ROWS), strict=True)
        )
        self.pipeline = Description(described, tasks, "1")
        self.settings = Settings(heartbeat_seconds=0.1, **settings)
        access = StoreAccess(f"file://{folder}", {}, SECRET)
        self._store, secret = access.open(), access.secret
        self.routing = IntervalRouting(Assignment.even(tasks=tasks, nodes=nodes))
        units = [Unit.of_task(slot) for stage in range(len(stages)) for slot in self.routing.slots(stage)]
        manifests = Manifests(self._store, secret, "job")
        manifest = manifests.recover(first=Manifest.first(units, self.routing.to_json()))
        self.results = ResultLog(self._store, secret, "job")
        published = max(self.results.published(), default=-1)
        names = list(self.routing.assignment.nodes)
        skips = self.settings.on_error == "skip"
        coordinator = Coordinator(
            manifest,
            self.routing,
            published,
            emitting(runners(self.pipeline, self.settings.on_error)),
            names,
            skips_poison=skips,
        )
        token = wire_token(secret, "a life")
        template = NodeSpecification(
            job="job",
            node="",
            incarnation="",
            controller="",
            host="127.0.0.1",
            token=token,
            store=access,
            pipeline=self.pipeline,
            routing=self.routing,
            settings=self.settings,
            keeps_results=True,
        )
        self.launcher = LocalLauncher(template)
        self.nodes = Nodes(
            names,
            self.launcher,
            host="127.0.0.1",
            token=token,
            node_timeout_seconds=self.settings.node_timeout_seconds,
            node_start_seconds=self.settings.node_start_seconds,
        )
        collector = Collector(self._store, secret, "job")
        parts = JobParts("job", manifests, self.results, collector, coordinator, self.settings)
        self.controller = Controller(parts, self.nodes)
        self._log = InputLog(self._store, secret, "job")
        self._batch = published

    def start(self, seconds: float = 60.0) -> None:
        self.controller.start()
        self.controller.wait_until_serving(seconds)

    def take(self, rows: Sequence[tuple[str, int]]) -> int:
        """Commit a batch of these rows; its number."""
        self._batch += 1
        table = pa.Table.from_pylist([{"key": key, "value": value} for key, value in rows], schema=ROWS)
        slots = self.routing.slots_of(key_hash([table["key"]]), 0)
        ref = self._log.append(self._batch, 0, split(table, slots).slices())
        self.controller.accept(self._batch, (ref,), BatchTime(self._batch, 1_000 * self._batch), None)
        return self._batch

    def task_of(self, key: str) -> int:
        return int(self.routing.slots_of(key_hash([pa.chunked_array([pa.array([key])])]), 0)[0])

    def output(self, batch: int) -> list[dict[str, Any]]:
        """What a published batch put out, in any order."""
        rows = self.results.read(batch, self.pipeline.stages[0].name).to_pylist()
        return [{name: value for name, value in row.items() if not name.startswith("_")} for row in rows]

    def status(self) -> JobStatus:
        return JobStatus.of("job", "running", self.controller.status(), 0)

    def close(self) -> None:
        self.controller.close()
        self._store.close()


@contextmanager
def running(
    operator: Operator, folder: Path, *, tasks: int = 4, nodes: int = 2, start: bool = True, **settings: Any
) -> Iterator[LocalJob]:
    job = LocalJob(operator, folder, tasks, nodes, **settings)
    try:
        if start:
            job.start()
        yield job
    finally:
        job.close()


def until(condition: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
    """Wait for it; fails with `what` when that takes too long."""
    waiting = threading.Event()
    for _ in range(int(seconds / 0.02)):
        if condition():
            return
        waiting.wait(0.02)
    raise AssertionError(f"timed out after {seconds:g} s waiting for {what}")
