"""The life of a hand-over: some tasks leave a source node, and a target node takes them over while the stream runs.

A migration is a sequence of mini-migrations, and a mini-migration is a set of hand-overs that are committed together:

    MigrationRequested -> OpenMigrationLease                                      (once per mini-migration)
    MigrationLeaseOpened -> ReleaseUnits to every source
    UnitsReleased, and the results of the source reported -> InstallUnits to the target
    UnitsInstalled by every target -> CommitAssignment
    AssignmentCommitted -> DropUnits to every source, CloseMigrationLease, next mini-migration

A *warm* migration lets the targets follow the units first, as standbys do, from the last snapshot and the log: the
source works on. When all targets have caught up, the sources stop at the end of their batch and store nothing, and the
targets, which have all but the last few steps, go on. A target that is a standby already has nothing to load. A warm
migration that is cancelled while its targets follow has changed nothing, and ends at once.

    MigrationLeaseOpened -> InstallUnits to every target, to follow
    StandbysCaughtUp by every target -> ReleaseUnits to every source, then as above

The source keeps its state until the end, and the log keeps the input since the last snapshot. So the driver does not
wait for a source that is lost before its states are stored: the target restores the tasks from the last snapshot and
the log, and gets them once more if it waits for a state that only the source had. A lost target is replaced under its
name by another incarnation, which gets the same tasks.

`TABLE` is the protocol of one hand-over; `HandOvers` runs the migration under way by it.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from elastic.core import commands, events
from elastic.core.batches import Batches
from elastic.core.commands import Command
from elastic.core.ids import Epoch, Task
from elastic.core.messages import DropUnits, ReleaseUnits, StateStored, UnitsInstalled, UnitsReleased
from elastic.core.nodes import Nodes
from elastic.core.placement import Placement
from elastic.core.standbys import Standbys
from elastic.errors import IllegalTransition
from elastic.routing.standbys import carry_standbys
from migration import Move, Ownership, ScatteredAssignment

_STORY_LENGTH = 1_000


class HandOverPhase(StrEnum):
    """
    | phase | meaning |
    | --- | --- |
    | planned | nothing has happened |
    | following | the target fetches the last saved state and follows the source, which works on |
    | releasing | the source finishes its batch, stops these tasks and stores or offers their state |
    | installing | the target fetches the state, verifies it and replays what came in between |
    | installed | the target works; the assignment is not committed yet |
    | restoring | the assignment is committed, but the target was lost meanwhile and fetches the state once more |
    | done | the assignment is committed, the target works, and the source drops the tasks or follows them |
    """

    PLANNED = "planned"
    FOLLOWING = "following"
    RELEASING = "releasing"
    INSTALLING = "installing"
    INSTALLED = "installed"
    RESTORING = "restoring"
    DONE = "done"


class HandOverEvent(StrEnum):
    STARTED = "started"
    STARTED_WARM = "started warm"
    TARGET_CAUGHT_UP = "target caught up"
    STATE_RELEASED = "state released"
    SOURCE_LOST = "source lost"
    TARGET_LOST = "target lost"
    STATE_INSTALLED = "state installed"
    ASSIGNMENT_COMMITTED = "assignment committed"


class HandOverAction(StrEnum):
    FOLLOW = "follow units"
    RELEASE = "release units"
    INSTALL = "install units"
    DROP = "drop units"


_P, _E, _A = HandOverPhase, HandOverEvent, HandOverAction

# An event that has no row for a phase is an error. A row that leads to its own phase says that the event is expected
# there and changes nothing.
TABLE: dict[tuple[HandOverPhase, HandOverEvent], tuple[HandOverPhase, tuple[HandOverAction, ...]]] = {
    (_P.PLANNED, _E.STARTED): (_P.RELEASING, (_A.RELEASE,)),
    (_P.PLANNED, _E.STARTED_WARM): (_P.FOLLOWING, (_A.FOLLOW,)),
    (_P.PLANNED, _E.SOURCE_LOST): (_P.PLANNED, ()),
    (_P.PLANNED, _E.TARGET_LOST): (_P.PLANNED, ()),
    (_P.FOLLOWING, _E.TARGET_CAUGHT_UP): (_P.RELEASING, (_A.RELEASE,)),
    (_P.FOLLOWING, _E.SOURCE_LOST): (_P.INSTALLING, (_A.INSTALL,)),
    (_P.FOLLOWING, _E.TARGET_LOST): (_P.FOLLOWING, (_A.FOLLOW,)),
    (_P.RELEASING, _E.STATE_RELEASED): (_P.INSTALLING, (_A.INSTALL,)),
    (_P.RELEASING, _E.SOURCE_LOST): (_P.INSTALLING, (_A.INSTALL,)),
    (_P.RELEASING, _E.TARGET_LOST): (_P.RELEASING, ()),
    (_P.INSTALLING, _E.STATE_INSTALLED): (_P.INSTALLED, ()),
    (_P.INSTALLING, _E.SOURCE_LOST): (_P.INSTALLING, (_A.INSTALL,)),
    (_P.INSTALLING, _E.TARGET_LOST): (_P.INSTALLING, (_A.INSTALL,)),
    (_P.INSTALLING, _E.ASSIGNMENT_COMMITTED): (_P.RESTORING, ()),
    (_P.INSTALLED, _E.SOURCE_LOST): (_P.INSTALLED, ()),
    (_P.INSTALLED, _E.TARGET_LOST): (_P.INSTALLING, (_A.INSTALL,)),
    (_P.INSTALLED, _E.ASSIGNMENT_COMMITTED): (_P.DONE, (_A.DROP,)),
    (_P.RESTORING, _E.STATE_INSTALLED): (_P.DONE, (_A.DROP,)),
    (_P.RESTORING, _E.SOURCE_LOST): (_P.RESTORING, (_A.INSTALL,)),
    (_P.RESTORING, _E.TARGET_LOST): (_P.RESTORING, (_A.INSTALL,)),
    (_P.DONE, _E.SOURCE_LOST): (_P.DONE, ()),
    (_P.DONE, _E.TARGET_LOST): (_P.DONE, ()),
}


def next_phase(phase: HandOverPhase, event: HandOverEvent) -> tuple[HandOverPhase, tuple[HandOverAction, ...]]:
    """Return what `TABLE` says; `IllegalTransition` if it says nothing."""
    try:
        return TABLE[phase, event]
    except KeyError:
        raise IllegalTransition(phase, event) from None


def render_diagram() -> str:
    """Return the table as a state diagram in Mermaid's syntax, for the documentation."""
    lines = ["stateDiagram-v2", "    [*] --> planned"]
    for (phase, event), (after, actions) in TABLE.items():
        if (after, actions) != (phase, ()):
            label = event + (f" / {', '.join(actions)}" if actions else "")
            lines.append(f"    {phase} --> {after}: {label}")
    return "\n".join([*lines, "    done --> [*]"])


