"""What parts of a node stand on in tests: a spec with a memory store, and a context that collects reports."""

import secrets
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from elastic.core.messages import NodeReport
from elastic.node.context import NodeContext
from elastic.node.spec import NodeSpec
from elastic.operators import Stage
from elastic.operators.stages import build_runners, build_stages
from elastic.results import Description, StageDescription
from elastic.settings import Settings
from elastic.store_access import StoreAccess
from tests.elastic.node.network import CuttableNetwork

SECRET = b"a secret of these tests, long enough"
ROWS = pa.schema([("key", pa.int64()), ("value", pa.int64())])
TASKS = 4
TOKEN = "the token of these tests"  # noqa: S105 - of a network inside this process


def describe(stages: list[Stage]) -> Description:
    named = build_stages(stages, ())
    described = tuple(
        StageDescription(stage.name, stage.key, stage.operator, runner.input_schema, runner.output_schema)
        for stage, runner in zip(named, build_runners(named, ROWS), strict=True)
    )
    return Description(described, TASKS, "1")


def spec_of(pipeline: Any = None, *, driver: str = "driver:0", **settings: Any) -> NodeSpec:
    return NodeSpec(
        job="job",
        node="node-1",
        incarnation="node-1.1",
        driver=driver,
        host="node",
        token=TOKEN,
        store=StoreAccess(f"memory:node-{secrets.token_hex(8)}", {}, SECRET),
        pipeline=pipeline,
        settings=Settings(**{"heartbeat_seconds": 0.02, "snapshot_seconds": 600.0, **settings}),
        keeps_results=True,
    )


class Recorder:
    """Collects what a part of a node reports and fails with; posted calls run at once."""

    def __init__(self) -> None:
        self.reports: list[NodeReport] = []
        self.failures: list[tuple[BaseException, str]] = []
        self.woken = threading.Event()

    def post(self, call: Callable[[], None]) -> None:
        call()
        self.woken.set()

    def fail(self, error: BaseException, cause: str = "") -> None:
        self.failures.append((error, cause))


def context_of(recorder: Recorder | None = None, network: Any = None, **settings: Any) -> NodeContext:
    recorder = recorder or Recorder()
    spec = spec_of(**settings)
    return NodeContext(
        spec,
        spec.store.open(),
        network or CuttableNetwork(),
        threading.Event(),
        recorder.post,
        recorder.reports.append,
        recorder.fail,
    )
