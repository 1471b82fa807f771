"""The controller's decisions: events in, commands out, no I/O.

The log is the truth. A batch counts when its log objects are committed; which rows a node has been sent before that is
nobody's business but the node's. So a node may die at any moment: whoever gets its units repeats the committed steps
and ends in the same state. Results become visible, and states replace the log, only when every unit of the job has
taken every round of a batch.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elastic.routing import Routing
from elastic.runtime.protocol import commands, events
from elastic.runtime.protocol.commands import Command
from elastic.runtime.protocol.messages import Adopt, Applied, Apply, Failed, Held, Joined, Saved, Snapshot, Unchanged
from elastic.runtime.protocol.progress import BatchProgress
from elastic.runtime.protocol.steps import Position, Step, end_of, steps_of
from storage.state import Manifest, StateRef

_STORY_LENGTH = 500  # decisions kept for whoever asks what happened


@dataclass
class _Node:
    """A node as the controller knows it: the one incarnation it listens to, and how far that is."""

    incarnation: str
    joined: bool = False
    has_units: bool = False


@dataclass
class _SnapshotRun:
    """A snapshot under way: whose answers are awaited, and what came in."""

    lease: str | None
    waiting: set[str]
    states: list[StateRef]
    unchanged: list[Unchanged]
    committing: bool = False


class Coordinator:
    """One job's controller in one life. `handle` never blocks; calls must not overlap.

    `emitting` says of every stage whether it may emit to another stage or to itself: a round that reaches only stages
    that do not is the last one of its batch.
    """

    def __init__(
        self, manifest: Manifest, routing: Routing, published: int, emitting: Sequence[bool], nodes: Sequence[str]
    ) -> None:
        self.manifest = manifest
        self.routing = routing
        self.published = published
        self.failure: Failed | None = None
        self.snapshots_ended = 0
        self.story: deque[tuple[Any, list[Command]]] = deque(maxlen=_STORY_LENGTH)
        self._emitting = emitting
        self._slots = frozenset(slot for stage in range(len(emitting)) for slot in routing.slots(stage))
        self._launches = 0
        self._nodes = {node: _Node(self._new_incarnation(node)) for node in nodes}
        self._steps: list[Step] = list(steps_of(manifest))
        # The newest committed step.
        self.newest = self._steps[-1].position if self._steps else end_of(manifest.last_batch)
        self._progress: dict[int, BatchProgress] = {}
        self._epoch_asked = False
        self._snapshot: _SnapshotRun | None = None
        self._early: dict[str, list[Applied]] = {}  # by node: reports that overtook the one before them
        for step in self._steps:
            if step.batch > published:
                self._track(step)
        self._handlers: Mapping[type, Callable[[Any], list[Command]]] = {
            Joined: self._joined,
            Applied: self._applied,
            Saved: self._saved,
            Failed: self._failed,
            events.NodeLost: self._lost,
            events.BatchLogged: self._logged,
            events.RoundCommitted: self._round_committed,
            events.EpochCommitted: self._epoch_committed,
            events.Published: self._was_published,
            events.SnapshotDue: self._snapshot_due,
            events.LeaseOpened: self._lease_opened,
            events.StatesCommitted: self._states_committed,
            events.SnapshotFailed: self._snapshot_failed,
        }

    def start(self) -> list[Command]:
        """What to do first: start every node, and go on with batches that were under way."""
        return [commands.StartNode(name, node.incarnation) for name, node in self._nodes.items()] + self._advance()

    def handle(self, event: Any) -> list[Command]:
        """What to do now that this happened."""
        if self.failure is not None:
            return []
        decided = self._handlers[type(event)](event)
        self.story.append((event, decided))
        return decided

    @property
    def batches_ahead(self) -> int:
        """Batches that count and are not applied everywhere."""
        return len(self._progress)

    @property
    def is_between_batches(self) -> bool:
        """Whether a next batch may be committed: no batch has rounds to come."""
        return all(progress.newest.complete for progress in self._progress.values())

    def alive(self) -> dict[str, str]:
        """Incarnations of the nodes that are up, by name."""
        return {name: node.incarnation for name, node in self._nodes.items() if node.joined}

    def serving(self) -> set[str]:
        """Nodes that were given their units."""
        return {name for name, node in self._nodes.items() if node.has_units}

    # Nodes come and go.

    def _joined(self, event: Joined) -> list[Command]:
        node = self._nodes.get(event.node)
        if node is None or node.incarnation != event.incarnation or node.joined:
            return []
        node.joined = True
        if self._epoch_asked:
            return []
        self._epoch_asked = True
        return [commands.CommitEpoch(f"{event.node} joined")]

    def _epoch_committed(self, event: events.EpochCommitted) -> list[Command]:
        self._epoch_asked = False
        self._learn(event.manifest)
        decided: list[Command] = []
        for name, node in self._nodes.items():
            if node.joined and not node.has_units:
                node.has_units = True
                decided.append(commands.Send(name, node.incarnation, self._adoption(name)))
        return decided

    def _adoption(self, name: str) -> Adopt:
        held = tuple(self._held(slot) for slot in self._slots_on(name))
        oldest = min((unit.through for unit in held), default=self.manifest.last_batch)
        return Adopt(self.manifest.epoch, held, tuple(step for step in self._steps if step.batch > oldest))

    def _held(self, slot: int) -> Held:
        unit = self.routing.unit(slot)
        return Held(slot, self.manifest.units[unit], self._through(slot), self._reported(slot))

    def _reported(self, slot: int) -> Position:
        """The last step whose output by this unit is in hand; there are no gaps before it (see `_applied`)."""
        last = end_of(self.published)
        for batch in sorted(self._progress):
            progress = self._progress[batch]
            reported = progress.reported(slot)
            last = last if reported is None else reported
            if reported != progress.newest.position:
                break
        return last

    def _lost(self, event: events.NodeLost) -> list[Command]:
        node = self._nodes.get(event.node)
        if node is None or node.incarnation != event.incarnation:
            return []
        node = self._nodes[event.node] = _Node(self._new_incarnation(event.node))
        self._early.pop(event.node, None)
        decided: list[Command] = [commands.StartNode(event.node, node.incarnation)]
        if self._snapshot is not None:
            self._snapshot.waiting.discard(event.node)
            decided += self._finish_snapshot()
        return decided

    def _new_incarnation(self, name: str) -> str:
        self._launches += 1
        return f"{name}.{self.manifest.number}.{self._launches}"

    def _slots_on(self, name: str) -> list[int]:
        return [slot for slot in sorted(self._slots) if name in self.routing.owners(slot)]

    def _learn(self, manifest: Manifest) -> None:
        """Answers may overtake each other; the manifest with the highest number is the one that counts."""
        if manifest.number > self.manifest.number:
            self.manifest = manifest

    def _listens_to(self, report: Applied | Saved | Failed) -> bool:
        node = self._nodes.get(report.node)
        return node is not None and node.incarnation == report.incarnation and node.has_units

    # Batches go by.

    def _logged(self, event: events.BatchLogged) -> list[Command]:
        if event.batch <= self.manifest.last_batch or event.batch in self._progress:
            return []
        complete = not self._emitting[0]
        return [commands.CommitRound(event.batch, 0, event.logs, complete, event.time)]

    def _round_committed(self, event: events.RoundCommitted) -> list[Command]:
        self._learn(event.manifest)
        position = Position(event.batch, event.round)
        if position <= self.newest:
            return []
        step = Step(position, event.complete, tuple(sorted(event.logs)), event.time)
        self._steps.append(step)
        self.newest = position
        self._track(step)
        apply = Apply(self.manifest.epoch, step)
        return [commands.Send(name, node.incarnation, apply) for name, node in self._nodes.items() if node.has_units]

    def _track(self, step: Step) -> None:
        if step.batch not in self._progress:
            self._progress[step.batch] = BatchProgress(self._slots)
        self._progress[step.batch].add_step(step)

    def _applied(self, report: Applied) -> list[Command]:
        """Take a node's reports in the order of its steps, so that what a unit has reported has no gaps."""
        if not self._listens_to(report):
            return []
        waiting = self._early.setdefault(report.node, [])
        waiting.append(report)
        waiting.sort(key=lambda early: early.position)
        for early in list(waiting):
            if not self._is_early(early):
                waiting.remove(early)
                if progress := self._progress.get(early.position.batch):
                    progress.add(early)
        return self._advance()

    def _is_early(self, report: Applied) -> bool:
        return any(progress.is_waiting_for(report.slots, report.position) for progress in self._progress.values())

    def _advance(self) -> list[Command]:
        """Ask for what has become possible: the next round of the newest batch, the results of the oldest."""
        decided: list[Command] = []
        for progress in self._progress.values():
            if progress.is_applied and not progress.newest.complete and not progress.next_round_asked:
                progress.next_round_asked = True
                decided.append(self._next_round(progress))
        oldest = self._progress.get(self.published + 1)
        if oldest is not None and oldest.is_applied and oldest.newest.complete and not oldest.publish_asked:
            oldest.publish_asked = True
            time = oldest.newest.time
            decided.append(commands.PublishResults(time.batch, tuple(oldest.results), time.timestamp_ms))
        return decided

    def _next_round(self, progress: BatchProgress) -> commands.CommitRound:
        step = progress.newest
        complete = not any(self._emitting[stage] for stage in progress.emitted_stages)
        return commands.CommitRound(step.batch, step.round + 1, tuple(progress.emitted), complete, step.time)

    def _was_published(self, event: events.Published) -> list[Command]:
        if event.batch != self.published + 1:
            return []
        self.published = event.batch
        del self._progress[event.batch]
        return self._advance() + self._finish_snapshot()

    def _failed(self, report: Failed) -> list[Command]:
        if not self._listens_to(report):
            return []
        self.failure = report
        return [commands.FailJob(report)]

    # States replace the log.

    def _snapshot_due(self, _: events.SnapshotDue) -> list[Command]:
        if self._snapshot is not None or not self.serving():
            return []
        self._snapshot = _SnapshotRun(None, set(), [], [])
        return [commands.OpenLease()]

    def _lease_opened(self, event: events.LeaseOpened) -> list[Command]:
        if self._snapshot is None or self._snapshot.lease is not None:
            return []
        self._snapshot.lease = event.lease
        decided: list[Command] = []
        for name in sorted(self.serving()):
            node = self._nodes[name]
            saved = {slot: self._through(slot) for slot in self._slots_on(name)}
            self._snapshot.waiting.add(name)
            decided.append(commands.Send(name, node.incarnation, Snapshot(self.manifest.epoch, event.lease, saved)))
        return decided + self._finish_snapshot()

    def _saved(self, report: Saved) -> list[Command]:
        run = self._snapshot
        if run is None or run.lease != report.lease or report.node not in run.waiting or not self._listens_to(report):
            return []
        run.waiting.remove(report.node)
        run.states.extend(report.states)
        run.unchanged.extend(report.unchanged)
        return self._finish_snapshot()

    def _finish_snapshot(self) -> list[Command]:
        """Commit when all nodes have answered and every result that the states include is visible."""
        run = self._snapshot
        if run is None or run.lease is None or run.waiting or run.committing:
            return []
        if any(ref.batch > self.published for ref in run.states):
            return []
        run.committing = True
        states = tuple(ref for ref in run.states if ref.batch > self.manifest.units.through(ref.unit))
        unchanged = {
            unit.slot: min(unit.through, self.published)
            for unit in run.unchanged
            if unit.changed <= self._through(unit.slot) < min(unit.through, self.published)
        }
        return [commands.CommitStates(run.lease, states, unchanged)]

    def _through(self, slot: int) -> int:
        """The batch as of which the committed state of a unit is right."""
        return self.manifest.units.through(self.routing.unit(slot))

    def _states_committed(self, event: events.StatesCommitted) -> list[Command]:
        self._learn(event.manifest)
        low_water_mark = self.manifest.low_water_mark
        self._steps = [step for step in self._steps if step.batch > low_water_mark]
        self._snapshot = None
        self.snapshots_ended += 1
        return []

    def _snapshot_failed(self, _: events.SnapshotFailed) -> list[Command]:
        self._snapshot = None
        self.snapshots_ended += 1
        return []
