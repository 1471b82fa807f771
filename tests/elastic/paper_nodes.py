"""Nodes of paper: what clusters without a Spark have in common."""

import threading
from collections.abc import Sequence

from elastic.control import NodeStep
from elastic.errors import NoRoom, TooFewSlots
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


class PaperNodes:
    """There is room for so many; while `go` is not set nothing moves."""

    def __init__(self, tasks: int, nodes: int, room_for: int) -> None:
        self.current: Ownership = Assignment.even(tasks=tasks, nodes=nodes)
        self.nodes = set(self.current.nodes)
        self.room_for = room_for
        self.slots: int | None = None  # where they can be counted
        self.go = threading.Event()
        self.go.set()
        self.busy: dict[str, NodeStep] = {}
        self.replaced: list[str] = []

    def assignment(self) -> Ownership:
        return self.current

    def steps(self) -> dict[str, NodeStep]:
        return self.busy

    def replace_node(self, node: str, why: str) -> None:
        """Whatever it was busy with is over."""
        self.replaced.append(f"{node}: {why}")
        self.busy.pop(node, None)
        self.go.set()

    def check_room(self, nodes: int) -> None:
        if self.slots is not None and nodes + 1 > self.slots:
            raise TooFewSlots(nodes, self.slots, nodes + 1, f"local[{self.slots}]")

    def add_nodes(self, nodes: Sequence[str]) -> None:
        if len(self.nodes) + len(nodes) > self.room_for:
            raise NoRoom(0, len(nodes), 1.0)
        self.nodes.update(nodes)

    def remove_node(self, node: str) -> None:
        assert node not in self.current.owners
        self.nodes.discard(node)

    def start_nodes(self) -> None:
        self.nodes = set(self.current.owners)
        if len(self.nodes) > self.room_for:
            raise NoRoom(self.room_for, len(self.nodes), 1.0)

    def answered(self, run: MigrationRun, command: Command, size: int, direct_bytes: int = 0) -> list[Command]:
        """Carry a command out, and tell the run; what it wants next. States have this size."""
        if isinstance(command, ReleaseState):
            return run.handle(StateReleased(command.hand_over.source, command.hand_over.tasks, size))
        if isinstance(command, InstallState):
            return run.handle(StateInstalled(command.hand_over.target, command.hand_over.tasks, direct_bytes))
        if isinstance(command, CommitAssignment):
            self.current = command.assignment
            return run.handle(AssignmentCommitted(command.assignment))
        return []
