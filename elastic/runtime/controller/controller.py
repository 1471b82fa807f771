"""The controller: one thread asks the coordinator what to do about each event; others do it."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from elastic.errors import CheckpointMismatch, JobStopped, NodeInUse, NodeStartFailed, NoRoom
from elastic.results import ResultLog
from elastic.routing import Routing
from elastic.routing.slots import task_of_slot
from elastic.runtime.controller.deeds import StoreDeeds
from elastic.runtime.controller.moving import Moving
from elastic.runtime.controller.nodes import Nodes
from elastic.runtime.controller.recoveries import Recoveries
from elastic.runtime.pauses import PauseMeter
from elastic.runtime.protocol import (
    Applied,
    CaughtUp,
    Coordinator,
    Failed,
    Installed,
    Joined,
    Position,
    Released,
    Saved,
    StepEnded,
    StepStarted,
    Stored,
    commands,
    events,
)
from elastic.runtime.stopping import Deadline
from elastic.runtime.wire.failures import failure_from_json
from elastic.settings import Settings
from migration.live import MigrationRun
from storage.state import BatchTime, Collector, LogRef, Manifests, SourceBatch

_log = logging.getLogger(__name__)
_JOIN_SECONDS = 5.0  # for a thread that may be in a call to Spark
_LEAVE_SECONDS = 10.0  # for nodes that finish the step under way; then they are cancelled
_FAILED_STARTS = 2  # of one node in a row after which its error is raised: one may be chance
_POSTPONED = 3  # snapshots that a migration may delay: both want the same disks and processors


@dataclass(frozen=True)
class JobParts:
    """What a controller stands on, made by whoever starts the job."""

    name: str
    manifests: Manifests
    results: ResultLog | None  # None: nobody wants results
    collector: Collector
    coordinator: Coordinator
    settings: Settings


@dataclass(frozen=True)
class Route:
    """Where senders bring rows: the routing, and the addresses of nodes that have their units."""

    routing: Routing
    addresses: dict[str, str]


class Controller:
    """One life of a job's controller. `start`, then any thread may call it, until `close`."""

    def __init__(self, parts: JobParts, nodes: Nodes) -> None:
        self.recoveries = Recoveries()
        self.manifests = parts.manifests
        self._parts = parts
        self._nodes = nodes
        self._coordinator = parts.coordinator
        self._moving = Moving(parts.coordinator)
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._error: BaseException | None = None
        self._closing = threading.Event()
        self.ingest_stopped = threading.Event()
        self._abandons_batches = False
        self._failed_starts: dict[str, tuple[int, str]] = {}  # by node: how many in a row, and why the last one failed
        self.deeds = StoreDeeds(
            parts.manifests,
            parts.results,
            parts.collector,
            parts.coordinator.placement.committed,
            patience_seconds=parts.settings.store_patience_seconds,
            retain_result_batches=parts.settings.retain_result_batches,
            post=self._events.put,
            on_failure=self.fail,
        )
        self._execute: dict[type, Callable[[Any], None]] = {
            commands.StartNode: lambda command: nodes.start(command.node, command.incarnation),
            commands.StopNode: lambda command: nodes.stop(command.node, command.incarnation),
            commands.Send: lambda command: nodes.send(command.node, command.incarnation, command.message),
            commands.CommitRound: self.deeds.commit_round,
            commands.CommitEpoch: self.deeds.commit_epoch,
            commands.CommitRouting: self.deeds.commit_routing,
            commands.PublishResults: self.deeds.publish,
            commands.OpenLease: self.deeds.open_lease,
            commands.CommitStates: self.deeds.commit_states,
            commands.OpenMoveLease: self.deeds.open_move_lease,
            commands.CloseMoveLease: self.deeds.close_move_lease,
            commands.FailJob: self._fail_job,
        }
        self._threads = [
            threading.Thread(target=self._run, name="controller", daemon=True),
            threading.Thread(target=self._watch, name="controller-clock", daemon=True),
        ]

    def start(self) -> None:
        """Start the nodes and everything else; returns at once."""
        self._nodes.listen(
            joined=self._joined,
            applied=lambda document: self._events.put(Applied.from_json(document)),
            saved=lambda document: self._events.put(Saved.from_json(document)),
            released=lambda document: self._events.put(Released.from_json(document)),
            stored=lambda document: self._events.put(Stored.from_json(document)),
            installed=lambda document: self._events.put(Installed.from_json(document)),
            failed=lambda document: self._events.put(Failed.from_json(document)),
            caught_up=lambda document: self._events.put(CaughtUp.from_json(document)),
            step_started=lambda document: self._events.put(StepStarted.from_json(document)),
            step_ended=lambda document: self._events.put(StepEnded.from_json(document)),
            overdue=self._overdue,
            ended=self._ended,
        )
        for thread in self._threads:
            thread.start()

    def wait_until_serving(self, seconds: float) -> None:
        """Until every node has its units; `NoRoom` if that takes too long."""
        self._wait_until_serving(self._nodes.names, seconds)

    @property
    def newest_batch(self) -> int:
        """The newest batch that counts."""
        return self._coordinator.newest.batch

    @property
    def published_batch(self) -> int:
        """The newest batch whose results are visible."""
        return self._coordinator.published

    @property
    def source(self) -> SourceBatch:
        """The newest batch of the source that is committed.

        Version 0.1 did not store it: its batches had the numbers of the source.
        """
        return self._coordinator.manifest.source or SourceBatch(self._coordinator.newest.batch)

    @property
    def latest_time(self) -> BatchTime | None:
        """The clocks of the newest committed batch; None before the first."""
        return self._coordinator.manifest.latest_time

    @property
    def is_idle(self) -> bool:
        """Whether the results of every committed batch are published."""
        return self._coordinator.batches.ahead == 0

    def claim(self, query: str) -> None:
        """Bind the job to Spark's query, which its checkpoint names: the batch numbers of another one mean nothing."""
        bound = self._parts.manifests.recover().meta.get("query")
        if bound is None:
            self._parts.manifests.commit(lambda current: replace(current, meta={**current.meta, "query": query}))
        elif bound != query:
            raise CheckpointMismatch(self._parts.name, 0, self.source.batch)

    def wait_for_room(self) -> None:
        """Until the nodes are not too far behind: this is what makes a fast source wait."""
        limit = self._parts.settings.max_batches_ahead
        self._wait_to_ingest(lambda: self._coordinator.batches.ahead < limit)

    def accept(self, batch: int, logs: tuple[LogRef, ...], time: BatchTime, source: SourceBatch | None) -> None:
        """Commit a logged batch; returns when it is committed. A tick has no batch of the source."""
        self._wait_to_ingest(lambda: self._coordinator.batches.is_between)
        self._events.put(events.BatchLogged(batch, logs, time, source))

        def is_committed() -> bool:
            if self._abandons_batches:
                raise JobStopped(self._parts.name, f"batch {batch} was not committed before")
            return self._coordinator.newest >= Position(batch, 0)

        self._wait_for(is_committed)

    def stop_ingest(self, *, abandon: bool) -> None:
        """No batch is taken any more, and those that wait for room are refused: Spark sends them again in the next run.

        With `abandon` nobody waits for the commit under way either.
        """
        with self._changed:
            self.ingest_stopped.set()
            self._abandons_batches = self._abandons_batches or abandon
            self._changed.notify_all()

    def check_ingest(self) -> None:
        """Raise unless batches are taken."""
        self.check()
        if self.ingest_stopped.is_set():
            raise JobStopped(self._parts.name)

    def wait_until_applied(self, batch: int, seconds: float | None = None) -> None:
        """Until the results of a batch are visible."""
        what = f"batch {batch} to be applied by every node"
        self._wait_for(lambda: self._coordinator.published >= batch, seconds, what)

    def snapshot(self, seconds: float) -> int:
        """Save all that changed up to now; the batch that all states include then."""
        with self._changed:
            wanted = self._coordinator.published
        deadline = time.monotonic() + seconds
        while self._coordinator.manifest.low_water_mark < wanted:
            before = self._coordinator.snapshots.ended
            self._events.put(events.SnapshotDue())
            left = max(0.0, deadline - time.monotonic())
            self._wait_for(
                lambda before=before: self._coordinator.snapshots.ended > before,  # type: ignore[misc]
                left,
                f"a snapshot that includes batch {wanted}",
            )
        return self._coordinator.manifest.low_water_mark

    def route(self) -> Route:
        with self._changed:
            serving = self._coordinator.roster.serving()
            addresses = {node: address for node, address in self._nodes.addresses().items() if node in serving}
            return Route(self._coordinator.placement.route(), addresses)

    def committed_routing(self) -> Routing:
        return self._coordinator.placement.committed

    def begin_migration(self, run: MigrationRun, *, direct: bool = False) -> None:
        """Move units as the run says. Returns when the first mini-migration has begun, or none may begin."""
        self._decided(lambda: self._moving.begin(run, direct=direct))
        self._wait_for(lambda: not run.can_go_on)

    def wait_for_migration(self, run: MigrationRun, seconds: float | None = None) -> None:
        self._wait_for(lambda: run.is_over or (run.is_paused and run.is_between), seconds)

    def go_on_with_migration(self) -> None:
        self._events.put(self._moving.go_on)

    def add_nodes(self, nodes: Sequence[str], seconds: float) -> None:
        """Start more nodes, without units, at once; `NoRoom` if not all come up, and then none is wanted any more."""
        for node in nodes:
            self._events.put(events.NodeWanted(node))
        try:
            self._wait_until_serving(nodes, seconds)
        except (NoRoom, NodeStartFailed):
            for node in nodes:
                self.remove_node(node)
            raise

    def remove_node(self, node: str) -> None:
        """Let a node without units go; returns when it is told. `NodeInUse` if it owns units, and then it stays."""
        slots: list[int] = []

        def remove() -> list[commands.Command]:
            slots.extend(self._coordinator.placement.slots_on(node))
            return self._handle(events.NodeUnwanted(node))

        self._decided(remove)
        if slots:
            raise NodeInUse(node, sorted({task_of_slot(slot) for slot in slots}))

    def replace_node(self, node: str, why: str) -> None:
        """Treat a node as lost: its process is ended, and another incarnation takes its units."""
        known = self._nodes.status().get(node)
        if known is not None:
            self._events.put(events.NodeLost(node, known["incarnation"], why))

    def stop_nodes(self) -> None:
        """Every node leaves, and is gone when this returns; a migration that was under way did not happen."""
        ending: list[str] = []

        def stop() -> list[commands.Command]:
            before = self._coordinator.roster.wanted()
            decided = self._moving.stop_nodes()
            ending.extend(set(before.values()) - set(self._coordinator.roster.wanted().values()))
            return decided

        self._decided(stop)
        self._nodes.wait_for_end(ending)

    def start_nodes(self, seconds: float) -> None:
        """Every node that owns units is started, and has them when this returns; `NoRoom` if that takes too long."""
        self._decided(self._moving.start_owners)
        self._wait_until_serving(self._coordinator.placement.owners(), seconds)

    def status(self) -> dict[str, Any]:
        with self._changed:
            coordinator = self._coordinator
            return {
                "epoch": coordinator.manifest.epoch,
                "last_batch": coordinator.newest.batch,
                "published_batch": coordinator.published,
                "saved_batch": coordinator.manifest.low_water_mark,
                "batches_ahead": coordinator.batches.ahead,
                "serving": sorted(coordinator.roster.serving()),
                "losses": self.recoveries.losses,
                "recoveries": [recovery.to_json() for recovery in self.recoveries.done],
                "nodes": self._nodes.status(),
                "failed_starts": dict(self._failed_starts),
                "deaths": [
                    (node, *position, deaths)
                    for node, positions in coordinator.crashes.counts().items()
                    for position, deaths in positions.items()
                ],
            }

    def story(self) -> list[str]:
        """The latest events and what was decided about each."""
        with self._changed:
            return [f"{event} -> {decided}" for event, decided in self._coordinator.story]

    def fail(self, error: BaseException) -> None:
        """Every wait ends with this error, now and later; the first one counts."""
        with self._changed:
            if self._error is None and not self._closing.is_set():
                self._error = error
                _log.error("the job %s cannot go on: %s", self._parts.name, error)
            self._changed.notify_all()

    def _fail_job(self, command: commands.FailJob) -> None:
        failure = command.failure
        self.fail(failure_from_json(failure.error) if isinstance(failure, Failed) else failure)

    def _joined(self, document: dict[str, Any]) -> None:
        with self._changed:
            self._failed_starts.pop(document["node"], None)
        self._events.put(Joined.from_json(document))

    def _ended(self, node: str, incarnation: str, why: str, failed: bool) -> None:
        if failed and not self._nodes.has_joined(node, incarnation):
            with self._changed:
                before, _ = self._failed_starts.get(node, (0, ""))
                self._failed_starts[node] = (before + 1, why)
        self._events.put(events.NodeLost(node, incarnation, why))

    def _overdue(self, document: dict[str, Any]) -> None:
        """A node ends its process because of a step that does not end."""
        step = StepStarted.from_json(document)
        limit = self._parts.settings.step_timeout_seconds
        why = f"its step ran for {document['seconds']:.1f} s, longer than step_timeout_seconds={limit:g}"
        self._events.put(step)
        self._events.put(events.NodeLost(step.node, step.incarnation, why))

    @property
    def error(self) -> BaseException | None:
        return self._error

    def check(self) -> None:
        """Raise what ended the job, if anything did."""
        if self._error is not None:
            # A fresh one for each thread that waits: a raised exception collects tracebacks.
            raise copy(self._error)
        if self._closing.is_set():
            raise JobStopped(self._parts.name)

    def close(self, seconds: float = 30.0) -> list[str]:
        """Stop the nodes gracefully, and every thread; what did not end in time, in sentences."""
        deadline = Deadline(seconds)
        self._closing.set()
        self._events.put(None)
        with self._changed:
            self._changed.notify_all()
        unfinished = []
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(deadline.left(_JOIN_SECONDS))
        if late := self._nodes.close(min(_LEAVE_SECONDS, 0.7 * deadline.left())):
            unfinished.append(f"{', '.join(late)} did not leave in time; the driver cancelled the Spark job of each.")
        if not self.deeds.close(deadline.left()):
            unfinished.append("A write to the store did not return; its result is found by the next run.")
        return unfinished

    def _decided(self, decide: Callable[[], list[commands.Command]]) -> None:
        """Wait until this was decided, in its turn; it is carried out before the next event."""
        done = threading.Event()

        def decide_and_say() -> list[commands.Command]:
            decided = decide()
            done.set()
            return decided

        self._events.put(decide_and_say)
        self._wait_for(done.is_set)

    def _wait_until_serving(self, nodes: Collection[str], seconds: float) -> None:
        wanted = set(nodes)

        def serving() -> bool:
            for node in wanted:
                attempts, why = self._failed_starts.get(node, (0, ""))
                if attempts >= _FAILED_STARTS:
                    raise NodeStartFailed(node, why, attempts)
            return wanted <= self._coordinator.roster.serving()

        try:
            self._wait_for(serving, seconds)
        except TimeoutError:
            raise NoRoom(len(wanted & self._coordinator.roster.serving()), len(wanted), seconds) from None

    def _wait_to_ingest(self, condition: Callable[[], bool]) -> None:
        """As long as it takes: this is how the source is throttled. Ended by `stop_ingest`."""

        def may_go_on() -> bool:
            self.check_ingest()
            return condition()

        self._wait_for(may_go_on)

    def _wait_for(
        self, condition: Callable[[], bool], seconds: float | None = None, what: str = "the controller to decide"
    ) -> None:
        def ready() -> bool:
            if condition():
                return True
            self.check()
            return False

        with self._changed:
            if not self._changed.wait_for(ready, seconds):
                raise TimeoutError(f"timed out after {seconds:.3g} s waiting for {what}. Look at the job's status.")

    def _run(self) -> None:
        try:
            self._decide_all()
        except Exception as error:  # noqa: BLE001 - else everybody would wait for ever for a thread that is gone
            self.fail(error)

    def _decide_all(self) -> None:
        decided = self._coordinator.start()
        while not self._closing.is_set():
            for command in decided:
                self._execute[type(command)](command)
            event = self._events.get()
            decided = [] if event is None else self._decide(event)

    def _decide(self, event: Any) -> list[commands.Command]:
        with self._changed:
            decided = event() if callable(event) else self._handle(event)
            self._changed.notify_all()
        return decided

    def _handle(self, event: Any) -> list[commands.Command]:
        decided = self._moving.handle(event)
        if isinstance(event, events.NodeLost) and decided:
            self.recoveries.lost(event.node, event.reason)
        elif isinstance(event, events.NodeUnwanted) and decided:
            self.recoveries.left(event.node)
        elif isinstance(event, CaughtUp):
            self.recoveries.caught_up(event)
        return decided

    def _paused_seconds(self, pauses: PauseMeter) -> float:
        paused = pauses.measure()
        if paused > self._parts.settings.node_timeout_seconds / 2:
            _log.warning("the driver did not run for %.1f s; nodes have that much longer to report", paused)
        return paused

    def _watch(self) -> None:
        """The clock: silence of nodes, and snapshots."""
        settings = self._parts.settings
        snapshot_at = time.monotonic() + settings.snapshot_seconds
        pauses = PauseMeter(2 * settings.heartbeat_seconds)
        while not self._closing.wait(settings.heartbeat_seconds):
            for node, incarnation, why in self._nodes.silent(self._paused_seconds(pauses)):
                self._events.put(events.NodeLost(node, incarnation, why))
            late = time.monotonic() - snapshot_at
            if late >= (_POSTPONED * settings.snapshot_seconds if self._moving.is_under_way else 0.0):
                self._events.put(events.SnapshotDue())
                snapshot_at = time.monotonic() + settings.snapshot_seconds
