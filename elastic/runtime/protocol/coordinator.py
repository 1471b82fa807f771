"""The controller's decisions: events in, commands out, no I/O.

The log is the truth. A batch counts when its log objects are committed; which rows a node has been sent before that is
nobody's business but the node's. So a node may die at any moment: whoever gets its units repeats the committed steps
and ends in the same state. Results become visible, and states replace the log, only when every unit of the job has
taken every round of a batch.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from elastic.errors import PoisonedStep
from elastic.routing import Routing
from elastic.routing.slots import task_of_slot
from elastic.runtime.protocol import commands, events
from elastic.runtime.protocol.batches import Batches
from elastic.runtime.protocol.commands import Command
from elastic.runtime.protocol.crashes import LIMIT, Crashes, Death
from elastic.runtime.protocol.messages import (
    Adopt,
    Applied,
    Apply,
    CaughtUp,
    Failed,
    Forget,
    Held,
    Installed,
    Joined,
    Release,
    Released,
    Saved,
    Snapshot,
    StepEnded,
    StepStarted,
    Stored,
)
from elastic.runtime.protocol.placement import Placement
from elastic.runtime.protocol.roster import Roster
from elastic.runtime.protocol.snapshots import Snapshots
from elastic.runtime.protocol.steps import Position
from migration import live
from storage.state import Manifest

_STORY_LENGTH = 500  # decisions kept for whoever asks what happened


class Coordinator:
    """One job's controller in one life. `handle` never blocks; calls must not overlap."""

    def __init__(
        self,
        manifest: Manifest,
        routing: Routing,
        published: int,
        emitting: Sequence[bool],
        nodes: Sequence[str],
        *,
        skips_poison: bool = False,  # whether rows that kill processes are set aside rather than fail the job
    ) -> None:
        self.manifest = manifest
        self.failure: Failed | PoisonedStep | None = None
        self.crashes = Crashes()
        self._skips_poison = skips_poison
        self.story: deque[tuple[Any, list[Command]]] = deque(maxlen=_STORY_LENGTH)
        slots = frozenset(slot for stage in range(len(emitting)) for slot in routing.slots(stage))
        self.placement = Placement(routing, slots)
        self.batches = Batches(manifest, published, emitting, slots)
        self.snapshots = Snapshots(self._through)
        self.roster = Roster(lambda: self.manifest.number, nodes)
        self._epoch_asked = False
        self._to_install: dict[str, set[int]] = {}  # by target: units that it should take over
        self._releasing: dict[str, list[Released]] = {}  # by source: states whose last results are not in hand
        self._handlers: Mapping[type, Callable[[Any], list[Command]]] = {
            Joined: self._joined,
            Applied: self._applied,
            Saved: self._saved,
            Failed: self._failed,
            Released: self._released,
            Stored: self._stored,
            Installed: self._installed,
            StepStarted: self._step_started,
            StepEnded: self._step_ended,
            CaughtUp: self._caught_up,
            events.NodeLost: self._lost,
            events.NodeWanted: self._wanted,
            events.NodeUnwanted: self._unwanted,
            events.AllNodesUnwanted: self._all_unwanted,
            events.OwnersWanted: self._owners_wanted,
            events.BatchLogged: self._logged,
            events.RoundCommitted: self._round_committed,
            events.EpochCommitted: self._epoch_committed,
            events.RoutingCommitted: self._routing_committed,
            events.Published: self._was_published,
            events.SnapshotDue: self._snapshot_due,
            events.LeaseOpened: self._lease_opened,
            events.StatesCommitted: self._states_committed,
            events.SnapshotFailed: self._snapshot_failed,
            events.MoveAsked: self._move_asked,
            live.InstallState: self._install_asked,
            live.CommitAssignment: self._assignment_asked,
            live.ForgetState: self._forget_asked,
        }

    def start(self) -> list[Command]:
        """What to do first: start every node, and go on with batches that were under way."""
        return [*self.roster.starting(), *self.batches.advance()]

    def handle(self, event: Any) -> list[Command]:
        """What to do now that this happened."""
        if self.failure is not None:
            return []
        decided = self._handlers[type(event)](event)
        self.story.append((event, decided))
        return decided

    @property
    def newest(self) -> Position:
        """The newest committed step."""
        return self.batches.newest

    @property
    def published(self) -> int:
        return self.batches.published

    # Nodes come and go.

    def _joined(self, event: Joined) -> list[Command]:
        if not self.roster.join(event) or self._epoch_asked:
            return []
        self._epoch_asked = True
        return [commands.CommitEpoch(f"{event.node} joined")]

    def _epoch_committed(self, event: events.EpochCommitted) -> list[Command]:
        self._epoch_asked = False
        self._learn(event.manifest)
        return self._give_units()

    def _give_units(self) -> list[Command]:
        """To every node that waits for some. While a snapshot is being committed they wait on: see `Snapshots`."""
        if self.snapshots.is_committing:
            return []
        decided: list[Command] = []
        for name in self.roster.without_units() if not self._epoch_asked else ():
            self.roster.give_units(name)
            decided += self.roster.send(name, self._adoption(self.placement.slots_on(name), name))
        for name, slots in self._to_install.items():
            decided += self.roster.send(name, self._adoption(sorted(slots), name))
        self._to_install.clear()
        return decided

    def _adoption(self, slots: Iterable[int], node: str) -> Adopt:
        held = tuple(self._held(slot) for slot in slots)
        oldest = min((unit.through for unit in held), default=self.newest.batch)
        steps = self.batches.steps_after(oldest)
        return Adopt(self.manifest.epoch, held, steps, self.crashes.is_careful(node), self.crashes.suspects(node))

    def _held(self, slot: int) -> Held:
        """With the newest state there is: one that was released on its way is not older than the last snapshot."""
        state, through = self.manifest.units[self._unit(slot)], self._through(slot)
        released = self.placement.released_state(slot)
        source = None
        if released is not None and released.ref.batch >= through:
            state, through = released.ref, released.ref.batch
            source = self.roster.address(released.source) if released.source is not None else None
        return Held(slot, state, through, self.batches.reported(slot), source, self.crashes.isolated(slot))

    def _lost(self, event: events.NodeLost) -> list[Command]:
        if not self.roster.is_current(event.node, event.incarnation):
            return []
        death = self.crashes.lost(event.node)
        if death is not None and death.deaths >= LIMIT and not self._isolate(death):
            return self._give_up(event, death)
        starting = self.roster.start(event.node)
        self.batches.forget_reports(event.node)
        self._releasing.pop(event.node, None)
        self.placement.lost(event.node)
        self.snapshots.lost(event.node, self.placement.slots_on(event.node))
        return [
            starting,
            commands.Tell(live.NodeLost(event.node)),
            *self._go_on_with_snapshot(),
        ]

    def _isolate(self, death: Death) -> bool:
        """Whether the next incarnation can do better: it takes the step in a child process, unless this one did."""
        return self._skips_poison and self.crashes.isolate(death)

    def _give_up(self, event: events.NodeLost, death: Death) -> list[Command]:
        tasks = sorted({task_of_slot(slot) for slot in death.slots})
        self.failure = PoisonedStep(event.node, *death.position, tasks, death.deaths, event.reason)
        return [commands.FailJob(self.failure)]

    def _step_started(self, report: StepStarted) -> list[Command]:
        if self.roster.listens_to(report):
            self.crashes.started(report)
        return []

    def _step_ended(self, report: StepEnded) -> list[Command]:
        if self.roster.listens_to(report):
            self.crashes.ended(report)
        return []

    def _caught_up(self, report: CaughtUp) -> list[Command]:
        if self.roster.listens_to(report):
            self.crashes.caught_up(report.node)
        return []

    def _wanted(self, event: events.NodeWanted) -> list[Command]:
        return [] if event.node in self.roster else [self.roster.start(event.node)]

    def _unwanted(self, event: events.NodeUnwanted) -> list[Command]:
        """Only a node without units can go."""
        if event.node not in self.roster or self.placement.slots_on(event.node):
            return []
        stopping = self.roster.stop(event.node)
        self.crashes.caught_up(event.node)
        self.placement.lost(event.node)
        self.snapshots.lost(event.node, self.placement.slots_on(event.node))
        return [stopping, *self._go_on_with_snapshot()]

    def _all_unwanted(self, _: events.AllNodesUnwanted) -> list[Command]:
        """Saved states and the log are all that is needed to begin anew."""
        names = list(self.roster)
        for name in names:
            self.batches.forget_reports(name)
            self.crashes.caught_up(name)
            self.snapshots.lost(name, self.placement.slots_on(name))
        stopping = [self.roster.stop(name) for name in names]
        for waiting in (self._releasing, self._to_install):
            waiting.clear()
        self.placement.reset()
        return [*stopping, *self._go_on_with_snapshot()]

    def _owners_wanted(self, _: events.OwnersWanted) -> list[Command]:
        return [command for name in self.placement.owners() for command in self._wanted(events.NodeWanted(name))]

    def _learn(self, manifest: Manifest) -> None:
        """Answers may overtake each other; the manifest with the highest number is the one that counts."""
        if manifest.number > self.manifest.number:
            self.manifest = manifest

    def _unit(self, slot: int) -> Any:
        return self.placement.committed.unit(slot)

    def _through(self, slot: int) -> int:
        """The batch as of which the committed state of a unit is right."""
        return self.manifest.units.through(self._unit(slot))

    # Batches go by.

    def _logged(self, event: events.BatchLogged) -> list[Command]:
        return self.batches.logged(event)

    def _round_committed(self, event: events.RoundCommitted) -> list[Command]:
        self._learn(event.manifest)
        step = self.batches.committed(event)
        if step is None:
            return []
        apply = Apply(self.manifest.epoch, step)
        return [command for name in self.placement.owners() for command in self.roster.send(name, apply)]

    def _applied(self, report: Applied) -> list[Command]:
        if not self.roster.listens_to(report):
            return []
        self.batches.applied(report)
        return [*self.batches.advance(), *self._tell_released()]

    def _was_published(self, event: events.Published) -> list[Command]:
        if not self.batches.was_published(event.batch):
            return []
        return [*self.batches.advance(), *self._go_on_with_snapshot()]

    def _failed(self, report: Failed) -> list[Command]:
        if not self.roster.listens_to(report):
            return []
        self.failure = report
        return [commands.FailJob(report)]

    # States replace the log.

    def _snapshot_due(self, _: events.SnapshotDue) -> list[Command]:
        return self.snapshots.begin() if self.roster.serving() else []

    def _lease_opened(self, event: events.LeaseOpened) -> list[Command]:
        self.snapshots.lease_opened(event.lease, sorted(self.roster.serving()))
        return self._go_on_with_snapshot()

    def _saved(self, report: Saved) -> list[Command]:
        if self.roster.listens_to(report):
            self.snapshots.saved(report)
        return self._go_on_with_snapshot()

    def _go_on_with_snapshot(self) -> list[Command]:
        """Ask whose turn it is; commit when all have answered."""
        decided: list[Command] = []
        while (turn := self.snapshots.next_to_ask()) is not None:
            name, lease = turn
            slots = self.placement.slots_on(name)
            saved = {slot: self._through(slot) for slot in slots}
            asked = self.roster.send(name, Snapshot(self.manifest.epoch, lease, saved))
            if not asked:
                self.snapshots.lost(name, slots)
            decided += asked
        return [*decided, *self.snapshots.finish(self.published, self.manifest.units)]

    def _states_committed(self, event: events.StatesCommitted) -> list[Command]:
        self._learn(event.manifest)
        self.batches.forget_steps(self.manifest.low_water_mark)
        self.crashes.forget_steps(self.manifest.low_water_mark)
        self.snapshots.end()
        return self._give_units()

    def _snapshot_failed(self, _: events.SnapshotFailed) -> list[Command]:
        self.snapshots.end()
        return self._give_units()

    # Units move.

    def _move_asked(self, event: events.MoveAsked) -> list[Command]:
        """A source that has no units at the moment lost them; nobody waits for it."""
        hand_over = event.hand_over
        slots = self.placement.slots_of_tasks(hand_over.tasks)
        self.placement.begin_move(slots, hand_over.target)
        release = Release(self.manifest.epoch, tuple(slots), event.lease, event.direct)
        return self.roster.send(hand_over.source, release) or [commands.Tell(live.NodeLost(hand_over.source))]

    def _released(self, report: Released) -> list[Command]:
        leaving = all(self.placement.is_leaving(ref.unit.task, report.node) for ref in report.states)
        if not self.roster.listens_to(report) or not leaving:
            return []
        self._releasing.setdefault(report.node, []).append(report)
        return self._tell_released()

    def _stored(self, report: Stored) -> list[Command]:
        if self.roster.listens_to(report):
            self.placement.stored(report.state)
        return []

    def _tell_released(self) -> list[Command]:
        """Not before the last results of the source are in hand: the target must know what it need not repeat."""
        decided: list[Command] = []
        for source, reports in self._releasing.items():
            for report in list(reports):
                if all(self.batches.has_reported(ref.unit.task, ref.batch) for ref in report.states):
                    reports.remove(report)
                    self.placement.released(source, report.states, report.stored)
                    tasks = tuple(sorted({task_of_slot(ref.unit.task) for ref in report.states}))
                    size = sum(ref.size for ref in report.states)
                    decided.append(commands.Tell(live.StateReleased(source, tasks, size)))
        return decided

    def _install_asked(self, command: live.InstallState) -> list[Command]:
        """A target that has no units at the moment gets these with all others when it does.

        It may not even be there: a restart that was paused for a moment begins with the old nodes alone.
        """
        target = command.hand_over.target
        slots = self.placement.slots_of_tasks(command.hand_over.tasks)
        self.placement.give(slots, target)
        self._to_install.setdefault(target, set()).update(slots)
        return [*self._wanted(events.NodeWanted(target)), *self._give_units()]

    def _installed(self, report: Installed) -> list[Command]:
        if not self.roster.listens_to(report):
            return []
        tasks = self.placement.installed(report.slots)
        return [commands.Tell(live.StateInstalled(report.node, tuple(tasks), report.direct_bytes))]

    def _assignment_asked(self, command: live.CommitAssignment) -> list[Command]:
        return [commands.CommitRouting(command.assignment)]

    def _routing_committed(self, event: events.RoutingCommitted) -> list[Command]:
        self._learn(event.manifest)
        self.placement.commit(event.routing)
        return [commands.Tell(live.AssignmentCommitted(event.assignment))]

    def _forget_asked(self, command: live.ForgetState) -> list[Command]:
        slots = self.placement.slots_of_tasks(command.hand_over.tasks)
        self.placement.forget_move(slots)
        return self.roster.send(command.hand_over.source, Forget(self.manifest.epoch, tuple(slots)))
