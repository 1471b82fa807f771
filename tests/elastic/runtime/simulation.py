"""A seeded world: the protocol's own coordinator and hosts, the real storage code, and everything between them unkind.

Messages are delayed, reordered and doubled; nodes and the controller die at any moment, also between a write and its
answer; processes that were replaced go on talking. Every seed is one story, and a failure prints it.
"""

import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

import storage
from elastic.results import Description, ResultLog
from elastic.routing import IntervalRouting, key_hash, routing_from_json, split
from elastic.runtime.controller.moving import Moving
from elastic.runtime.node.outputs import Outputs
from elastic.runtime.pipeline import emitting, runners
from elastic.runtime.protocol import (
    Adopt,
    Apply,
    Coordinator,
    Forget,
    Held,
    Host,
    Installed,
    Joined,
    Message,
    Release,
    Released,
    Saved,
    Snapshot,
    Stored,
    Unchanged,
    Work,
    commands,
    events,
)
from elastic.runtime.protocol.host import Capture, Taken
from elastic.runtime.protocol.ordering import InOrder
from migration import Assignment, ScatteredAssignment, Workload, moves_between
from migration.live import MigrationRun
from storage import Secret
from storage.errors import ObjectMissing
from storage.state import (
    BatchTime,
    Collector,
    InputLog,
    Lease,
    LogRef,
    Manifest,
    Manifests,
    PackedState,
    Save,
    StateManager,
    StateRef,
    Unit,
)

JOB = "simulated"
SECRET = Secret.of("a secret of the simulated world")
IN_VAIN = 30  # a message is as likely to come next as an attempt: so many before it are no chance


@dataclass(frozen=True)
class Faults:
    """How unkind the world is: chances per step."""

    node_crash: float = 0.01
    controller_crash: float = 0.003
    duplicate: float = 0.1
    collect: float = 0.02
    snapshot: float = 0.05
    migration: float = 0.0
    restart: float = 0.0  # that a migration stops all nodes
    direct: float = 0.0  # that states of a migration go from node to node
    stage: float = 0.7  # that a slice reaches its node before the commit


@dataclass
class Node:
    """One incarnation: a host, what it has yet to write, and the states it is saving."""

    name: str
    incarnation: str
    host: Host
    outputs: Outputs
    to_write: deque[Taken] = field(default_factory=deque)
    staged: dict[str, tuple[set[int], dict[int, pa.Table]]] = field(default_factory=dict)  # what it covers, rows
    snapshot: Snapshot | None = None
    captured: list[Capture] = field(default_factory=list)
    saved: list[StateRef] = field(default_factory=list)
    unchanged: list[Unchanged] = field(default_factory=list)
    releases: list[tuple[Release, list[int], list[StateRef]]] = field(default_factory=list)  # left, saved
    offers: dict[str, PackedState] = field(default_factory=dict)
    to_store: list[PackedState] = field(default_factory=list)
    alive: bool = True
    commands: InOrder[Message] = field(default_factory=InOrder)


