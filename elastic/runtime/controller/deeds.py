"""The coordinator's commands to the store, carried out in order; each answer is an event."""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from elastic.results import ResultLog
from elastic.routing import IntervalRouting, Routing, routing_from_json
from elastic.runtime.patience import patiently
from elastic.runtime.protocol import commands, events
from elastic.runtime.stopping import Deadline
from elastic.runtime.worker import Worker
from storage.errors import StorageError, StoreUnavailable
from storage.state import Collector, Lease, Manifest, Manifests

_log = logging.getLogger(__name__)


class StoreDeeds:
    """Commits in one thread, publishes in another, cleans up in a third; patient while the store is away."""

    def __init__(
        self,
        manifests: Manifests,
        results: ResultLog | None,
        collector: Collector,
        routing: Routing,
        *,
        patience_seconds: float,
        retain_result_batches: int,
        post: Callable[[Any], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._manifests = manifests
        self._results = results
        self._collector = collector
        self._routing = routing
        self._patience = patience_seconds
        self._retain = retain_result_batches
        self._post = post
        self._on_failure = on_failure
        self._give_up = threading.Event()
        self._lease: Lease | None = None
        self.needed_from: Callable[[], int | None] = lambda: None  # the oldest batch that a sink has not got
        self.on_published: Callable[[], None] = lambda: None  # for who waits for results
        self._threads = {name: Worker(name) for name in ("commit", "publish", "clean")}

    def commit_round(self, command: commands.CommitRound) -> None:
        def deed() -> None:
            manifest = self._patiently(
                lambda: self._manifests.commit_batch(
                    command.batch,
                    command.logs,
                    round=command.round,
                    complete=command.complete,
                    time=command.time if command.round == 0 else None,
                    source=command.source,
                    published=command.published,
                )
            )
            self._post(
                events.RoundCommitted(
                    manifest, command.batch, command.round, command.logs, command.complete, command.time
                )
            )

        self._do("commit", deed)

    def commit_epoch(self, _: commands.CommitEpoch) -> None:
        def deed() -> None:
            manifest = self._patiently(
                lambda: self._manifests.commit(lambda current: replace(current, epoch=current.epoch + 1))
            )
            self._post(events.EpochCommitted(manifest))

        self._do("commit", deed)

    def commit_routing(self, command: commands.CommitRouting) -> None:
        def change(current: Manifest) -> Manifest:
            routing = IntervalRouting(command.assignment, current.epoch + 1)
            return replace(current, epoch=routing.epoch, assignment=routing.to_json())

        def deed() -> None:
            manifest = self._patiently(lambda: self._manifests.commit(change))
            routing = routing_from_json(manifest.assignment)
            self._post(events.RoutingCommitted(manifest, routing, command.assignment))

        self._do("commit", deed)

    def publish(self, command: commands.PublishResults) -> None:
        def deed() -> None:
            if self._results is not None:
                results = self._results
                self._patiently(lambda: results.publish(command.batch, command.results, command.timestamp_ms))
            self.on_published()
            self._post(events.Published(command.batch))

        self._do("publish", deed)

    def open_lease(self, _: commands.OpenLease) -> None:
        def deed() -> None:
            try:
                self._lease = self._manifests.leases.open("snapshot")
            except StoreUnavailable as error:
                self._post(events.SnapshotFailed(str(error)))
            else:
                self._post(events.LeaseOpened(self._lease.id))

        self._do("commit", deed)

    def commit_states(self, command: commands.CommitStates) -> None:
        unchanged = {self._routing.unit(slot): batch for slot, batch in command.unchanged.items()}

        def change(current: Manifest) -> Manifest:
            published = max(current.published, command.published)
            return current.with_states(command.states, unchanged=unchanged, published=published)

        def deed() -> None:
            try:
                manifest = self._manifests.commit(change)
            except StoreUnavailable as error:
                self._post(events.SnapshotFailed(str(error)))
            else:
                self._post(events.StatesCommitted(manifest, command.lease))
                self._do("clean", self._clean)
            finally:
                self._close_lease()

        self._do("commit", deed)

    def open_move_lease(self, _: commands.OpenMoveLease) -> None:
        def deed() -> None:
            lease: Lease = self._patiently(lambda: self._manifests.leases.open("migration"))
            self._post(events.MoveLeaseOpened(lease.id))

        self._do("commit", deed)

    def close_move_lease(self, command: commands.CloseMoveLease) -> None:
        """Behind the commits: no batch waits for it."""
        self._do("clean", lambda: self._abandon(command.lease))

    def close(self, seconds: float) -> bool:
        """Finish what is queued, without patience for a store that is away; whether that was done in time."""
        self._give_up.set()
        deadline = Deadline(seconds)
        ended = [worker.close(deadline.left()) for worker in self._threads.values()]
        return all(ended)

    def _clean(self) -> None:
        """What nobody needs goes; when it cannot now, it goes after the next snapshot."""
        try:
            collected = self._collector.collect()
            if self._results is not None:
                self._results.expire(self._retain, self.needed_from())
        except StoreUnavailable as error:
            _log.warning("old objects were not collected: %s", error)
        else:
            _log.debug("collected %s", collected)

    def _close_lease(self) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            self._abandon(lease.id)

    def _abandon(self, lease: str) -> None:
        try:
            self._manifests.leases.abandon([lease])
        except StorageError as error:
            _log.warning("lease %s stays open until the job closes another one or restarts: %s", lease, error)

    def _patiently(self, call: Callable[[], Any]) -> Any:
        return patiently(call, self._patience, self._give_up)

    def _do(self, thread: str, deed: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                deed()
            except Exception as error:  # noqa: BLE001 - whatever it is, the job must stop and say so
                self._on_failure(error)

        self._threads[thread].submit(guarded)
