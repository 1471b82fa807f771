"""A coordinator with nodes that a test drives event by event."""

from collections.abc import Sequence
from typing import Any

from elastic.core import commands, events
from elastic.core.commands import Command
from elastic.core.coordinator import Coordinator
from elastic.core.ids import Batch, UnitId
from elastic.core.messages import DropUnits, InstallUnits, NodeJoined, ReleaseUnits, UnitsInstalled, UnitsReleased
from elastic.routing import Routing
from migration import Assignment, Move, Ownership, ScatteredAssignment, Workload, compute_moves
from storage.state import Manifest, StateRef

LEASE = "000000000001-000000001-ab"


def state_of(unit: UnitId, batch: int = -1, lease: str = LEASE) -> StateRef:
    return StateRef(f"operators/job/state/{lease}/task-{unit.number}-{batch}-x.state", unit, batch, 10, lease)


def moves_to(current: Ownership, target: Ownership) -> tuple[Move, ...]:
    """Return moves of tasks that all have the state size 2."""
    return compute_moves(current, target, Workload([1.0] * current.tasks, [2.0] * current.tasks))


def request_of(
    current: Ownership, target: Ownership, minis: Sequence[Sequence[Move]], **options: bool
) -> events.MigrationRequested:
    return events.MigrationRequested("m1", current, target, tuple(map(tuple, minis)), **options)


class World:
    """Nodes that have joined and have their units, four tasks unless the test says more; no batch is committed."""

    def __init__(
        self,
        current: Ownership | None = None,
        nodes: Sequence[str] | None = None,
        *,
        standbys: int = 0,
        skips_poison: bool = False,
        stateless: Sequence[int] = (),
    ) -> None:
        self.current = current or Assignment.even(tasks=4, nodes=2)
        manifest = Manifest.first([UnitId(0, task) for task in range(self.current.tasks)])
        names = self.current.nodes if nodes is None else nodes
        routing = Routing.by_hash(self.current)
        options = {"standbys": [standbys], "skips_poison": skips_poison, "stateless": stateless}
        self.coordinator = Coordinator(manifest, routing, Batch(-1), [False], names, **options)  # type: ignore[arg-type]
        for name in names:
            decided = self.join(name)
        self.decided = decided  # when the last one had joined

    def hear(self, event: Any) -> list[Command]:
        return self.coordinator.handle(event)

    def incarnation(self, node: str) -> str:
        return next(view.incarnation for view in self.coordinator.view().nodes if view.name == node)

    def report(self, kind: Any, node: str, *facts: Any, **more: Any) -> list[Command]:
        """Let the current incarnation of a node report something, or be lost."""
        return self.hear(kind(node, self.incarnation(node), *facts, **more))

    def lose(self, node: str) -> list[Command]:
        return self.report(events.NodeLost, node, "crashed")

    def join(self, node: str) -> list[Command]:
        joined = self.report(NodeJoined, node, f"address of {node}")
        assert joined == [commands.CommitEpoch(f"{node} joined")]
        return self.hear(events.EpochCommitted(self.coordinator.manifest))

    def begin(self, request: events.MigrationRequested, lease: str = LEASE) -> list[Command]:
        """Begin a migration and open the lease of its first mini-migration."""
        assert self.hear(request) == [commands.OpenMigrationLease()]
        return self.hear(events.MigrationLeaseOpened(lease))

    def release(self, node: str, *tasks: int, lease: str = LEASE, stored: bool = True) -> list[Command]:
        states = tuple(state_of(UnitId(0, task), lease=lease) for task in tasks)
        return self.report(UnitsReleased, node, states, stored=stored)

    def install(self, node: str, *tasks: int, direct_bytes: int = 0) -> list[Command]:
        return self.report(UnitsInstalled, node, tuple(UnitId(0, task) for task in tasks), direct_bytes)

    def commit(self, assignment: Ownership) -> list[Command]:
        routing = Routing.by_hash(assignment, 1)
        return self.hear(events.AssignmentCommitted(self.coordinator.manifest, routing, assignment))


def messages(decided: Sequence[Command], kind: type[Any]) -> list[tuple[str, Any]]:
    """Return the messages of a kind that are to be sent, each with its node."""
    return [
        (one.node, one.message) for one in decided if isinstance(one, commands.Send) and isinstance(one.message, kind)
    ]


def releases(decided: Sequence[Command]) -> list[tuple[str, tuple[int, ...]]]:
    return [(node, tuple(unit.task for unit in one.units)) for node, one in messages(decided, ReleaseUnits)]


def installs(decided: Sequence[Command]) -> list[tuple[str, tuple[int, ...]]]:
    return [(node, tuple(handle.unit.task for handle in one.units)) for node, one in messages(decided, InstallUnits)]


def drops(decided: Sequence[Command]) -> list[tuple[str, tuple[int, ...]]]:
    return [(node, tuple(unit.task for unit in one.units)) for node, one in messages(decided, DropUnits)]


def commits(decided: Sequence[Command]) -> list[Ownership]:
    return [one.assignment for one in decided if isinstance(one, commands.CommitAssignment)]


def leases(decided: Sequence[Command]) -> list[Command]:
    return [one for one in decided if isinstance(one, commands.OpenMigrationLease | commands.CloseMigrationLease)]


def scattered(owners: Sequence[int]) -> ScatteredAssignment:
    """Return the assignment in which task j is on the node of that number, counted from 0."""
    nodes = [f"node-{number + 1}" for number in range(max(1, *owners) + 1)]
    return ScatteredAssignment.from_owners([nodes[owner] for owner in owners], nodes)
