"""The driver of a job: its loop, its store and its nodes, and the waits on what they come to."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from elastic import threads
from elastic.core import commands, events
from elastic.core.coordinator import Coordinator
from elastic.core.ids import Batch
from elastic.core.messages import NodeFailed
from elastic.core.steps import Position
from elastic.core.view import JobView
from elastic.deadlines import Deadline
from elastic.driver.context import JobContext
from elastic.driver.event_loop import EventLoop
from elastic.driver.launcher import Launcher
from elastic.driver.node_links import NodeLinks
from elastic.driver.store_executor import StoreExecutor
from elastic.driver.views import Views
from elastic.errors import CheckpointMismatch, NodeInUse, NodeStartFailed, NodeStartTimeout
from elastic.pauses import PauseMeter
from elastic.results import ResultLog
from elastic.wire.failures import failure_from_json
from storage.errors import StorageError
from storage.state import BatchTime, Collector, InputLog, LogRef, Manifests, SourceBatch

_log = logging.getLogger(__name__)
_JOIN_SECONDS = 5.0  # for a thread that may be in a call to Spark
_LEAVE_SECONDS = 10.0  # for nodes that finish the step under way; then they are cancelled
_FAILED_STARTS = 2  # of one node in a row after which its error is raised: one may be chance
_POSTPONED = 3  # snapshot periods that a migration may delay a snapshot: both want the same disks and processors


class Driver:
    """One life of a job's driver. `start`, then any thread may call it, until `close`."""

    def __init__(
        self,
        context: JobContext,
        coordinator: Coordinator,
        manifests: Manifests,
        results: ResultLog | None,  # None: the job keeps no results
        launcher: Launcher,
        *,
        on_published: Callable[[], None] = lambda: None,
        needed_from: Callable[[], int | None] = lambda: None,
    ) -> None:
        self.views = Views(context.name, coordinator.view())
        self._context = context
        self._manifests = manifests
        self.links = links = NodeLinks(context, launcher, self._post)
        self._store = store = StoreExecutor(
            manifests,
            InputLog(context.store, context.secret, context.name, compression=context.settings.compression),
            results,
            Collector(context.store, context.secret, context.name),
            retry_seconds=context.settings.store_retry_seconds,
            retain_result_batches=context.settings.retain_result_batches,
            post=self._post,
            on_failure=self.views.fail,
            on_published=on_published,
            needed_from=needed_from,
        )
        self._loop = EventLoop(
            coordinator,
            self.views,
            {
                commands.StartNode: lambda command, _: links.start(command.node, command.incarnation),
                commands.StopNode: lambda command, _: links.stop(command.node, command.incarnation),
                commands.Send: lambda command, cause: links.send(
                    command.node, command.incarnation, command.message, cause
                ),
                commands.CommitRound: store.commit_round,
                commands.CommitEpoch: store.commit_epoch,
                commands.CommitAssignment: store.commit_assignment,
                commands.CommitSplit: store.commit_split,
                commands.PublishResults: store.publish_results,
                commands.OpenSnapshotLease: store.open_snapshot_lease,
                commands.CommitStates: store.commit_states,
                commands.OpenMigrationLease: store.open_migration_lease,
                commands.CloseMigrationLease: store.close_migration_lease,
                commands.FailJob: self._fail_job,
            },
        )
        self._closing = threads.Event()
        self._clock = threads.Thread(self._watch_clock, name="driver-clock")

    @property
    def view(self) -> JobView:
        return self.views.latest

    def start(self) -> None:
        """Start the nodes and everything else; returns at once."""
        self.links.listen()
        self._loop.start()
        self._clock.start()

    def post(self, event: events.Event) -> int:
        """Queue an event for the loop and return its number."""
        return self._loop.post(event)

    def request(self, event: events.Event) -> JobView:
        """Post an event and return the first view that includes what was decided about it."""
        number = self._loop.post(event)
        return self.views.wait_for(lambda view: view.handled >= number)

    def story(self) -> list[str]:
        """Return the latest events and what was decided about each."""
        return self._loop.story()

    # Batches.

    def claim(self, query: str) -> None:
        """Bind the job to Spark's query, which its checkpoint names: batch numbers of another query mean nothing."""
        bound = self._manifests.recover().meta.get("query")
        if bound is None:
            self._manifests.commit(lambda current: replace(current, meta={**current.meta, "query": query}))
        elif bound != query:
            raise CheckpointMismatch(self._context.name, 0, self.view.source.batch)

    def commit_batch(
        self,
        batch: Batch,
        logs: tuple[LogRef, ...],
        time: BatchTime,
        source: SourceBatch | None,
        groupings_epoch: int,
        seconds: Mapping[str, float],
        check: Callable[[], None] = lambda: None,
    ) -> bool:
        """Commit a logged batch and return when it is committed; a tick has no batch of the source.

        `seconds` are those that its rows will take, by node, if that is estimated. False if its rows have to be sent
        again, because the groupings changed that they were sent by. `check` is called while the caller waits, and ends
        the wait by what it raises.
        """

        def is_decided(view: JobView) -> bool:
            check()
            is_refused = view.handled >= number and view.routing.groupings.epoch != groupings_epoch
            return view.newest >= Position(batch, 0) or is_refused

        number = self._loop.post(events.BatchLogged(batch, logs, time, source, groupings_epoch, seconds))
        return self.views.wait_for(is_decided).newest >= Position(batch, 0)

    def wait_until_published(self, batch: int, seconds: float | None = None) -> None:
        what = f"batch {batch} to be applied by every node"
        self.views.wait_for(lambda view: view.published_batch >= batch, seconds, what)

    def snapshot(self, seconds: float) -> Batch:
        """Save all state that changed up to now; return the batch that all saved states include then."""
        wanted = self.view.published_batch
        deadline = Deadline(seconds)
        while self.view.saved_batch < wanted:
            ended = self.view.snapshots_ended
            self._loop.post(events.SnapshotDue())
            self.views.wait_for(
                lambda view, ended=ended: view.snapshots_ended > ended,  # type: ignore[misc]
                deadline.left(),
                f"a snapshot that includes batch {wanted}",
            )
        return self.view.saved_batch

    # Nodes.

    def wait_until_serving(self, nodes: Collection[str], seconds: float) -> None:
        """Return when these nodes have their units; `NodeStartTimeout` if that takes too long."""
        wanted = set(nodes)

        def are_serving(view: JobView) -> bool:
            for node, failed in view.failed_starts.items():
                if node in wanted and failed.attempts >= _FAILED_STARTS:
                    raise NodeStartFailed(node, failed.reason, failed.attempts)
            return wanted <= view.serving

        try:
            self.views.wait_for(are_serving, seconds)
        except TimeoutError:
            raise NodeStartTimeout(len(wanted & self.view.serving), len(wanted), seconds) from None

    def add_nodes(self, nodes: Sequence[str], seconds: float) -> None:
        """Start more nodes, without units, all at once; `NodeStartTimeout` if not all join, and then none is kept."""
        for node in nodes:
            self._loop.post(events.StartRequested(node))
        try:
            self.wait_until_serving(nodes, seconds)
        except (NodeStartTimeout, NodeStartFailed):
            for node in nodes:
                self.remove_node(node)
            raise

    def remove_node(self, node: str) -> None:
        """Stop a node without units; `NodeInUse` if it owns units, and then it stays."""
        view = self.request(events.StopRequested(node))
        if view.node(node) is not None:
            raise NodeInUse(node, view.tasks_on(node))

    def replace_node(self, node: str, reason: str) -> None:
        """Treat a node as lost: its process is ended, and another incarnation takes its units."""
        self._loop.post(events.ReplaceRequested(node, reason))

    def stop_nodes(self) -> None:
        """Stop every node and return when all are gone; a migration that was under way did not happen."""
        before = {node.incarnation for node in self.view.nodes}
        view = self.request(events.StopAllRequested())
        self.links.wait_for_end(sorted(before - {node.incarnation for node in view.nodes}))

    def start_owners(self, seconds: float) -> None:
        """Start every node that owns units and return when each has them; `NodeStartTimeout` if that takes too long."""
        view = self.request(events.StartOwnersRequested())
        self.wait_until_serving([node.name for node in view.nodes], seconds)

    # Migrations.

    def begin_migration(self, request: events.MigrationRequested) -> None:
        """Begin a migration and return when its first mini-migration is in flight, or none may start."""
        number = self._loop.post(request)

        def has_begun(view: JobView) -> bool:
            migration = view.migration
            return view.handled >= number and (
                migration is None
                or migration.id != request.id
                or bool(migration.in_flight)
                or migration.is_paused
                or migration.is_over
            )

        self.views.wait_for(has_begun)

    def split_keys(self, stage: int, splits: str, seconds: float) -> None:
        """Change which keys a partial stage splits, and return when that is committed."""
        self._loop.post(events.SplitRequested(stage, splits))

        def is_committed(view: JobView) -> bool:
            return getattr(view.routing.groupings[stage], "splits", None) == splits

        self.views.wait_for(is_committed, seconds, "the change of keys that are split")

    # The end.

    def close(self, seconds: float = 30.0) -> list[str]:
        """Stop the nodes gracefully, and every thread; return what did not end in time, in sentences."""
        deadline = Deadline(seconds)
        self._closing.set()
        self.views.close()
        self._loop.close(deadline.left(_JOIN_SECONDS))
        if self._clock.ident is not None:
            self._clock.join(deadline.left(_JOIN_SECONDS))
        unfinished = []
        if late := self.links.close(min(_LEAVE_SECONDS, 0.7 * deadline.left())):
            unfinished.append(f"{', '.join(late)} did not leave in time; the driver cancelled the Spark job of each.")
        if not self._store.close(deadline.left()):
            unfinished.append("A write to the store did not return; the next run finds out whether it happened.")
        else:
            self._release()
        return unfinished

    def _release(self) -> None:
        """Note in the manifest that no driver runs; without that, `elastic resign` would have to fence this one."""
        try:
            self._manifests.release()
        except StorageError as error:
            _log.info("the manifest of %s does not say that the job ended: %s", self._context.name, error)

    def _post(self, event: events.Event, cause: str) -> None:
        self._loop.post(event, cause)

    def _fail_job(self, command: commands.FailJob, _cause: str) -> None:
        failure = command.failure
        self.views.fail(failure_from_json(failure.error) if isinstance(failure, NodeFailed) else failure)

    def _watch_clock(self) -> None:
        """Post losses of silent nodes, and snapshots that are due."""
        settings = self._context.settings
        snapshot_at = threads.monotonic() + settings.snapshot_seconds
        pauses = PauseMeter(2 * settings.heartbeat_seconds)
        while not self._closing.wait(settings.heartbeat_seconds):
            paused = self._measure_pause(pauses)
            for lost in self.links.overdue(paused):
                self._loop.post(lost)
            if not self.view.is_moving:  # a process that starts takes what the stream and the migration need
                self.links.replenish_spares(paused)
            late = threads.monotonic() - snapshot_at
            if late >= (_POSTPONED * settings.snapshot_seconds if self.view.is_moving else 0.0):
                self._loop.post(events.SnapshotDue())
                snapshot_at = threads.monotonic() + settings.snapshot_seconds

    def _measure_pause(self, pauses: PauseMeter) -> float:
        paused = pauses.measure()
        if paused > self._context.settings.node_timeout_seconds / 2:
            _log.warning("the driver did not run for %.1f s; nodes get that much longer to report", paused)
        return paused
