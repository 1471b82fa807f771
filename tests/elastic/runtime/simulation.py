"""A seeded world: the protocol's own coordinator and hosts, the real storage code, and everything between them unkind.

Messages are delayed, reordered and doubled; nodes and the controller die at any moment, also between a write and its
answer; processes that were replaced go on talking. Every seed is one story, and a failure prints it.
"""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

import storage
from elastic.results import Description, ResultLog
from elastic.routing import IntervalRouting, key_hash, split
from elastic.runtime.node.outputs import Outputs
from elastic.runtime.pipeline import emitting, runners
from elastic.runtime.protocol import (
    Adopt,
    Apply,
    Coordinator,
    Host,
    Joined,
    Saved,
    Snapshot,
    Unchanged,
    commands,
    events,
)
from elastic.runtime.protocol.host import Capture, Taken
from migration import Assignment
from storage import Secret
from storage.state import (
    BatchTime,
    Collector,
    InputLog,
    Lease,
    LogRef,
    Manifest,
    Manifests,
    Save,
    StateManager,
    StateRef,
    Unit,
)

JOB = "simulated"
SECRET = Secret.of("a secret of the simulated world")


@dataclass(frozen=True)
class Faults:
    """How unkind the world is: chances per step."""

    node_crash: float = 0.01
    controller_crash: float = 0.003
    duplicate: float = 0.1
    collect: float = 0.02
    snapshot: float = 0.05
    stage: float = 0.7  # that a slice reaches its node before the commit


@dataclass
class Node:
    """One incarnation: a host, what it has yet to write, and the states it is saving."""

    name: str
    incarnation: str
    host: Host
    outputs: Outputs
    to_write: deque[Taken] = field(default_factory=deque)
    staged: dict[str, dict[int, pa.Table]] = field(default_factory=dict)
    snapshot: Snapshot | None = None
    captured: list[Capture] = field(default_factory=list)
    saved: list[StateRef] = field(default_factory=list)
    unchanged: list[Unchanged] = field(default_factory=list)
    alive: bool = True