class HandOver(NamedTuple):
    """Tasks that go together from one node to another."""

    source: str
    target: str
    tasks: tuple[Task, ...]
    size: float

    def part(self, source: str, tasks: Sequence[Task]) -> "HandOver":
        """Return the part of it that moves these of its tasks, from a node that has taken them over."""
        return HandOver(source, self.target, tuple(tasks), self.size * len(tasks) / len(self.tasks))

    def __str__(self) -> str:
        return f"{len(self.tasks)} tasks: {self.source} -> {self.target} ({self.size:g})"


class AwaitedNode(NamedTuple):
    """A node that has to follow, release or install these tasks."""

    node: str
    action: str
    tasks: tuple[Task, ...]


@dataclass(frozen=True)
class MigrationView:
    """A migration at one moment. Sizes are the plan's, `stored_bytes` is what the states really took.

    `direct_bytes` of them went straight from node to node. `assignment` is the one committed last.
    """

    id: str
    assignment: Ownership
    in_flight: tuple[HandOver, ...] = ()
    awaited: tuple[AwaitedNode, ...] = ()
    is_paused: bool = False
    is_cancelled: bool = False
    is_committing: bool = False  # the assignment may be committed at any moment: too late to abandon the migration
    mini_migrations_done: int = 0
    mini_migrations: int = 0
    tasks_done: int = 0
    tasks: int = 0
    size_done: float = 0.0
    size: float = 0.0
    stored_bytes: int = 0
    direct_bytes: int = 0
    story: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """One line; its fields have everything."""
        return f"MigrationView({self.id!r}, {self.tasks_done} of {self.tasks} tasks, in_flight={len(self.in_flight)})"

    @property
    def is_over(self) -> bool:
        done = self.is_cancelled or self.mini_migrations_done == self.mini_migrations
        return done and not self.in_flight

    @property
    def is_idle(self) -> bool:
        """Whether no mini-migration is in flight."""
        return not self.in_flight


