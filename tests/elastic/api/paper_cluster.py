"""A cluster of paper: migrations are carried out command by command, when a test lets them."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from elastic.control import NodeCounters, TaskCounters, Vitals
from elastic.errors import NoRoom
from migration import Assignment, Ownership
from migration.live import (
    AssignmentCommitted,
    CommitAssignment,
    InstallState,
    MigrationRun,
    ReleaseState,
    StateInstalled,
    StateReleased,
)
from migration.live.messages import Command

_WAIT_SECONDS = 0.005


class PaperCluster:
    """`elastic.control.Cluster`. Task j works `1 + j % 5` and has `10 kB * (1 + j % 7)` of state.

    While `go` is not set nothing moves; each command takes `step_seconds`.
    """

    def __init__(self, tasks: int, nodes: int, room_for: int = 16, step_seconds: float = 0.0) -> None:
        self.current: Ownership = Assignment.even(tasks=tasks, nodes=nodes)
        self.nodes = set(self.current.nodes)
        self.room_for = room_for
        self.step_seconds = step_seconds
        self.go = threading.Event()
        self.go.set()
        self._waiting: list[Command] = []
        self._began = time.monotonic()

    def assignment(self) -> Ownership:
        return self.current

    def counters(self) -> dict[int, TaskCounters]:
        seconds = time.monotonic() - self._began
        return {
            task: TaskCounters(1000, seconds * (1 + task % 5) / 100, 10_000 * (1 + task % 7), "paper")
            for task in range(self.current.tasks)
        }

    def vitals(self) -> Vitals:
        busy = (time.monotonic() - self._began) / 2
        return Vitals({node: NodeCounters(node, busy, 0) for node in sorted(self.nodes)}, 1, 4)

    def add_nodes(self, nodes: Sequence[str]) -> None:
        if len(self.nodes) + len(nodes) > self.room_for:
            raise NoRoom(0, len(nodes), 1.0)
        self.nodes.update(nodes)

    def remove_node(self, node: str) -> None:
        self.nodes.discard(node)

    @contextmanager
    def moving(self, run: MigrationRun, transfer: str) -> Iterator[None]:  # noqa: ARG002 - a port's signature
        self._run = run
        self._waiting = run.start()
        yield

    def wait(self, run: MigrationRun, seconds: float) -> bool:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends and not run.is_over and self.go.wait(_WAIT_SECONDS):
            if not self._waiting:
                threading.Event().wait(_WAIT_SECONDS)
                return run.is_over
            threading.Event().wait(self.step_seconds)
            self._carry_out(self._waiting.pop(0))
        return run.is_over

    def _carry_out(self, command: Command) -> None:
        if isinstance(command, ReleaseState):
            self._waiting += self._run.handle(StateReleased(command.hand_over.source, command.hand_over.tasks, 1000))
        elif isinstance(command, InstallState):
            self._waiting += self._run.handle(StateInstalled(command.hand_over.target, command.hand_over.tasks))
        elif isinstance(command, CommitAssignment):
            self.current = command.assignment
            self._waiting += self._run.handle(AssignmentCommitted(command.assignment))

    def go_on(self) -> None:
        self._waiting += self._run.go_on()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        yield

    @contextmanager
    def stopped(self) -> Iterator[None]:
        yield

    def start_nodes(self) -> None:
        self.nodes = set(self.current.owners)
