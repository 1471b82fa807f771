"""Fake nodes: the real coordinator decides, and every command that it gives is answered on the spot."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from elastic.control import NodeStep
from elastic.control.key_loads import StageKeyLoads
from elastic.control.standbys import StandbyCopies
from elastic.core import commands, events
from elastic.core.commands import Command
from elastic.core.coordinator import Coordinator
from elastic.core.hand_over import MigrationView
from elastic.core.ids import NO_BATCH, Batch, UnitId
from elastic.core.messages import (
    InstallUnits,
    NodeJoined,
    ReleaseUnits,
    StandbysCaughtUp,
    StoppedUnit,
    UnitsInstalled,
    UnitsReleased,
)
from elastic.core.rekeying import RekeyingView
from elastic.errors import KeysCannotBeSplit, KeysCannotMove, NodeStartTimeout, TooFewSlots
from elastic.routing import Routing
from migration import Assignment, Ownership
from storage.state import Manifest, StateRef

LEASE = "000000000001-000000001-ab"


def state_of(unit: UnitId, batch: int = -1, size: int = 10, lease: str = LEASE) -> StateRef:
    """Return a reference to a state that was saved under a lease."""
    return StateRef(f"operators/job/state/{lease}/task-{unit.number}-{batch}-x.state", unit, batch, size, lease)


class PaperNodes:
    """There is room for so many nodes; while `go` is not set nothing moves. Every state has `state_bytes`.

    Nodes join at once; what a migration needs is queued in `waiting`, and done by `carry_out`.
    """

    state_bytes = 1

    def __init__(self, tasks: int, nodes: int, room_for: int) -> None:
        self.current: Ownership = Assignment.even(tasks=tasks, nodes=nodes)
        self.nodes: set[str] = set()
        self.room_for = room_for
        self.slots: int | None = None  # where they can be counted
        self.go = threading.Event()
        self.go.set()
        self.busy: dict[str, NodeStep] = {}
        self.replaced: list[str] = []
        self.transfers: list[str] = []
        self.stops = 0
        self.reserves = False
        self.waiting: list[Command] = []
        self._starting: dict[str, str] = {}
        self._turn = threading.RLock()
        manifest = Manifest.first([UnitId(0, task) for task in range(tasks)])
        names = self.current.nodes
        self.coordinator = Coordinator(manifest, Routing.by_hash(self.current), Batch(-1), [False], names)
        self._decide(self.coordinator.start())
        self._join()
        self.waiting.clear()

    def assignment(self) -> Ownership:
        return self.current

    def standbys(self) -> StandbyCopies | None:
        return None

    def has_reserves(self) -> bool:
        return self.reserves

    def steps(self) -> dict[str, NodeStep]:
        return self.busy

    def replace_node(self, node: str, why: str) -> None:
        """Whatever it was busy with is over."""
        self.replaced.append(f"{node}: {why}")
        self.busy.pop(node, None)
        self.nodes.discard(node)
        self.post(events.ReplaceRequested(node, why))
        self._join()
        self.go.set()

    def check_room(self, nodes: int) -> None:
        if self.slots is not None and nodes + 1 > self.slots:
            raise TooFewSlots(nodes, self.slots, nodes + 1, f"local[{self.slots}]")

    def add_nodes(self, nodes: Sequence[str]) -> None:
        for node in nodes:
            self.post(events.StartRequested(node))
        try:
            self._join()
        except NodeStartTimeout:
            for node in nodes:
                self.remove_node(node)
            raise

    def remove_node(self, node: str) -> None:
        assert node not in self.current.owners
        self.post(events.StopRequested(node))

    def start_nodes(self) -> None:
        self.post(events.StartOwnersRequested())
        self._join()

    def measure_keys(self, stage: str | None) -> StageKeyLoads:
        raise KeysCannotMove(stage or "0")

    def find_unsplit(self) -> str | None:
        return None

    def split_keys(self, stage: str | None, splits: str) -> None:  # noqa: ARG002 - it has no partial stage
        raise KeysCannotBeSplit(stage)

    def begin(self, request: events.MigrationRequested | events.RekeyRequested) -> None:
        if isinstance(request, events.MigrationRequested):
            self.transfers.append("direct" if request.direct else "store")
        self.post(request)

    def pause(self, migration: str) -> None:
        self.post(events.PauseRequested(migration))

    def resume(self, migration: str) -> None:
        self.post(events.ResumeRequested(migration))

    def cancel(self, migration: str) -> None:
        self.post(events.CancelRequested(migration))

    def note(self, migration: str, line: str) -> None:
        self.post(events.ChangeNoted(migration, line))

    def migration(self, migration: str) -> MigrationView | None:
        with self._turn:
            found = self.coordinator.hand_overs.view()
        return found if found is not None and found.id == migration else None

    def rekeying(self, migration: str) -> RekeyingView | None:
        with self._turn:
            found = self.coordinator.rekeyings.view(())
        return found if found is not None and found.id == migration else None

    def has_settled(self, migration: str) -> bool:
        found = self.migration(migration)
        return found is None or found.is_over or (found.is_paused and found.is_idle)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        self.stops += 1
        self.post(events.StopAllRequested())
        try:
            yield
        except BaseException:
            self.post(events.StopAllRequested())
            raise
        finally:
            self.start_nodes()

    def post(self, event: Any) -> None:
        with self._turn:
            self._decide(self.coordinator.handle(event))

    def carry_out(self, most: int = 1_000_000) -> None:
        """Do so many of the commands that wait, and of those that follow from them."""
        for _ in range(most):
            with self._turn:
                if not self.waiting:
                    return
                self._answer(self.waiting.pop(0))

    def _decide(self, decided: list[Command]) -> None:
        for command in decided:
            if isinstance(command, commands.StartNode):
                self._starting[command.node] = command.incarnation
            elif isinstance(command, commands.StopNode):
                self._starting.pop(command.node, None)
                self.nodes.discard(command.node)
            elif isinstance(command, commands.CommitEpoch):
                self.post(events.EpochCommitted(self.coordinator.manifest))
            else:
                self.waiting.append(command)

    def _join(self) -> None:
        """Let all nodes join that are starting, or none."""
        with self._turn:
            wanted = self.nodes | set(self._starting)
            if len(wanted) > self.room_for:
                raise NodeStartTimeout(len(self.nodes), len(wanted), 1.0)
            starting, self._starting = self._starting, {}
            for node, incarnation in starting.items():
                self.nodes.add(node)
                self.post(NodeJoined(node, incarnation, f"address of {node}"))

    def _answer(self, command: Command) -> None:
        match command:
            case commands.OpenMigrationLease():
                self.post(events.MigrationLeaseOpened(LEASE))
            case commands.Send(node, incarnation, ReleaseUnits(units=units, warm=True)):
                stopped = tuple(StoppedUnit(unit, NO_BATCH) for unit in units)
                self.post(UnitsReleased(node, incarnation, (), stopped=stopped))
            case commands.Send(node, incarnation, ReleaseUnits(units=units)):
                states = tuple(state_of(unit, size=self.state_bytes) for unit in units)
                self.post(UnitsReleased(node, incarnation, states))
            case commands.Send(node, incarnation, InstallUnits(units=handles)) if any(one.standby for one in handles):
                self.post(StandbysCaughtUp(node, incarnation, tuple(one.unit for one in handles)))
            case commands.Send(node, incarnation, InstallUnits(units=handles)):
                direct_bytes = self.state_bytes if self.transfers[-1] == "direct" else 0
                self.post(UnitsInstalled(node, incarnation, tuple(one.unit for one in handles), direct_bytes))
            case commands.CommitAssignment(assignment):
                self.current = assignment
                routing = Routing.by_hash(assignment, 1)
                self.post(events.AssignmentCommitted(self.coordinator.manifest, routing, assignment))