@dataclass
class _InFlight:
    """One hand-over of the mini-migration in flight."""

    hand_over: HandOver
    phase: HandOverPhase = HandOverPhase.PLANNED
    missing: set[Task] = field(default_factory=set)  # tasks that the target has not installed

    @property
    def awaits_target(self) -> bool:
        return self.phase in (HandOverPhase.INSTALLING, HandOverPhase.RESTORING)


@dataclass
class _Migration:
    """The migration under way."""

    spec: events.MigrationRequested
    assignment: Ownership
    waiting: list[list[HandOver]]
    in_flight: list[_InFlight] = field(default_factory=list)
    is_paused: bool = False
    is_cancelled: bool = False
    lease: str = ""  # of the mini-migration in flight
    lease_requested: bool = False
    committing: Ownership | None = None  # an assignment that may be committed at any moment
    done: list[HandOver] = field(default_factory=list)
    stored_bytes: int = 0
    direct_bytes: int = 0
    story: list[str] = field(default_factory=list)

    @property
    def can_continue(self) -> bool:
        """Whether another mini-migration may start now."""
        return bool(self.waiting) and not (self.in_flight or self.is_paused or self.is_cancelled)

    @property
    def is_over(self) -> bool:
        return not self.in_flight and (self.is_cancelled or not self.waiting)


