"""A cluster of paper: migrations are carried out command by command, when a test lets them."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from elastic.control import NodeCounters, TaskCounters, Vitals
from migration.live import MigrationRun
from migration.live.messages import Command
from tests.elastic.paper_nodes import PaperNodes

_WAIT_SECONDS = 0.005


class PaperCluster(PaperNodes):
    """`elastic.control.Cluster`. Task j works `1 + j % 5` and has `10 kB * (1 + j % 7)` of state.

    While `go` is not set nothing moves; each command takes `step_seconds`.
    """

    def __init__(self, tasks: int, nodes: int, room_for: int = 16, step_seconds: float = 0.0) -> None:
        super().__init__(tasks, nodes, room_for)
        self.step_seconds = step_seconds
        self._waiting: list[Command] = []
        self._began = time.monotonic() - 10.0  # so long that what it has measured counts

    def counters(self) -> dict[int, TaskCounters]:
        seconds = time.monotonic() - self._began
        return {
            task: TaskCounters(1000, seconds * (1 + task % 5) / 100, 10_000 * (1 + task % 7), "paper")
            for task in range(self.current.tasks)
        }

    def vitals(self) -> Vitals:
        busy = (time.monotonic() - self._began) / 2
        return Vitals({node: NodeCounters(node, busy, 0) for node in sorted(self.nodes)}, 1, 4)

    def begin(self, run: MigrationRun, transfer: str) -> None:  # noqa: ARG002 - a port's signature
        self._run = run
        self._waiting = run.go_on()

    def wait(self, run: MigrationRun, seconds: float) -> bool:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends and not run.is_over and self.go.wait(_WAIT_SECONDS):
            if not self._waiting:
                threading.Event().wait(_WAIT_SECONDS)
                return run.is_over
            threading.Event().wait(self.step_seconds)
            self._waiting += self.answered(run, self._waiting.pop(0), size=1000)
        return run.is_over

    def go_on(self) -> None:
        self._waiting += self._run.go_on()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        yield

    @contextmanager
    def stopped(self) -> Iterator[None]:
        yield
