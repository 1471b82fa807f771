"""The driver's decisions: events in, commands out, no I/O.

The log is the truth. A batch is committed when the manifest names its log objects; rows that senders bring to a node
before that are only a cache. So a node may die at any moment: the next owner of its units repeats the committed steps
and ends in the same state. Results are published, and states replace the log, only when every unit of the job has
taken every round of a batch.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from elastic.core import commands, events
from elastic.core.backlogs import Backlogs
from elastic.core.batches import Batches
from elastic.core.commands import Command
from elastic.core.crashes import LIMIT, Crashes, Death
from elastic.core.hand_over import HandOvers
from elastic.core.ids import NO_BATCH, Batch, Epoch, UnitId
from elastic.core.messages import (
    ApplyStep,
    CaughtUp,
    Heartbeat,
    InstallUnits,
    NodeFailed,
    NodeJoined,
    SnapshotTaken,
    StandbysCaughtUp,
    StandbysDropped,
    StateStored,
    StepApplied,
    StepEnded,
    StepOverdue,
    StepStarted,
    TakeSnapshot,
    UnitHandle,
    UnitsInstalled,
    UnitsReleased,
)
from elastic.core.nodes import Nodes
from elastic.core.placement import Placement
from elastic.core.recoveries import Recoveries
from elastic.core.rekeying import Rekeyings
from elastic.core.snapshots import Snapshots
from elastic.core.stage_costs import NodeCosts
from elastic.core.standbys import Standbys
from elastic.core.steps import Step
from elastic.core.view import JobView
from elastic.errors import PoisonedStep, UnknownEvent
from elastic.routing import Groupings, Routing
from storage.state import Manifest


class Coordinator:
    """One job's decisions in one life of its driver. `handle` never blocks; calls must not overlap."""

    def __init__(
        self,
        manifest: Manifest,
        routing: Routing,
        published: Batch,
        emitting: Sequence[bool],
        nodes: Sequence[str],
        *,
        standbys: Sequence[int] = (),  # of the units of each stage
        standbys_of_guests: Sequence[int] = (),  # of those that are guests, if that is another number
        stateless: Collection[int] = (),  # stages whose units need no steps before those that they have to report
        skips_poison: bool = False,  # whether rows that kill processes are quarantined rather than fail the job
    ) -> None:
        self.manifest = manifest
        self.failure: NodeFailed | PoisonedStep | None = None
        units = frozenset(unit for stage in range(len(emitting)) for unit in routing.units(stage))
        self.placement = Placement(routing, units)
        self._known_to_nodes = routing
        self._costs_of_nodes: tuple[NodeCosts, ...] = ()
        self.rekeyings = Rekeyings(self._groupings)
        self.batches = Batches(manifest, published, emitting, units, self.rekeyings, self._groupings)
        self._regrouped = self.batches.newest.batch  # or before: an earlier driver did not say
        self.snapshots = Snapshots(self._through)
        self.nodes = Nodes(lambda: self.manifest.number, nodes)
        self.standbys = Standbys(
            self.placement,
            self.nodes,
            standbys or [0] * len(emitting),
            self._standby_installation,
            self._epoch,
            of_guests=standbys_of_guests,
        )
        self.hand_overs = HandOvers(self.placement, self.nodes, self.batches, self.standbys, self._epoch)
        self.backlogs = Backlogs()
        self.crashes = Crashes()
        self.recoveries = Recoveries()
        self._skips_poison = skips_poison
        self._stateless = frozenset(stateless)
        self._epoch_requested = False
        self._now = 0.0
        self._handled = 0
        self._handlers: Mapping[type, Callable[[Any], Iterable[Command] | None]] = {
            NodeJoined: self._node_joined,
            Heartbeat: lambda event: self.nodes.heard(event, self._now),
            StepApplied: self._step_applied,
            SnapshotTaken: self._snapshot_taken,
            NodeFailed: self._node_failed,
            UnitsReleased: self._units_released,
            StateStored: self._state_stored,
            UnitsInstalled: self._units_installed,
            StandbysCaughtUp: self._standbys_caught_up,
            StandbysDropped: self._standbys_dropped,
            StepStarted: self._step_started,
            StepEnded: self._step_ended,
            StepOverdue: self._step_overdue,
            CaughtUp: self._caught_up,
            events.NodeLost: self._node_lost,
            events.ReplaceRequested: self._replace_requested,
            events.StartRequested: lambda event: self.nodes.request_start(event.node),
            events.SparesChanged: self._spares_changed,
            events.StopRequested: self._stop_requested,
            events.StopAllRequested: self._stop_all_requested,
            events.StartOwnersRequested: self._start_owners_requested,
            events.BatchLogged: self._batch_logged,
            events.RoundCommitted: self._round_committed,
            events.EpochCommitted: self._epoch_committed,
            events.AssignmentCommitted: self._assignment_committed,
            events.ResultsPublished: self._results_published,
            events.SnapshotDue: lambda _: self.snapshots.request(),
            events.SnapshotLeaseOpened: self._snapshot_lease_opened,
            events.StatesCommitted: self._states_committed,
            events.SnapshotFailed: lambda _: self.snapshots.end(),
            events.MigrationRequested: self.hand_overs.begin,
            events.RekeyRequested: self.rekeyings.begin,
            events.SplitRequested: lambda event: [commands.CommitSplit(event.stage, event.splits)],
            events.SplitCommitted: self._split_committed,
            events.PauseRequested: lambda event: self._control(lambda changes: changes.pause(event.change)),
            events.ResumeRequested: lambda event: self._control(lambda changes: changes.resume(event.change)),
            events.CancelRequested: lambda event: self._control(lambda changes: changes.cancel(event.change)),
            events.ChangeNoted: lambda event: self._control(lambda changes: changes.note(event.change, event.line)),
            events.MigrationLeaseOpened: lambda event: self.hand_overs.lease_opened(event.lease),
        }

    def start(self) -> list[Command]:
        """Return what to do first: start every node, and continue with batches that were in flight."""
        return [*self.nodes.start_all(), *self._follow_up()]

    def handle(self, event: Any, number: int = 0, at: float = 0.0) -> list[Command]:
        """Return what to do now that this event happened, at that time of the driver's clock."""
        handler = self._handlers.get(type(event))
        if handler is None:
            raise UnknownEvent(event)
        self._now, self._handled = at, number
        if self.failure is not None:
            return []
        decided = list(handler(event) or ())
        if self.failure is None:
            decided += self._follow_up()
        # To start a process takes the launcher milliseconds, which nodes that take over units need not wait for.
        return sorted(decided, key=lambda command: isinstance(command, commands.StartNode))

    def view(self) -> JobView:
        """Return the job as other threads may see it. Cheap: parts that did not change are the same objects."""
        return JobView(
            self.manifest,
            self.batches.newest,
            self.batches.published,
            self.batches.pending_batches,
            self.batches.is_complete,
            self.placement.committed,
            self.placement.route(),
            self.placement.tasks_by_node(),
            self.nodes.views(),
            self.placement.standbys(),
            self.hand_overs.view(),
            self.hand_overs.is_moving,
            self.rekeyings.view(self._find_nodes_awaited_by_rekeying()),
            self.rekeyings.is_due,
            not self.batches.is_complete and (self.rekeyings.is_due or self.rekeyings.is_committing),
            self.snapshots.ended,
            self.recoveries.losses,
            self.recoveries.completed,
            self.nodes.failed_starts(),
            self.crashes.counts(),
            self._handled,
            self.backlogs.ends,
            self.nodes.spares,
            self.standbys.without_node,
            self._regrouped,
        )

    def _follow_up(self) -> list[Command]:
        """Return what an event has made possible, whichever it was: each of these does nothing while it is not."""
        return [
            *self.hand_overs.advance(),
            *self._install_units(),
            *self.standbys.advance(
                is_moving=self.hand_overs.is_under_way, can_install=not self.snapshots.is_committing
            ),
            *self.batches.advance(),
            *self._continue_snapshot(),
        ]

    # Nodes join, leave and are lost.

    def _node_joined(self, event: NodeJoined) -> list[Command]:
        if not self.nodes.join(event) or self._epoch_requested:
            return []
        self._epoch_requested = True
        return [commands.CommitEpoch(f"{event.node} joined")]

    def _epoch_committed(self, event: events.EpochCommitted) -> None:
        self._epoch_requested = False
        self._learn(event.manifest)

    def _install_units(self) -> list[Command]:
        """Give units to the nodes that wait for some; not while a snapshot is being committed (see `Snapshots`)."""
        if self.snapshots.is_committing:
            return []
        decided: list[Command] = []
        for name in self.nodes.without_units() if not self._epoch_requested else ():
            self.nodes.give_units(name)
            self.standbys.note_change()
            decided += self.nodes.send(name, self._installation(self.placement.units_on(name), name))
        for name, units in self.placement.take_installs().items():
            # A state that was captured on the way here may be newer than what the new owner starts from.
            self.snapshots.drop(unit for unit in units if self.placement.released_state(unit) is None)
            decided += self.nodes.send(name, self._installation(units, name))
        return decided

    def _installation(self, units: Iterable[UnitId], node: str) -> InstallUnits:
        handles = tuple(self._create_handle(unit) for unit in units)
        return InstallUnits(
            self._epoch(),
            handles,
            self._steps_for(handles),
            self.crashes.is_careful(node),
            self.crashes.suspects(node),
            self.placement.committed,
            self._find_batch_for_standbys(),
        )

    def _standby_installation(self, units: Iterable[UnitId], _node: str) -> InstallUnits:
        """Let a node follow units from their saved states, whatever is on its way elsewhere."""
        handles = tuple(self._create_saved_handle(unit)._replace(standby=True) for unit in units)
        routing, published = self.placement.committed, self.batches.published
        return InstallUnits(self._epoch(), handles, self._steps_for(handles), routing=routing, published=published)

    def _steps_for(self, handles: Iterable[UnitHandle]) -> tuple[Step, ...]:
        """Return the steps since the oldest of these states."""
        oldest = min((handle.through for handle in handles), default=self.batches.newest.batch)
        return self.batches.steps_after(oldest)

    def _find_batch_for_standbys(self) -> Batch:
        return self.batches.published if self.placement.following() else NO_BATCH

    def _create_handle(self, unit: UnitId) -> UnitHandle:
        """With the newest state there is: one that was released on its way is not older than the last snapshot."""
        handle, released = self._create_saved_handle(unit), self.placement.released_state(unit)
        if released is None or released.ref.batch < handle.through:
            return handle
        source = self.nodes.address(released.source) if released.source is not None else None
        return handle._replace(state=released.ref, through=Batch(released.ref.batch), source=source)

    def _create_saved_handle(self, unit: UnitId) -> UnitHandle:
        """With the state that the manifest names; a unit without state begins with the first batch to report."""
        saved, reported, through = self.manifest.units[unit], self.batches.reported(unit), self._through(unit)
        if unit.stage in self._stateless and saved is None:
            through = max(through, self.batches.reported_batch(unit))
        return UnitHandle(unit, saved, through, reported, None, self.crashes.isolated(unit))

    def _node_lost(self, event: events.NodeLost) -> list[Command]:
        if not self.nodes.is_current(event.node, event.incarnation):
            return []
        if event.failed and not self.nodes.has_joined(event.node):
            self.nodes.start_failed(event.node, event.reason)
        death = self.crashes.lost(event.node)
        if death is not None and death.deaths >= LIMIT and not self._isolate(death):
            return self._give_up(event, death)
        starting = self.nodes.start(event.node)
        self.batches.drop_reports(event.node)
        self.backlogs.node_lost(event.node)
        self.placement.node_lost(event.node)
        units = self.placement.units_on(event.node)
        self.snapshots.node_lost(event.node, units)
        self.standbys.note_change()
        if death is None:  # else a step killed it that would kill a standby too
            for node in self.standbys.promote(event.node, self.hand_overs.moving_tasks()):
                self.crashes.take_over(node)
        decided = self.hand_overs.node_lost(event.node)
        owners = {self.placement.owner(unit) for unit in units}
        self.recoveries.node_lost(event.node, event.reason, self._now, owners)
        return [starting, *decided]

    def _isolate(self, death: Death) -> bool:
        """Whether the next incarnation can do better: it takes the step in a child process, unless this one did."""
        if not self._skips_poison or not self.crashes.isolate(death):
            return False
        self.standbys.refresh(death.units)
        return True

    def _give_up(self, event: events.NodeLost, death: Death) -> list[Command]:
        tasks = sorted({unit.task for unit in death.units})
        self.failure = PoisonedStep(event.node, *death.position, tasks, death.deaths, event.reason)
        return [commands.FailJob(self.failure)]

    def _replace_requested(self, event: events.ReplaceRequested) -> list[Command]:
        node = next((view for view in self.nodes.views() if view.name == event.node), None)
        return [] if node is None else self._node_lost(events.NodeLost(event.node, node.incarnation, event.reason))

    def _spares_changed(self, event: events.SparesChanged) -> None:
        self.nodes.spares = event.ready

    def _step_started(self, report: StepStarted) -> None:
        if self.nodes.accepts(report):
            self.crashes.started(report)

    def _step_ended(self, report: StepEnded) -> None:
        if self.nodes.accepts(report):
            self.crashes.ended(report)

    def _step_overdue(self, report: StepOverdue) -> list[Command]:
        """The node ends its process because its step does not end: it died of that step."""
        self._step_started(StepStarted(report.node, report.incarnation, report.position, report.units))
        reason = f"its step ran for {report.seconds:.1f} s, longer than step_timeout_seconds allows"
        return self._node_lost(events.NodeLost(report.node, report.incarnation, reason))

    def _caught_up(self, report: CaughtUp) -> None:
        if self.nodes.accepts(report):
            self.crashes.caught_up(report.node)
            self.recoveries.caught_up(report, self._now)

    def _stop_requested(self, event: events.StopRequested) -> list[Command]:
        """Only a node without units can leave."""
        if event.node not in self.nodes or self.placement.units_on(event.node):
            return []
        stopping = self.nodes.stop(event.node)
        self.crashes.caught_up(event.node)
        self.recoveries.node_stopped(event.node)
        self.placement.node_lost(event.node)
        self.standbys.left(event.node)
        self.snapshots.node_lost(event.node, ())
        return [stopping]

    def _stop_all_requested(self, _: events.StopAllRequested) -> list[Command]:
        """Committed states and the log are all that is needed to start again."""
        closing = self.hand_overs.abandon()
        if closing is None:
            return []
        stopping: list[Command] = []
        for name in list(self.nodes):
            self.batches.drop_reports(name)
            self.crashes.caught_up(name)
            self.snapshots.node_lost(name, self.placement.units_on(name))
            stopping.append(self.nodes.stop(name))
        self.placement.reset()
        return [*stopping, *closing]

    def _start_owners_requested(self, _: events.StartOwnersRequested) -> list[Command]:
        return [command for name in self.placement.owners() for command in self.nodes.request_start(name)]

    def _learn(self, manifest: Manifest) -> None:
        """Keep the manifest with the highest number: answers may overtake each other."""
        if manifest.number > self.manifest.number:
            self.manifest = manifest

    def _epoch(self) -> Epoch:
        return Epoch(self.manifest.epoch)

    def _through(self, unit: UnitId) -> Batch:
        """Return the newest batch that the committed state of a unit includes."""
        return Batch(self.manifest.units.through(unit))

    # Batches are committed, applied and published.

    def _batch_logged(self, event: events.BatchLogged) -> list[Command]:
        """Commit the batch, unless its rows are grouped as they were before a change: then they are sent again."""
        if event.groupings_epoch != self.placement.committed.groupings.epoch:
            return []
        decided = self.batches.batch_logged(event)
        if decided:
            self.backlogs.batch_logged(event.batch, event.seconds, self._now)
        return decided

    def _round_committed(self, event: events.RoundCommitted) -> list[Command]:
        self._learn(event.manifest)
        step = self.batches.round_committed(event)
        if step is None:
            return []
        self.rekeyings.round_committed(
            event.batch, is_regrouped=event.routing is not None, log_bytes=sum(ref.size for ref in event.logs)
        )
        if event.routing is not None:
            self.placement.commit(event.routing)
            self._regrouped = event.batch
        routing, costs = self._take_routing_for_nodes(), self._take_costs_for_nodes()
        message = ApplyStep(self._epoch(), step, routing, costs, self._find_batch_for_standbys())
        return [command for name in self.placement.hosts_of_units() for command in self.nodes.send(name, message)]

    def _take_routing_for_nodes(self) -> Routing | None:
        """Return, once, the routing that nodes emit rows by from the next step on; None if that is as before."""
        known, committed = self._known_to_nodes, self.placement.committed
        if known.groupings == committed.groupings and (known is committed or not committed.groupings.nodes_choose):
            return None
        self._known_to_nodes = committed
        return committed

    def _take_costs_for_nodes(self) -> tuple[NodeCosts, ...] | None:
        """Return what nodes that send rows to shuffled stages should know of costs; None if that is as before."""
        if not self.placement.committed.groupings.nodes_shuffle:
            return None
        costs = self.nodes.costs()
        if costs == self._costs_of_nodes:
            return None
        self._costs_of_nodes = costs
        return costs

    def _step_applied(self, report: StepApplied) -> None:
        if self.nodes.accepts(report):
            self.batches.step_applied(report)
            self.backlogs.step_applied(report, self._now)

    def _results_published(self, event: events.ResultsPublished) -> list[Command]:
        """Tell standbys so, if no batch is in flight whose next step or publication will."""
        self.batches.results_published(event.batch)
        return [] if self.batches.pending_batches else self.standbys.publish(self.batches.published)

    def _standbys_caught_up(self, report: StandbysCaughtUp) -> None:
        if self.nodes.accepts(report):
            self.standbys.caught_up(report.node, report.units)

    def _standbys_dropped(self, report: StandbysDropped) -> None:
        if self.nodes.accepts(report):
            self.standbys.dropped(report.node, report.units)

    def _node_failed(self, report: NodeFailed) -> list[Command]:
        if not self.nodes.accepts(report):
            return []
        self.failure = report
        return [commands.FailJob(report)]

    # Saved states replace the log.

    def _snapshot_lease_opened(self, event: events.SnapshotLeaseOpened) -> None:
        self.snapshots.lease_opened(event.lease, sorted(self.nodes.serving()))

    def _snapshot_taken(self, report: SnapshotTaken) -> None:
        """Record what a node has saved of its own units: the next owner of others may start from older states."""
        if self.nodes.accepts(report):
            states = tuple(ref for ref in report.states if self.placement.owner(ref.unit) == report.node)
            unchanged = tuple(one for one in report.unchanged if self.placement.owner(one.unit) == report.node)
            self.snapshots.snapshot_taken(replace(report, states=states, unchanged=unchanged))

    def _continue_snapshot(self) -> list[Command]:
        """Begin one that is due, ask the node whose turn it is, and commit when all have answered."""
        decided = self.snapshots.begin_if_due() if self.nodes.serving() else []
        while (turn := self.snapshots.next_to_ask()) is not None:
            name, lease = turn
            units = self.placement.units_on(name)
            message = TakeSnapshot(self._epoch(), lease, {unit: self._through(unit) for unit in units})
            sent = self.nodes.send(name, message)
            if not sent:
                self.snapshots.node_lost(name, units)
            decided += sent
        return [*decided, *self.snapshots.commit_if_complete(self.batches.published, self.manifest.units)]

    def _states_committed(self, event: events.StatesCommitted) -> None:
        self._learn(event.manifest)
        through = Batch(self.manifest.low_water_mark)
        self.batches.drop_steps(through)
        self.crashes.drop_steps(through)
        self.snapshots.end()
        self.standbys.note_change()

    # Keys and units move: see `Rekeyings` and `HandOvers`.

    def _control(self, request: Callable[[Rekeyings | HandOvers], None]) -> None:
        """Pass on a request that concerns one change, of either kind; the others ignore it."""
        request(self.hand_overs)
        request(self.rekeyings)

    def _find_nodes_awaited_by_rekeying(self) -> set[str]:
        batch = self.rekeyings.batch
        return set() if batch is None else {self.placement.owner(unit) for unit in self.batches.missing(batch)}

    def _groupings(self) -> Groupings:
        return self.placement.committed.groupings

    def _units_released(self, report: UnitsReleased) -> None:
        if self.nodes.accepts(report):
            self.hand_overs.units_released(report)

    def _state_stored(self, report: StateStored) -> None:
        if self.nodes.accepts(report):
            self.hand_overs.state_stored(report)

    def _units_installed(self, report: UnitsInstalled) -> list[Command]:
        return self.hand_overs.units_installed(report) if self.nodes.accepts(report) else []

    def _split_committed(self, event: events.SplitCommitted) -> None:
        """Senders get it with the next batch, nodes with the next step: until then rows go where they went."""
        self._learn(event.manifest)
        self.placement.commit(event.routing)

    def _assignment_committed(self, event: events.AssignmentCommitted) -> list[Command]:
        self._learn(event.manifest)
        self.placement.commit(event.routing)
        self.placement.is_committing = False
        self.standbys.note_change()
        return self.hand_overs.assignment_committed(event.assignment)