class HandOvers:
    """At most one migration at a time; requests that concern another one change nothing.

    A pause or a cancellation takes effect between two mini-migrations: what has begun is brought to its end. Every
    mini-migration has a lease of its own, so a paused migration pins nothing in the store.
    """

    def __init__(
        self, placement: Placement, nodes: Nodes, batches: Batches, standbys: Standbys, epoch: Callable[[], Epoch]
    ) -> None:
        self._placement = placement
        self._nodes = nodes
        self._batches = batches
        self._standbys = standbys
        self._epoch = epoch
        self._migration: _Migration | None = None
        self._unconfirmed: dict[str, list[UnitsReleased]] = {}  # by source: its last results are not all reported
        self._view: MigrationView | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether a migration is under way, paused or not."""
        return self._migration is not None and not self._migration.is_over

    def moving_tasks(self) -> set[Task]:
        """Return the tasks that no standby may take over, because the table decides who has them next."""
        in_flight = self._migration.in_flight if self._migration is not None else ()
        settled = (HandOverPhase.FOLLOWING, HandOverPhase.DONE)
        return {task for one in in_flight if one.phase not in settled for task in one.hand_over.tasks}

    @property
    def is_moving(self) -> bool:
        """Whether a migration is under way and not paused."""
        migration = self._migration
        return migration is not None and not migration.is_over and not migration.is_paused

    # What is requested.

    def begin(self, spec: events.MigrationRequested) -> list[Command]:
        abandoned = self._close_lease()
        waiting = [_group_moves(moves) for moves in spec.mini_migrations if moves]
        self._migration = _Migration(spec, spec.current, waiting, is_paused=spec.paused)
        return abandoned

    def pause(self, migration_id: str) -> None:
        if (migration := self._find(migration_id)) is not None:
            migration.is_paused = True

    def resume(self, migration_id: str) -> None:
        if (migration := self._find(migration_id)) is not None:
            migration.is_paused = False

    def cancel(self, migration_id: str) -> None:
        """Leave out what has not begun; the assignment is then that of what was done.

        As long as all targets only follow, nothing has begun; `Standbys` lets them drop what they have loaded.
        """
        if (migration := self._find(migration_id)) is None:
            return
        migration.is_cancelled = True
        if {one.phase for one in migration.in_flight} == {HandOverPhase.FOLLOWING}:
            for one in migration.in_flight:
                self._placement.end_move(self._placement.units_of(one.hand_over.tasks))
            migration.in_flight.clear()
            migration.story.append("cancelled while the targets followed: nothing has moved")
            self._standbys.note_change()

    def note(self, migration_id: str, line: str) -> None:
        """Add a line to the story of the migration."""
        if (migration := self._find(migration_id)) is not None:
            migration.story.append(line)

    def abandon(self) -> list[Command] | None:
        """Give the migration up, because all nodes stop; None, and nothing changes, if its commit is under way."""
        migration = self._migration
        if migration is not None and not migration.is_over:
            if migration.committing is not None:
                return None
            migration.is_cancelled = True
            migration.in_flight.clear()
            migration.story.append("all nodes stop: what was in flight did not happen")
        self._unconfirmed.clear()
        return self._close_lease()

    # What happened.

    def lease_opened(self, lease: str) -> list[Command]:
        """Start the next mini-migration, unless the migration was paused, cancelled or abandoned meanwhile."""
        migration = self._migration
        if migration is None or not migration.lease_requested or not migration.can_continue:
            if migration is not None:
                migration.lease_requested = False
            return [commands.CloseMigrationLease(lease)]
        migration.lease_requested = False
        migration.lease = lease
        next_mini = self._redirect_to_owners(migration.waiting.pop(0))
        migration.in_flight = [_InFlight(hand_over, missing=set(hand_over.tasks)) for hand_over in next_mini]
        if not next_mini:
            self._add_stranded(migration)
        event = HandOverEvent.STARTED_WARM if migration.spec.warm else HandOverEvent.STARTED
        return [command for one in migration.in_flight for command in self._advance(one, event)]

    def units_released(self, report: UnitsReleased) -> None:
        if all(self._placement.is_leaving(one.unit, report.node) for one in report.last_batches):
            self._unconfirmed.setdefault(report.node, []).append(report)

    def state_stored(self, report: StateStored) -> None:
        self._placement.state_stored(report.state)

    def units_installed(self, report: UnitsInstalled) -> list[Command]:
        tasks = self._placement.units_installed(report.units)
        migration, decided = self._migration, list[Command]()
        if migration is None:
            return decided
        waiting = [one for one in migration.in_flight if one.hand_over.target == report.node and one.awaits_target]
        if any(not one.missing.isdisjoint(tasks) for one in waiting):
            migration.direct_bytes += report.direct_bytes
            migration.story.append(f"{report.node} installed tasks {_join_tasks(tasks)}")
        for one in waiting:
            one.missing.difference_update(tasks)
            if not one.missing:
                decided += self._advance(one, HandOverEvent.STATE_INSTALLED)
        return decided

    def assignment_committed(self, assignment: Ownership) -> list[Command]:
        migration = self._migration
        if migration is None or migration.is_over:
            return []
        migration.assignment = assignment
        if migration.committing is None:
            return []  # standbys have taken over tasks that do not move
        migration.committing = None
        migration.story.append("the assignment is committed")
        event = HandOverEvent.ASSIGNMENT_COMMITTED
        return [command for one in migration.in_flight for command in self._advance(one, event)]

    def node_lost(self, node: str) -> list[Command]:
        self._unconfirmed.pop(node, None)
        self._retarget_followers(node)
        decided: list[Command] = []
        for one in self._migration.in_flight if self._migration is not None else ():
            if one.hand_over.source == node:
                decided += self._advance(one, HandOverEvent.SOURCE_LOST)
            if one.hand_over.target == node:
                one.missing = set(one.hand_over.tasks)
                decided += self._advance(one, HandOverEvent.TARGET_LOST)
        return decided

    def _retarget_followers(self, lost: str) -> None:
        """Let targets follow the standbys that have taken over from a lost source; the other tasks still are its own.

        A target that has taken over itself has to install its units, like one whose source is lost for good.
        """
        migration = self._migration
        for one in list(migration.in_flight) if migration is not None else ():
            if migration is None or one.phase is not HandOverPhase.FOLLOWING or one.hand_over.source != lost:
                continue
            by_owner = self._group_by_owner(one.hand_over)
            lost_tasks = [*by_owner.pop(lost, ()), *by_owner.pop(one.hand_over.target, ())]
            parts = [(lost, lost_tasks)] if lost_tasks else []
            parts += by_owner.items()
            index = migration.in_flight.index(one)
            migration.in_flight[index : index + 1] = [
                _InFlight(one.hand_over.part(source, tasks), one.phase, set(tasks)) for source, tasks in parts
            ]

    # What follows from it.

    def advance(self) -> list[Command]:
        """Return what has become possible: installs, the commit, the end of a mini-migration, the next one."""
        decided = self._confirm_releases()
        migration = self._migration
        if migration is None:
            return decided
        following = [one for one in migration.in_flight if one.phase is HandOverPhase.FOLLOWING]
        if all(self._has_caught_up(one.hand_over) for one in following):  # together, because each switch is a pause
            for one in following:
                if any(one is other for other in migration.in_flight):  # else a source was found lost, and it was split
                    decided += self._advance(one, HandOverEvent.TARGET_CAUGHT_UP)
        phases = {one.phase for one in migration.in_flight}
        if phases == {HandOverPhase.INSTALLED} and not self._placement.is_committing:
            migration.committing = after = self._after()
            self._placement.is_committing = True
            decided.append(commands.CommitAssignment(after, carry_standbys(self._placement.committed, after)))
        elif phases == {HandOverPhase.DONE}:
            migration.done += [one.hand_over for one in migration.in_flight]
            migration.in_flight.clear()
            self._add_stranded(migration)
        if not migration.in_flight:
            decided += self._close_lease()
        if migration.can_continue and not migration.lease_requested:
            migration.lease_requested = True
            decided.append(commands.OpenMigrationLease())
        return decided

    def view(self) -> MigrationView | None:
        """Return the latest migration as other threads may see it; None before the first."""
        migration, last = self._migration, self._view
        if migration is None:
            return None
        if migration.is_over and last is not None and last.id == migration.spec.id and last.is_over:
            return last  # it does not change any more, and the view is asked for after every event
        planned = [h for mini in migration.waiting for h in mini] + [one.hand_over for one in migration.in_flight]
        everything = [*migration.done, *planned]
        total = sum(1 for moves in migration.spec.mini_migrations if moves)
        self._view = MigrationView(
            migration.spec.id,
            migration.assignment,
            tuple(one.hand_over for one in migration.in_flight),
            tuple(_list_awaited_nodes(migration.in_flight)),
            migration.is_paused,
            migration.is_cancelled,
            migration.committing is not None,
            total - len(migration.waiting) - bool(migration.in_flight),
            total,
            sum(len(one.tasks) for one in migration.done),
            sum(len(one.tasks) for one in everything),
            sum(one.size for one in migration.done),
            sum(one.size for one in everything),
            migration.stored_bytes,
            migration.direct_bytes,
            tuple(migration.story[-_STORY_LENGTH:]),
        )
        return self._view

    def _find(self, migration_id: str) -> _Migration | None:
        migration = self._migration
        return migration if migration is not None and migration.spec.id == migration_id else None

    def _advance(self, one: _InFlight, event: HandOverEvent) -> list[Command]:
        one.phase, actions = next_phase(one.phase, event)
        return [command for action in actions for command in self._carry_out(action, one.hand_over)]

    def _carry_out(self, action: HandOverAction, hand_over: HandOver) -> list[Command]:
        migration = self._migration
        assert migration is not None  # noqa: S101 - for the type checker; a hand-over belongs to one
        migration.story.append(f"{action}: {hand_over}")
        units = self._placement.units_of(hand_over.tasks)
        if action is HandOverAction.FOLLOW:
            self._placement.prepare(units, hand_over.target)
            self._standbys.note_change()
            return self._nodes.request_start(hand_over.target)
        if action is HandOverAction.RELEASE:
            self._placement.begin_move(units, hand_over.target)
            spec = migration.spec
            message = ReleaseUnits(self._epoch(), tuple(units), migration.lease, spec.direct, spec.warm)
            # A source that has no units at the moment was lost with them: the target restores them.
            return self._nodes.send(hand_over.source, message) or self.node_lost(hand_over.source)
        if action is HandOverAction.INSTALL:
            # The target may have been stopped: a restart that was paused for a moment begins with the old nodes alone.
            self._placement.begin_move(units, hand_over.target)
            self._placement.request_install(units, hand_over.target)
            return self._nodes.request_start(hand_over.target)
        self._placement.end_move(units)
        dropped = tuple(unit for unit in units if not self._standbys.wants(unit, hand_over.source))
        return self._nodes.send(hand_over.source, DropUnits(self._epoch(), dropped)) if dropped else []

    def _confirm_releases(self) -> list[Command]:
        """Install what was released, but not before the last results of the source are reported.

        The target must know which output it need not report again.
        """
        decided: list[Command] = []
        for source, reports in self._unconfirmed.items():
            for report in list(reports):
                if all(self._batches.has_reported(one.unit, one.batch) for one in report.last_batches):
                    reports.remove(report)
                    self._placement.units_released(source, report.states, stored=report.stored)
                    decided += self._record_releases(report)
        return decided

    def _record_releases(self, report: UnitsReleased) -> list[Command]:
        decided: list[Command] = []
        tasks = {Task(one.unit.task) for one in report.last_batches}
        for one in self._migration.in_flight if self._migration is not None else ():
            is_source = one.hand_over.source == report.node and tasks.issuperset(one.hand_over.tasks)
            if is_source and one.phase is HandOverPhase.RELEASING and self._migration is not None:
                self._migration.stored_bytes += sum(ref.size for ref in report.states)
                self._migration.story.append(f"{report.node} released tasks {_join_tasks(sorted(tasks))}")
                decided += self._advance(one, HandOverEvent.STATE_RELEASED)
        return decided

    def _after(self) -> Ownership:
        """Return the assignment once the hand-overs in flight have ended."""
        migration = self._migration
        assert migration is not None  # noqa: S101 - for the type checker
        target = migration.spec.target
        # Not by moves from the sources: a source that took over a moment ago is not the committed owner yet.
        owners = list(self._placement.settled_owners())
        for one in migration.in_flight:
            for task in one.hand_over.tasks:
                owners[task] = one.hand_over.target
        nodes = list(dict.fromkeys((*migration.assignment.nodes, *target.nodes, *owners)))
        after = ScatteredAssignment.from_owners(owners, nodes)
        if after.owners == target.owners:
            return target
        # Without nodes that own nothing: after a cancellation they leave, and no plan may count on them. A node that
        # was there before and stays may have lost its tasks to standbys.
        working = {*after.owners, *set(migration.spec.current.nodes).intersection(target.nodes)}
        return ScatteredAssignment.from_owners(after.owners, [node for node in nodes if node in working])

    def _redirect_to_owners(self, mini: Sequence[HandOver]) -> list[HandOver]:
        """Return the hand-overs of a mini-migration from the nodes that own the tasks now.

        Another node than planned does after a standby has taken over; if that is the target, nothing is left to do.
        """
        current: list[HandOver] = []
        for planned in mini:
            by_owner = self._group_by_owner(planned)
            current += [planned.part(owner, tasks) for owner, tasks in by_owner.items() if owner != planned.target]
        return current

    def _add_stranded(self, migration: _Migration) -> None:
        """At the end, move tasks that standbys took over on nodes that are to leave."""
        if migration.waiting or migration.is_cancelled:
            return
        target = migration.spec.target
        leaving = set(migration.spec.current.nodes).difference(target.nodes)
        stranded: dict[tuple[str, str], list[Task]] = defaultdict(list)
        for task, owner in enumerate(self._placement.settled_owners()):
            if owner in leaving and owner != target.owners[task]:
                stranded[owner, target.owners[task]].append(Task(task))
        if stranded:
            migration.waiting.append([HandOver(*pair, tuple(tasks), 0.0) for pair, tasks in stranded.items()])

    def _group_by_owner(self, hand_over: HandOver) -> dict[str, list[Task]]:
        by_owner: dict[str, list[Task]] = defaultdict(list)
        for task in hand_over.tasks:
            by_owner[self._placement.owner(self._placement.units_of([task])[0])].append(task)
        return by_owner

    def _has_caught_up(self, hand_over: HandOver) -> bool:
        return self._placement.has_standbys(hand_over.target, self._placement.units_of(hand_over.tasks))

    def _close_lease(self) -> list[Command]:
        if self._migration is None or not self._migration.lease:
            return []
        lease, self._migration.lease = self._migration.lease, ""
        return [commands.CloseMigrationLease(lease)]


def _group_moves(moves: Sequence[Move]) -> list[HandOver]:
    """Group the moves of one mini-migration by source and target."""
    pairs: dict[tuple[str, str], list[Move]] = defaultdict(list)
    for move in moves:
        pairs[move.source, move.target].append(move)
    return [
        HandOver(source, target, tuple(Task(move.task) for move in together), sum(move.size for move in together))
        for (source, target), together in pairs.items()
    ]


def _list_awaited_nodes(in_flight: Sequence[_InFlight]) -> list[AwaitedNode]:
    found = []
    for one in in_flight:
        if one.phase is HandOverPhase.FOLLOWING:
            found.append(AwaitedNode(one.hand_over.target, "follow", one.hand_over.tasks))
        elif one.phase is HandOverPhase.RELEASING:
            found.append(AwaitedNode(one.hand_over.source, "release", one.hand_over.tasks))
        elif one.awaits_target:
            found.append(AwaitedNode(one.hand_over.target, "install", tuple(sorted(one.missing))))
    return found


def _join_tasks(tasks: Sequence[int]) -> str:
    return ", ".join(map(str, tasks))