class World:
    """Runs `batches` (each a list of source partitions) through a pipeline until every result is published."""

    def __init__(
        self, seed: int, pipeline: Description, batches: list[list[pa.Table]], *, nodes: int, faults: Faults
    ) -> None:
        self.random = random.Random(seed)  # noqa: S311 - the world is unkind, not secret
        self.story: list[tuple[Any, ...]] = []
        self.crashes = 0
        self._pipeline = pipeline
        self._batches = batches
        self._faults = faults
        self._store = storage.open("memory:")
        self._log = InputLog(self._store, SECRET, JOB)
        self._states = StateManager(self._store, SECRET, JOB, threads=1)
        self._routing = IntervalRouting(Assignment.even(tasks=pipeline.tasks, nodes=nodes))
        self._nodes: list[Node] = []
        self._actions: list[Callable[[], None]] = []
        self._spark_committed = -1
        self._begin_controller()

    @property
    def results(self) -> ResultLog:
        return self._results

    def run(self, limit: int = 20_000) -> None:
        """Until all is published and saved; faults stop halfway through the limit so that the world can settle."""
        for step in range(limit):
            if self._coordinator.published == len(self._batches) - 1 and not self._busy():
                return
            kind = self.random.random()
            if step < limit // 2 and kind < self._faults.controller_crash:
                self._crash_controller()
            elif step < limit // 2 and kind < self._faults.controller_crash + self._faults.node_crash:
                self._crash_node()
            else:
                self._act()
        raise AssertionError(f"the world has not come to rest; published {self._coordinator.published}")

    def final_states(self) -> dict[int, Any]:
        """What the nodes that count hold in the end."""
        found = {}
        for node in self._counting():
            for slot, unit in node.host._units.items():
                found[slot] = unit.state
        return found

    # The controller and its lives.

    def _begin_controller(self) -> None:
        self._manifests = Manifests(self._store, SECRET, JOB)
        units = [
            Unit.of_task(slot) for stage in range(len(self._pipeline.stages)) for slot in self._routing.slots(stage)
        ]
        manifest = self._manifests.recover(first=Manifest.first(units, self._routing.to_json()))
        self._results = ResultLog(self._store, SECRET, JOB)
        published = max(self._results.published(), default=-1)
        names = self._routing.assignment.nodes
        self._coordinator = Coordinator(manifest, self._routing, published, emitting(self._pipeline), names)
        self._lease: Lease | None = None
        self._sent_batch: int | None = None
        self._tell(f"controller begins: {manifest.last_batch=} {manifest.open_round=} {published=}")
        self._execute(self._coordinator.start())

    def _crash_controller(self) -> None:
        """All nodes of its life go with it; what they wrote stays, what was on its way does not arrive."""
        self.crashes += 1
        self._tell("the controller dies")
        # A write that was under way may have happened or not; nobody hears the answer.
        for action in [action for action in self._actions if getattr(action, "writes", False)]:
            if self.random.random() < 0.5:
                action()
        self._actions.clear()
        self._nodes.clear()
        self._begin_controller()

    def _hear(self, event: Any) -> None:
        self._execute(self._coordinator.handle(event))

    def _execute(self, decided: list[Any]) -> None:
        for command in decided:
            self._tell("   decided", command)
            getattr(self, f"_do_{type(command).__name__}")(command)

    def _do_StartNode(self, command: commands.StartNode) -> None:  # noqa: N802 - named by the command
        outputs = Outputs(self._pipeline, self._routing, self._log, self._results, keeps_results=True)
        node = Node(command.node, command.incarnation, Host(runners(self._pipeline, "fail")), outputs)

        def join() -> None:
            self._nodes.append(node)
            self._deliver(Joined(node.name, node.incarnation, "nowhere:0"))

        self._later(join)

    def _do_Send(self, command: commands.Send) -> None:  # noqa: N802
        def arrive() -> None:
            for node in self._nodes:
                if node.incarnation == command.incarnation and node.alive:
                    self._receive(node, command.message)

        self._later(arrive)
        if self.random.random() < self._faults.duplicate:
            self._later(arrive)

    def _do_CommitRound(self, command: commands.CommitRound) -> None:  # noqa: N802
        def commit() -> None:
            manifest = self._manifests.commit_batch(
                command.batch,
                command.logs,
                round=command.round,
                complete=command.complete,
                time=command.time if command.round == 0 else None,
            )
            self._answer(
                events.RoundCommitted(
                    manifest, command.batch, command.round, command.logs, command.complete, command.time
                )
            )

        self._later(commit, writes=True)

    def _do_CommitEpoch(self, _: commands.CommitEpoch) -> None:  # noqa: N802
        def commit() -> None:
            manifest = self._manifests.commit(lambda current: replace(current, epoch=current.epoch + 1))
            self._answer(events.EpochCommitted(manifest))

        self._later(commit, writes=True)

    def _do_PublishResults(self, command: commands.PublishResults) -> None:  # noqa: N802
        def publish() -> None:
            self._results.publish(command.batch, command.results, command.timestamp_ms)
            self._answer(events.Published(command.batch))

        self._later(publish, writes=True)

    def _do_OpenLease(self, _: commands.OpenLease) -> None:  # noqa: N802
        def open_lease() -> None:
            if self.random.random() < 0.1:
                self._answer(events.SnapshotFailed("the store is away"))
                return
            self._lease = self._manifests.leases.open("snapshot")
            self._answer(events.LeaseOpened(self._lease.id))

        self._later(open_lease, writes=True)

    def _do_CommitStates(self, command: commands.CommitStates) -> None:  # noqa: N802
        unchanged = {self._routing.unit(slot): batch for slot, batch in command.unchanged.items()}

        def commit() -> None:
            manifest = self._manifests.commit(lambda current: current.with_states(command.states, unchanged=unchanged))
            if self._lease is not None:
                self._lease.close()
                self._lease = None
            self._answer(events.StatesCommitted(manifest, command.lease))

        self._later(commit, writes=True)

    # Nodes.

    def _receive(self, node: Node, message: Adopt | Apply | Snapshot) -> None:
        self._tell(node.incarnation, "hears", message)
        if isinstance(message, Adopt):
            held = node.host.adopt(message)

            def load() -> None:
                if node.alive:
                    for unit in held:
                        node.host.loaded(unit.slot, self._states.load(unit.state).state if unit.state else None)

            self._later(load)
        elif isinstance(message, Apply):
            node.host.apply(message)
        elif node.host.begin_snapshot(message):
            node.snapshot, node.captured, node.saved, node.unchanged = message, [], [], []

    def _work(self, node: Node) -> bool:
        choices = [kind for kind in (self._take, self._write, self._capture, self._save) if kind(node, try_only=True)]
        if not choices:
            return False
        self.random.choice(choices)(node)
        return True

    def _take(self, node: Node, try_only: bool = False) -> bool:
        works = node.host.works()
        if try_only or not works:
            return bool(works)
        work = self.random.choice(works)
        rows: dict[int, list[pa.Table]] = {}
        for ref in work.step.logs:
            slices = node.staged.get(ref.nonce)
            if slices is None:
                slices = self._log.read(ref, work.slots)
            for slot in work.slots:
                if slot in slices:
                    rows.setdefault(slot, []).append(slices[slot])
        self._tell(f"{node.incarnation} takes {work.step.position} with {work.slots}")
        taken = node.host.take(work, rows)
        if taken.slots:
            node.to_write.append(taken)
        return True

    def _write(self, node: Node, try_only: bool = False) -> bool:
        if try_only or not node.to_write:
            return bool(node.to_write)
        report = node.outputs.store(node.to_write.popleft(), node.name, node.incarnation)
        if self.random.random() < self._faults.duplicate:
            self._deliver(report)
        self._deliver(report)
        return True

    def _capture(self, node: Node, try_only: bool = False) -> bool:
        if try_only or node.snapshot is None:
            return node.snapshot is not None and len(node.captured) < 2
        captured = node.host.next_capture()
        if isinstance(captured, Capture):
            node.captured.append(captured)
        elif captured is not None:
            node.unchanged.append(captured)
        elif not node.host.left_to_capture and not node.captured:
            self._deliver(
                Saved(node.name, node.incarnation, node.snapshot.lease, tuple(node.saved), tuple(node.unchanged))
            )
            node.snapshot = None
        return True

    def _save(self, node: Node, try_only: bool = False) -> bool:
        if try_only or not node.captured:
            return bool(node.captured)
        captured = node.captured.pop()
        assert node.snapshot is not None
        if self.random.random() < 0.9:  # else the store was away for it
            item = Save(self._routing.unit(captured.slot), captured.state, batch=captured.batch)
            node.saved.append(self._states.save(item.unit, item.state, batch=item.batch, lease=node.snapshot.lease))
        return True

    def _crash_node(self) -> None:
        living = [node for node in self._nodes if node.alive]
        if not living:
            return
        self.crashes += 1
        node = self.random.choice(living)
        self._tell(f"{node.incarnation} dies")
        if self.random.random() < 0.7:
            node.alive = False  # else it is only taken for dead, and goes on talking
        self._later(lambda: self._hear(events.NodeLost(node.name, node.incarnation, "crashed")))

    # Spark's side of a batch.

    def _send_batch(self) -> None:
        batch = self._spark_committed + 1
        if batch >= len(self._batches):
            return
        if batch <= self._coordinator.newest.batch:
            self._spark_committed = batch
            self._sent_batch = None
            return
        if (
            self._sent_batch == batch
            or self._coordinator.batches_ahead >= 3
            or not self._coordinator.is_between_batches
        ):
            return
        self._sent_batch = batch
        refs = tuple(self._send_partition(batch, *part) for part in enumerate(self._batches[batch]) if part[1].num_rows)
        time = BatchTime(batch, 1_000 * batch, None, None)
        self._deliver(events.BatchLogged(batch, refs, time))

    def _send_partition(self, batch: int, partition: int, rows: pa.Table) -> LogRef:
        hashes = key_hash([rows[name] for name in self._pipeline.stages[0].key])
        parts = split(rows, self._routing.slots_of(hashes, 0))
        if self.random.random() < self._faults.duplicate:
            self._log.append(batch, partition, parts.slices())  # an attempt that Spark gave up on
        ref = self._log.append(batch, partition, parts.slices())
        mine = parts.for_node(self._routing)
        for node in self._counting():
            if self.random.random() < self._faults.stage:
                node.staged[ref.nonce] = mine[node.name].slices() if node.name in mine else {}
        return ref

    # Time.

    def _act(self) -> None:
        """One random thing happens."""
        kind = self.random.random()
        if kind < self._faults.snapshot:
            self._hear(events.SnapshotDue())
        elif kind < self._faults.snapshot + self._faults.collect:
            Collector(self._store, SECRET, JOB).collect()
        elif kind < 0.3:
            self._send_batch()
        elif kind < 0.6 and (living := [node for node in self._nodes if node.alive]):
            self._work(self.random.choice(living))
        elif self._actions:
            action = self._actions.pop(self.random.randrange(len(self._actions)))
            action()

    def _busy(self) -> bool:
        """Whether a unit is missing, or behind."""
        newest = self._coordinator.newest
        held = [slot for node in self._counting() if node.host.is_past(newest) for slot in node.host.slots()]
        stages = range(len(self._pipeline.stages))
        return sorted(held) != sorted(slot for stage in stages for slot in self._routing.slots(stage))

    def _counting(self) -> list[Node]:
        alive = self._coordinator.alive()
        return [node for node in self._nodes if node.alive and alive.get(node.name) == node.incarnation]

    def _deliver(self, event: Any) -> None:
        def arrive() -> None:
            self._tell("heard", event)
            self._hear(event)

        self._later(arrive)

    _answer = _deliver

    def _later(self, action: Callable[[], None], writes: bool = False) -> None:
        if writes:
            action.writes = True  # type: ignore[attr-defined]
        self._actions.append(action)

    def _tell(self, *words: Any) -> None:
        """Not put into text yet: most stories are never read."""
        self.story.append(words)