class World:
    """Runs `batches` (each a list of source partitions) through a pipeline until every result is published."""

    def __init__(
        self, seed: int, pipeline: Description, batches: list[list[pa.Table]], *, nodes: int, faults: Faults
    ) -> None:
        self.random = random.Random(seed)  # noqa: S311 - the world is unkind, not secret
        self.story: list[tuple[Any, ...]] = []
        self.crashes = 0
        self.migrations = 0
        self.direct = 0  # states that came from their source
        self._pipeline = pipeline
        self._batches = batches
        self._faults = faults
        self._store = storage.open("memory:")
        self._log = InputLog(self._store, SECRET, JOB)
        self._states = StateManager(self._store, SECRET, JOB, threads=1)
        self._routing = IntervalRouting(Assignment.even(tasks=pipeline.tasks, nodes=nodes))
        self._nodes: list[Node] = []
        self._numbers: Counter[str] = Counter()  # of commands sent, by incarnation
        self._in_vain: Counter[tuple[str, Held]] = Counter()  # attempts to load what only a lost source had
        self._actions: list[Callable[[], None]] = []
        self._stopping: MigrationRun | None = None  # waits until all is saved, and begins when no node is left
        self._spark_committed = -1
        self._begin_controller()

    @property
    def results(self) -> ResultLog:
        return self._results

    def run(self, limit: int = 20_000) -> None:
        """Until all is published and saved; migrations stop halfway through the limit so that the world can settle.

        Crashes stop at some moment before: another crash would heal what the last one broke.
        """
        calm_after = self.random.choice([limit // 40, limit // 20, limit // 10, limit // 2])
        for step in range(limit):
            if self._coordinator.published == len(self._batches) - 1 and not self._busy():
                return
            if step == limit // 2:
                self._faults = replace(self._faults, migration=0.0)
                self._forget_restart()
                self._resume()
            kind = self.random.random()
            if step < calm_after and kind < self._faults.controller_crash:
                self._crash_controller()
            elif step < calm_after and kind < self._faults.controller_crash + self._faults.node_crash:
                self._crash_node()
            else:
                self._act()
        raise AssertionError(f"the world has not come to rest; published {self._coordinator.published}")

    def final_states(self) -> dict[int, Any]:
        """What the nodes that count hold in the end."""
        found = {}
        for node in self._counting():
            for slot, unit in node.host._units.items():
                if not unit.is_released:
                    assert slot not in found, f"slot {slot} works on two nodes"
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
        routing = routing_from_json(manifest.assignment)
        assert isinstance(routing, IntervalRouting)
        names = routing.assignment.nodes
        self._coordinator = Coordinator(manifest, routing, published, emitting(runners(self._pipeline, "fail")), names)
        self._moving = Moving(self._coordinator)
        self._lease: Lease | None = None
        self._sent_batch: int | None = None
        self._forget_restart()
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
        self._execute(self._moving.handle(event))

    def _execute(self, decided: list[Any]) -> None:
        for command in decided:
            self._tell("   decided", command)
            getattr(self, f"_do_{type(command).__name__}")(command)

    def _do_StartNode(self, command: commands.StartNode) -> None:  # noqa: N802 - named by the command
        stages = runners(self._pipeline, "fail")
        outputs = Outputs(stages, self._routing, self._log, self._results, keeps_results=True)
        node = Node(command.node, command.incarnation, Host(stages), outputs)

        def join() -> None:
            self._nodes.append(node)
            self._deliver(Joined(node.name, node.incarnation, node.incarnation))

        self._later(join)

    def _do_Send(self, command: commands.Send) -> None:  # noqa: N802
        number = self._numbers[command.incarnation]
        self._numbers[command.incarnation] += 1

        def arrive() -> None:
            for node in self._nodes:
                if node.incarnation == command.incarnation and node.alive:
                    for message in node.commands.accept(number, command.message):
                        self._receive(node, message)

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

    def _do_StopNode(self, command: commands.StopNode) -> None:  # noqa: N802
        def stop() -> None:
            for node in self._nodes:
                if node.incarnation == command.incarnation:
                    node.alive = False

        self._later(stop)

    def _do_CommitRouting(self, command: commands.CommitRouting) -> None:  # noqa: N802
        def change(current: Manifest) -> Manifest:
            routing = IntervalRouting(command.assignment, current.epoch + 1)
            return replace(current, epoch=routing.epoch, assignment=routing.to_json())

        def commit() -> None:
            manifest = self._manifests.commit(change)
            routing = routing_from_json(manifest.assignment)
            self._answer(events.RoutingCommitted(manifest, routing, command.assignment))

        self._later(commit, writes=True)

    def _do_OpenMoveLease(self, _: commands.OpenMoveLease) -> None:  # noqa: N802
        def open_lease() -> None:
            self._answer(events.MoveLeaseOpened(self._manifests.leases.open("migration").id))

        self._later(open_lease, writes=True)

    def _do_CloseMoveLease(self, command: commands.CloseMoveLease) -> None:  # noqa: N802
        self._later(lambda: self._manifests.leases.abandon([command.lease]), writes=True)

    # Migrations.

    def _migrate(self) -> None:
        """Begin one to a random assignment, or pause, resume, cancel or end the one that there is."""
        run = self._moving.run
        if self._stopping is not None:
            self._restart(self._stopping)
            return
        if run is not None and not run.is_over:
            self._control(run)
            return
        routing = self._coordinator.placement.committed
        assert isinstance(routing, IntervalRouting)
        for node in sorted(set(self._coordinator.roster.alive()) - set(routing.assignment.owners)):
            self._hear(events.NodeUnwanted(node))
        nodes = [f"node-{number}" for number in range(1, self.random.choice([2, 3, 4, 5]))]
        owners = [self.random.choice(nodes) for _ in range(routing.assignment.tasks)]
        target = ScatteredAssignment.of_owners(owners, nodes)
        restarts = self.random.random() < self._faults.restart
        for node in nodes:
            if not restarts:
                self._hear(events.NodeWanted(node))
        workload = Workload([1.0] * len(owners), [1.0] * len(owners))
        moves = moves_between(routing.assignment, target, workload)
        size = self.random.choice([1, 2, 8])
        minis = [moves[start : start + size] for start in range(0, len(moves), size)]
        self._tell("a migration begins:", moves)
        self.migrations += 1
        if restarts:
            self._stopping = MigrationRun(routing.assignment, target, [moves])
            return
        begun = MigrationRun(routing.assignment, target, minis)
        direct = self.random.random() < self._faults.direct
        self._execute(self._moving.begin(begun, direct=direct))

    def _forget_restart(self) -> None:
        self._stopping = None

    def _restart(self, run: MigrationRun) -> None:
        """Mostly when all is applied and saved, as a job does; the protocol must not depend on that."""
        published = self._coordinator.published
        applied = published == self._coordinator.newest.batch and self._sent_batch is None
        saved = self._coordinator.manifest.low_water_mark == published
        if not (applied and saved) and self.random.random() < 0.9:
            self._hear(events.SnapshotDue())
            return
        self._forget_restart()
        self._tell("all nodes stop")
        self._execute(self._moving.stop_nodes())
        if self.random.random() < 0.2:
            run.pause()  # too late: the old nodes come back, and the move goes on from there
        self._execute(self._moving.begin(run))

    def _go_back(self) -> None:
        """As if there were no room: all nodes stop, and those of the committed assignment start."""
        self._tell("all nodes stop, and nothing has moved")
        self._execute(self._moving.stop_nodes())
        self._execute(self._moving.start_owners())

    def _control(self, run: MigrationRun) -> None:
        kind = self.random.random()
        if kind < 0.1:
            run.cancel()
        elif kind < 0.1 + 0.2 * self._faults.restart:
            self._go_back()
        elif kind < 0.3:
            run.pause()
        else:
            self._resume()

    def _resume(self) -> None:
        if (run := self._moving.run) is not None:
            run.unpause()
        self._execute(self._moving.go_on())

    # Nodes.

    def _receive(self, node: Node, message: Message) -> None:
        self._tell(node.incarnation, "hears", message)
        if isinstance(message, Adopt):
            held = node.host.adopt(message)

            self._later(lambda: self._load(node, held))
        elif isinstance(message, Apply):
            node.host.apply(message)
        elif isinstance(message, Release):
            if slots := node.host.release(message):
                node.releases.append((message, list(slots), []))
        elif isinstance(message, Forget):
            node.host.forget(message)
            node.offers = {key: one for key, one in node.offers.items() if one.ref.unit.task not in message.slots}
        elif node.host.begin_snapshot(message):
            node.snapshot, node.captured, node.saved, node.unchanged = message, [], [], []

    def _load(self, node: Node, units: tuple[Held, ...]) -> None:
        """All at once, as soon as all are there that somebody still waits for."""
        wanted = tuple(held for held in units if node.host.awaits(held))
        if not node.alive or not wanted:
            return
        try:
            found = {held: self._retrieved(held) for held in wanted}
        except ObjectMissing as missing:
            if node not in self._counting():
                node.alive = False  # it fails, and nobody listens
                return
            self._tell(node.incarnation, "waits for", wanted)
            self._check_patience(node, next(one for one in wanted if one.state and one.state.key == missing.key))
            self._later(lambda: self._load(node, wanted))
            return
        for held, saved in found.items():
            assert node.host.loaded(held, saved)
        self._deliver(Installed(node.name, node.incarnation, tuple(held.slot for held in wanted)))

    def _check_patience(self, node: Node, held: Held) -> None:
        """Only what is offered may be missing in the store.

        Who waits for a source that is known to be lost must soon be told; a crash that heals it does not count.
        """
        assert held.source is not None, f"{held} is gone"
        if held.source not in self._coordinator.roster.wanted().values():
            self._in_vain[node.incarnation, held] += 1
            assert self._in_vain[node.incarnation, held] < IN_VAIN, f"{node.incarnation} waits for {held}"

    def _retrieved(self, held: Held) -> Any:
        """From the source if it answers, else from the store."""
        if held.state is None:
            return None
        source = next((one for one in self._nodes if one.incarnation == held.source and one.alive), None)
        if source is not None and held.state.key in source.offers and self.random.random() < 0.8:
            self.direct += 1
            return self._states.load(held.state, fetch=lambda ref: source.offers[ref.key].data).state
        return self._states.load(held.state).state

    def _work(self, node: Node) -> bool:
        kinds = (self._take, self._write, self._capture, self._save, self._release, self._store_offered)
        choices = [kind for kind in kinds if kind(node, try_only=True)]
        if not choices:
            return False
        self.random.choice(choices)(node)
        return True

    def _take(self, node: Node, try_only: bool = False) -> bool:
        works = node.host.works()
        if try_only or not works:
            return bool(works)
        work = self.random.choice(works)
        try:
            rows = self._rows(node, work)
        except ObjectMissing:
            # The log is kept for those that count: any other one fails, and nobody listens.
            assert node not in self._counting(), f"{node.incarnation} misses the log of {work.step.position}"
            node.alive = False
            return True
        self._tell(f"{node.incarnation} takes {work.step.position} with {work.slots}")
        taken = node.host.take(work, rows)
        if taken.slots:
            node.to_write.append(taken)
        return True

    def _rows(self, node: Node, work: Work) -> dict[int, list[pa.Table]]:
        rows: dict[int, list[pa.Table]] = {}
        for ref in work.step.logs:
            covered, slices = node.staged.get(ref.nonce, (set(), {}))
            if not covered.issuperset(work.slots):
                slices = self._log.read(ref, work.slots)
            for slot in work.slots:
                if slot in slices:
                    rows.setdefault(slot, []).append(slices[slot])
        return rows

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

    def _release(self, node: Node, try_only: bool = False) -> bool:
        """Store or offer one state that has stopped, or report that all have."""
        if try_only or not node.releases:
            return bool(node.releases)
        release = self.random.choice(node.releases)
        message, left, saved = release
        for slot in left:
            if (captured := node.host.capture_released(slot)) is not None:
                left.remove(slot)
                unit = self._routing.unit(slot)
                packed = self._states.pack(unit, captured.state, batch=captured.batch, lease=message.lease)
                saved.append(packed.ref)
                if message.direct:
                    node.offers[packed.ref.key] = packed
                    node.to_store.append(packed)
                else:
                    self._states.put(packed)
                return True
        if not left:
            node.releases.remove(release)
            self._deliver(Released(node.name, node.incarnation, tuple(saved), stored=not message.direct))
        return True

    def _store_offered(self, node: Node, try_only: bool = False) -> bool:
        """Store one offered state, and sometimes offer it no longer; or leave it, if nobody needs it any more."""
        if try_only or not node.to_store:
            return bool(node.to_store)
        if self.random.random() < 0.8:
            return True  # the store is slow, so that what is only offered is lost now and then
        packed = node.to_store.pop(self.random.randrange(len(node.to_store)))
        if packed.ref.key in node.offers:
            self._states.put(packed)
            self._deliver(Stored(node.name, node.incarnation, packed.ref))
            if self.random.random() < 0.3:
                del node.offers[packed.ref.key]
        return True

    def _crash_node(self) -> None:
        living = [node for node in self._nodes if node.alive]
        if not living:
            return
        self.crashes += 1
        # Half of them where it hurts: who has what nobody else has, or waits for it.
        at_risk = [node for node in living if node.to_store or node.host.loading]
        node = self.random.choice(at_risk if at_risk and self.random.random() < 0.5 else living)
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
            self._stopping is not None
            or self._sent_batch == batch
            or self._coordinator.batches.ahead >= 3
            or not self._coordinator.batches.is_between
        ):
            return
        self._sent_batch = batch
        refs = tuple(self._send_partition(batch, *part) for part in enumerate(self._batches[batch]) if part[1].num_rows)
        time = BatchTime(batch, 1_000 * batch, None, None)
        self._deliver(events.BatchLogged(batch, refs, time))

    def _send_partition(self, batch: int, partition: int, rows: pa.Table) -> LogRef:
        rows = runners(self._pipeline, "fail")[0].combined(rows)
        hashes = key_hash([rows[name] for name in self._pipeline.stages[0].key])
        parts = split(rows, self._routing.slots_of(hashes, 0))
        if self.random.random() < self._faults.duplicate:
            self._log.append(batch, partition, parts.slices())  # an attempt that Spark gave up on
        ref = self._log.append(batch, partition, parts.slices())
        route = self._coordinator.placement.route()
        mine = parts.for_node(route)
        for node in self._counting():
            if self.random.random() < self._faults.stage:
                covered = {slot for slot in route.slots(0) if node.name in route.owners(slot)}
                node.staged[ref.nonce] = (covered, mine[node.name].slices() if node.name in mine else {})
        return ref

    # Time.

    def _act(self) -> None:
        """One random thing happens."""
        kind = self.random.random()
        if kind < self._faults.snapshot:
            self._hear(events.SnapshotDue())
        elif kind < self._faults.snapshot + self._faults.collect:
            Collector(self._store, SECRET, JOB).collect()
        elif kind < self._faults.snapshot + self._faults.collect + self._faults.migration:
            self._migrate()
        elif kind < 0.3:
            self._send_batch()
        elif kind < 0.6 and (living := self._working()):
            self._work(self.random.choice(living))
        elif self._actions:
            action = self._actions.pop(self.random.randrange(len(self._actions)))
            action()

    def _busy(self) -> bool:
        """Whether a unit is missing, behind, or on its way."""
        if self._stopping is not None or (self._moving.run is not None and not self._moving.run.is_over):
            return True
        newest = self._coordinator.newest
        held = [unit.slot for node in self._counting() if node.host.is_past(newest) for unit in node.host._working()]
        stages = range(len(self._pipeline.stages))
        return sorted(held) != sorted(slot for stage in stages for slot in self._routing.slots(stage))

    def _working(self) -> list[Node]:
        """Mostly those that count: there may be hundreds that were replaced and go on."""
        counting = self._counting()
        if counting and self.random.random() < 0.8:
            return counting
        return [node for node in self._nodes if node.alive]

    def _counting(self) -> list[Node]:
        alive = self._coordinator.roster.alive()
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
