"""Carries out the coordinator's commands to the store, in order; each answer is posted as an event."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from elastic import threads
from elastic.core import commands, events
from elastic.core.events import Event
from elastic.deadlines import Deadline
from elastic.driver.worker import Worker
from elastic.operators.key_records import log_orders
from elastic.results import ResultLog
from elastic.retry import retry_while_unavailable
from elastic.routing import Grouping, PartialGrouping, Routing
from storage.errors import StorageError, StoreUnavailable
from storage.state import Collector, InputLog, Lease, LogRef, Manifest, Manifests

_log = logging.getLogger(__name__)


class StoreExecutor:
    """Commits in one thread, publishes in another, cleans up in a third; retries while the store is unavailable.

    `on_published` is called after each publication, `needed_from` returns the oldest batch that a sink has not got.
    """

    def __init__(
        self,
        manifests: Manifests,
        log: InputLog,
        results: ResultLog | None,
        collector: Collector,
        *,
        retry_seconds: float,
        retain_result_batches: int,
        post: Callable[[Event, str], object],
        on_failure: Callable[[BaseException], None],
        on_published: Callable[[], None],
        needed_from: Callable[[], int | None],
    ) -> None:
        self._manifests = manifests
        self._log = log
        self._results = results
        self._collector = collector
        self._retry_seconds = retry_seconds
        self._retain = retain_result_batches
        self._post = post
        self._on_failure = on_failure
        self._on_published = on_published
        self._needed_from = needed_from
        self._give_up = threads.Event()
        self._lease: Lease | None = None
        self._workers = {name: Worker(name) for name in ("commit", "publish", "clean")}

    def commit_round(self, command: commands.CommitRound, cause: str) -> None:
        regrouping = command.regrouping

        def commit() -> None:
            logs = command.logs if regrouping is None else self._log_orders(command, regrouping)
            manifest = self._retry(
                lambda: self._manifests.commit_batch(
                    command.batch,
                    logs,
                    round=command.round,
                    complete=command.complete,
                    time=command.time if command.round == 0 else None,
                    source=command.source,
                    published=command.published,
                    change=None if regrouping is None else _regroup(regrouping.groupings),
                )
            )
            routing = None if regrouping is None else Routing.from_json(manifest.assignment)
            committed = events.RoundCommitted(
                manifest, command.batch, command.round, logs, command.complete, command.time, routing
            )
            self._post(committed, cause)

        self._submit("commit", commit)

    def commit_epoch(self, _: commands.CommitEpoch, cause: str) -> None:
        def commit() -> None:
            manifest = self._retry(
                lambda: self._manifests.commit(lambda current: replace(current, epoch=current.epoch + 1))
            )
            self._post(events.EpochCommitted(manifest), cause)

        self._submit("commit", commit)

    def commit_assignment(self, command: commands.CommitAssignment, cause: str) -> None:
        def change(current: Manifest) -> Manifest:
            before = Routing.from_json(current.assignment)
            routing = before.with_assignment(command.assignment, current.epoch + 1, command.standbys)
            return replace(current, epoch=routing.epoch, assignment=routing.to_json())

        def commit() -> None:
            manifest = self._retry(lambda: self._manifests.commit(change))
            routing = Routing.from_json(manifest.assignment)
            self._post(events.AssignmentCommitted(manifest, routing, command.assignment), cause)

        self._submit("commit", commit)

    def commit_split(self, command: commands.CommitSplit, cause: str) -> None:
        def change(current: Manifest) -> Manifest:
            before = Routing.from_json(current.assignment)
            routing = before.with_splits(command.stage, command.splits, current.epoch + 1)
            return replace(current, epoch=routing.epoch, assignment=routing.to_json())

        def commit() -> None:
            manifest = self._retry(lambda: self._manifests.commit(change))
            self._post(events.SplitCommitted(manifest, Routing.from_json(manifest.assignment)), cause)

        self._submit("commit", commit)

    def publish_results(self, command: commands.PublishResults, cause: str) -> None:
        def publish() -> None:
            if self._results is not None:
                results = self._results
                self._retry(lambda: results.publish(command.batch, command.results, command.timestamp_ms))
            self._on_published()
            self._post(events.ResultsPublished(command.batch), cause)

        self._submit("publish", publish)

    def open_snapshot_lease(self, _: commands.OpenSnapshotLease, cause: str) -> None:
        def open_lease() -> None:
            try:
                self._lease = self._manifests.leases.open("snapshot")
            except StoreUnavailable as error:
                self._post(events.SnapshotFailed(str(error)), cause)
            else:
                self._post(events.SnapshotLeaseOpened(self._lease.id), cause)

        self._submit("commit", open_lease)

    def commit_states(self, command: commands.CommitStates, cause: str) -> None:
        def change(current: Manifest) -> Manifest:
            published = max(current.published, command.published)
            return current.with_states(command.states, unchanged=command.unchanged, published=published)

        def commit() -> None:
            try:
                manifest = self._manifests.commit(change)
            except StoreUnavailable as error:
                self._post(events.SnapshotFailed(str(error)), cause)
            else:
                self._post(events.StatesCommitted(manifest, command.lease), cause)
                self._submit("clean", self._clean)
            finally:
                self._close_snapshot_lease()

        self._submit("commit", commit)

    def open_migration_lease(self, _: commands.OpenMigrationLease, cause: str) -> None:
        def open_lease() -> None:
            lease: Lease = self._retry(lambda: self._manifests.leases.open("migration"))
            self._post(events.MigrationLeaseOpened(lease.id), cause)

        self._submit("commit", open_lease)

    def close_migration_lease(self, command: commands.CloseMigrationLease, _cause: str) -> None:
        """Close it behind the commits: no batch waits for it."""
        self._submit("clean", lambda: self._abandon(command.lease))

    def close(self, seconds: float) -> bool:
        """Finish what is queued, without retries; return whether that was done in time."""
        self._give_up.set()
        deadline = Deadline(seconds)
        ended = [worker.close(deadline.left()) for worker in self._workers.values()]
        return all(ended)

    def _log_orders(self, command: commands.CommitRound, regrouping: commands.Regrouping) -> tuple[LogRef, ...]:
        """Make the orders of a round durable, under a ref of its own, so that a retry does not log them twice."""
        if not regrouping.orders:
            return ()
        ref, records = LogRef.new(command.batch, command.round, 0), log_orders(regrouping.orders)
        logged: LogRef = self._retry(lambda: self._log.append_as(ref, records))
        return (logged,)

    def _clean(self) -> None:
        """Delete what is no longer needed; what cannot be deleted now is deleted after the next snapshot."""
        try:
            collected = self._collector.collect()
            if self._results is not None:
                self._results.expire(self._retain, self._needed_from())
        except StoreUnavailable as error:
            _log.warning("old objects were not collected: %s", error)
        else:
            _log.debug("collected %s", collected)

    def _close_snapshot_lease(self) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            self._abandon(lease.id)

    def _abandon(self, lease: str) -> None:
        try:
            self._manifests.leases.close([lease])
        except StorageError as error:
            _log.warning("lease %s stays open until the job closes another one or restarts: %s", lease, error)

    def _retry(self, call: Callable[[], Any]) -> Any:
        return retry_while_unavailable(call, self._retry_seconds, self._give_up)

    def _submit(self, worker: str, work: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                work()
            except Exception as error:  # noqa: BLE001 - any error must stop the job
                self._on_failure(error)

        self._workers[worker].submit(guarded)


def _regroup(by_stage: Sequence[Grouping]) -> Callable[[Manifest], Manifest]:
    """Return the change of a manifest to these groupings, in a new epoch; partial stages stay as they are committed."""

    def change(current: Manifest) -> Manifest:
        before = Routing.from_json(current.assignment)
        after = [
            before.groupings[stage] if isinstance(grouping, PartialGrouping) else grouping
            for stage, grouping in enumerate(by_stage)
        ]
        routing = before.with_groupings(after, current.epoch + 1)
        return replace(current, epoch=routing.epoch, assignment=routing.to_json())

    return change
