"""A node in a thread, and the driver that a test scripts for it: it sends commands and collects reports."""

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa

from elastic.core.ids import NO_BATCH, Batch, Epoch, UnitId
from elastic.core.messages import (
    ApplyStep,
    Heartbeat,
    InstallUnits,
    LeaveJob,
    Message,
    NodeReport,
    UnitHandle,
    decode_message,
    encode_message,
)
from elastic.core.steps import Position, Step
from elastic.node.process import NodeProcess
from elastic.operators import Operator, Stage
from elastic.routing import Routing, hash_keys, split
from elastic.wire import Refused
from migration import Assignment
from storage.state import BatchTime, InputLog, LogRef
from tests.elastic.node.context import ROWS, TASKS, TOKEN, describe, spec_of
from tests.elastic.node.network import CuttableNetwork
from tests.elastic.node.states import wait_until

UNITS = tuple(UnitId(0, task) for task in range(TASKS))
ROUTING = Routing.by_hash(Assignment.even(TASKS, 1))
Report = TypeVar("Report", bound=NodeReport)


class ScriptedDriver:
    """Accepts every report until a test makes it refuse them."""

    def __init__(self, network: CuttableNetwork) -> None:
        self.refuses = False
        self.reports: list[NodeReport] = []
        self.heartbeats: list[Heartbeat] = []
        self.before_report: Callable[[NodeReport], None] = lambda _: None
        self.endpoint = network.listen("driver", TOKEN, {"report": self._receive})
        self._numbers = 0

    def of(self, kind: type[Report]) -> list[Report]:
        return [report for report in self.reports if isinstance(report, kind)]

    def wait_for(self, kind: type[Report], count: int = 1) -> list[Report]:
        wait_until(lambda: len(self.of(kind)) >= count)
        return self.of(kind)

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers - 1

    def _receive(self, document: dict[str, Any]) -> str:
        if self.refuses:
            raise Refused("node-1.1 was replaced")
        report = decode_message(document)
        assert isinstance(report, NodeReport)
        self.before_report(report)
        if isinstance(report, Heartbeat):
            self.heartbeats.append(report)
        else:
            self.reports.append(report)
        return "accepted"


class RunningNode:
    """A node on a memory store with one stage of four tasks; `batch` stands for senders and the driver's commits."""

    def __init__(self, operator: Operator, **settings: Any) -> None:
        self.network = CuttableNetwork()
        self.driver = ScriptedDriver(self.network)
        self.exits: list[int] = []
        spec = spec_of(describe([Stage(operator, ("key",))]), driver=self.driver.endpoint.address, **settings)
        self.store = spec.store.open()
        self.log = InputLog(self.store, spec.store.secret, spec.job)
        self.process = NodeProcess(spec, self.network, exit_process=self.exits.append)
        self.address = self.process._endpoint.address
        self.left: list[str] = []
        self.thread = threading.Thread(target=lambda: self.left.append(self.process.run()), daemon=True)
        self.thread.start()

    def send(self, message: Message, number: int | None = None) -> None:
        number = self.driver.next_number() if number is None else number
        self.network.connect(self.address, TOKEN).call("command", {"number": number, **encode_message(message)})

    def install(self, *steps: Step, reported: Position | None = None, **settings: Any) -> None:
        handles = tuple(UnitHandle(unit, None, NO_BATCH, reported or Position(NO_BATCH, 0)) for unit in UNITS)
        self.send(InstallUnits(Epoch(1), handles, steps, routing=ROUTING, cause="e0", **settings))

    def append(self, batch: int, *rows: tuple[int, int], partition: int = 0) -> LogRef:
        """Log rows of (key, value), as a sender does."""
        table = pa.Table.from_pylist([{"key": key, "value": value} for key, value in rows], schema=ROWS)
        numbers = ROUTING.unit_numbers(hash_keys([table["key"]]), 0)
        return self.log.append(batch, partition, split(table, numbers).slices())

    def step(self, batch: int, *rows: tuple[int, int]) -> Step:
        """Log rows and return the step that commits them."""
        logs = (self.append(batch, *rows),) if rows else ()
        return Step(Position(Batch(batch), 0), True, logs, BatchTime(batch, 1_000 * batch))

    def apply(self, step: Step) -> None:
        self.send(ApplyStep(Epoch(1), step, cause=f"e{step.batch + 1}"))

    def close(self) -> None:
        if self.thread.is_alive():
            self.process.kill()
            self.thread.join(10)
        assert not self.thread.is_alive()

    def leave(self) -> str:
        """Let the node leave as the driver would, and return why it left."""
        self.send(LeaveJob())
        self.thread.join(10)
        return self.left[0]


def pause(seconds: float = 0.1) -> None:
    """Give a node time for what it must not do."""
    time.sleep(seconds)
