"""The controller: one thread asks the coordinator what to do about each event; others do it."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from elastic.errors import CheckpointMismatch, JobStopped, NoRoom
from elastic.results import ResultLog
from elastic.routing import Routing
from elastic.runtime.controller.deeds import StoreDeeds
from elastic.runtime.controller.moving import Moving
from elastic.runtime.controller.nodes import Nodes
from elastic.runtime.controller.recoveries import Recoveries
from elastic.runtime.protocol import (
    Applied,
    Coordinator,
    Failed,
    Installed,
    Joined,
    Position,
    Released,
    Saved,
    Stored,
    commands,
    events,
)
from elastic.runtime.wire.failures import failure_from_json
from elastic.settings import Settings
from migration.live import MigrationRun
from storage.state import BatchTime, Collector, LogRef, Manifests, SourceBatch

_log = logging.getLogger(__name__)
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
            commands.FailJob: lambda command: self.fail(failure_from_json(command.failure.error)),
        }
        self._threads = [
            threading.Thread(target=self._run, name="controller", daemon=True),
            threading.Thread(target=self._watch, name="controller-clock", daemon=True),
        ]

    def start(self) -> None:
        """Start the nodes and everything else; returns at once."""
        self._nodes.listen(
            joined=lambda document: self._events.put(Joined.from_json(document)),
            applied=lambda document: self._events.put(Applied.from_json(document)),
            saved=lambda document: self._events.put(Saved.from_json(document)),
            released=lambda document: self._events.put(Released.from_json(document)),
            stored=lambda document: self._events.put(Stored.from_json(document)),
            installed=lambda document: self._events.put(Installed.from_json(document)),
            failed=lambda document: self._events.put(Failed.from_json(document)),
            caught_up=self.recoveries.caught_up,
            ended=lambda node, incarnation, why: self._events.put(events.NodeLost(node, incarnation, why)),
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
    def applied_batch(self) -> int:
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
        self._wait_for(lambda: self._coordinator.batches.ahead < limit)

    def accept(self, batch: int, logs: tuple[LogRef, ...], time: BatchTime, source: SourceBatch | None) -> None:
        """Commit a logged batch; returns when it is committed. A tick has no batch of the source."""
        self._wait_for(lambda: self._coordinator.batches.is_between)
        self._events.put(events.BatchLogged(batch, logs, time, source))
        self._wait_for(lambda: self._coordinator.newest >= Position(batch, 0))

    def wait_until_applied(self, batch: int, seconds: float | None = None) -> None:
        """Until the results of a batch are visible."""
        self._wait_for(lambda: self._coordinator.published >= batch, seconds)

    def snapshot(self, seconds: float) -> int:
        """Save all that changed up to now; the batch that all states include then."""
        with self._changed:
            wanted = self._coordinator.published
        deadline = time.monotonic() + seconds
        while self._coordinator.manifest.low_water_mark < wanted:
            before = self._coordinator.snapshots.ended
            self._events.put(events.SnapshotDue())
            left = deadline - time.monotonic()
            self._wait_for(lambda before=before: self._coordinator.snapshots.ended > before, left)  # type: ignore[misc]
        return self._coordinator.manifest.low_water_mark

    def route(self) -> Route:
        with self._changed:
            serving = self._coordinator.roster.serving()
            addresses = {node: address for node, address in self._nodes.addresses().items() if node in serving}
            return Route(self._coordinator.placement.route(), addresses)

    def committed_routing(self) -> Routing:
        return self._coordinator.placement.committed

    def begin_migration(self, run: MigrationRun, lease: str, *, direct: bool = False) -> None:
        """Move units as the run says; states on their way are stored under the lease. Returns at once."""
        self._events.put(lambda: self._moving.begin(run, lease, direct=direct))

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
        except NoRoom:
            for node in nodes:
                self.remove_node(node)
            raise

    def remove_node(self, node: str) -> None:
        """Let a node without units go; returns when it is told."""
        self._events.put(events.NodeUnwanted(node))
        self._wait_for(lambda: node not in self._coordinator.roster.serving())

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
                "applied_batch": coordinator.published,
                "saved_batch": coordinator.manifest.low_water_mark,
                "batches_ahead": coordinator.batches.ahead,
                "serving": sorted(coordinator.roster.serving()),
                "losses": self.recoveries.losses,
                "recoveries": [recovery.to_json() for recovery in self.recoveries.done],
                "nodes": self._nodes.status(),
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

    def close(self) -> None:
        """Stop the nodes gracefully, and every thread."""
        self._closing.set()
        self._events.put(None)
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._nodes.close()
        self.deeds.close()

    def _decided(self, decide: Callable[[], list[commands.Command]]) -> None:
        """Wait until this was decided, in its turn; it is carried out before the next event."""
        done = threading.Event()

        def decide_and_say() -> list[commands.Command]:
            done.set()
            return decide()

        self._events.put(decide_and_say)
        self._wait_for(done.is_set)

    def _wait_until_serving(self, nodes: Collection[str], seconds: float) -> None:
        wanted = set(nodes)
        try:
            self._wait_for(lambda: wanted <= self._coordinator.roster.serving(), seconds)
        except TimeoutError:
            raise NoRoom(len(wanted & self._coordinator.roster.serving()), len(wanted), seconds) from None

    def _wait_for(self, condition: Callable[[], bool], seconds: float | None = None) -> None:
        def ready() -> bool:
            self.check()
            return condition()

        with self._changed:
            if not self._changed.wait_for(ready, seconds):
                raise TimeoutError(f"{seconds:g} s were not enough. Wait longer, or look at the job's status.")

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
            decided = event() if callable(event) else self._moving.settle(self._coordinator.handle(event))
            if isinstance(event, events.NodeLost) and decided:
                self.recoveries.lost(event.node, event.reason)
            elif isinstance(event, events.NodeUnwanted) and decided:
                self.recoveries.left(event.node)
            self._changed.notify_all()
        return decided

    def _watch(self) -> None:
        """The clock: silence of nodes, and snapshots."""
        settings = self._parts.settings
        snapshot_at = time.monotonic() + settings.snapshot_seconds
        while not self._closing.wait(settings.heartbeat_seconds):
            for node, incarnation, why in self._nodes.silent():
                self._events.put(events.NodeLost(node, incarnation, why))
            late = time.monotonic() - snapshot_at
            if late >= (_POSTPONED * settings.snapshot_seconds if self._moving.is_under_way else 0.0):
                self._events.put(events.SnapshotDue())
                snapshot_at = time.monotonic() + settings.snapshot_seconds
