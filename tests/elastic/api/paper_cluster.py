"""A fake cluster that carries out migrations command by command, when a test lets it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from elastic.control import NodeCounters, TaskCounters, Vitals
from elastic.core import commands
from elastic.core.events import MigrationRequested
from tests.elastic.paper_nodes import PaperNodes

_WAIT_SECONDS = 0.005


class PaperCluster(PaperNodes):
    """Implements `elastic.control.Cluster`. Task j has work `1 + j % 5` and `10 kB * (1 + j % 7)` of state.

    While `go` is not set nothing moves; each command takes `step_seconds`.
    """

    state_bytes = 1000

    def __init__(self, tasks: int, nodes: int, room_for: int = 16, step_seconds: float = 0.0) -> None:
        super().__init__(tasks, nodes, room_for)
        self.step_seconds = step_seconds
        self._began = time.monotonic() - 10.0  # long enough for measurements that are not negligible

    def counters(self) -> dict[int, TaskCounters]:
        seconds = time.monotonic() - self._began
        return {
            task: TaskCounters(1000, seconds * (1 + task % 5) / 100, 10_000 * (1 + task % 7), "paper")
            for task in range(self.current.tasks)
        }

    def vitals(self) -> Vitals:
        busy = (time.monotonic() - self._began) / 2
        return Vitals({node: NodeCounters(node, busy, 0) for node in sorted(self.nodes)}, 1, 4)

    def begin(self, request: MigrationRequested) -> None:
        super().begin(request)
        self._open_lease()

    def resume(self, migration: str) -> None:
        super().resume(migration)
        self._open_lease()

    def wait(self, migration: str, seconds: float) -> bool:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends and not self.has_settled(migration) and self.go.wait(_WAIT_SECONDS):
            threading.Event().wait(self.step_seconds if self.waiting else _WAIT_SECONDS)
            self.carry_out(1)
        return self.has_settled(migration)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        yield

    def _open_lease(self) -> None:
        """Open the lease of the next mini-migration, so that its moves are in flight before the first step."""
        while any(isinstance(command, commands.OpenMigrationLease) for command in self.waiting):
            self.carry_out(1)
