"""From a scale request to its end: plan, start nodes, move tasks, stop nodes, record it. One migration at a time."""

import logging
from collections.abc import Sequence, Set
from contextlib import nullcontext
from dataclasses import replace

from elastic import threads
from elastic.control.cluster import Cluster
from elastic.control.migration import Migration
from elastic.control.monitor import Measured, Monitor
from elastic.control.request import ScaleRequest
from elastic.errors import MigrationInProgress, NodeInUse
from migration import Move, Plan, Workload
from migration.schedule import schedule_mini_migrations
from storage.errors import StorageError
from storage.journal import JobJournal, MigrationBegan, MigrationEnded

_log = logging.getLogger(__name__)
_POLL_SECONDS = 0.2


class Scaler:
    """Carries out the scale requests of one job."""

    def __init__(self, cluster: Cluster, monitor: Monitor, journal: JobJournal) -> None:
        self._cluster = cluster
        self._monitor = monitor
        self._journal = journal
        self._turn = threads.Lock()  # held by the migration under way
        self._current: Migration | None = None

    @property
    def current(self) -> Migration | None:
        """The latest migration, over or not; None before the first."""
        return self._current

    def workload(self) -> Workload:
        """Return work and state size of every task, as measured up to now."""
        return self._measure().workload

    def plan(self, request: ScaleRequest) -> Plan:
        """Return what the request would do; changes nothing."""
        return self._plan(request)[0]

    def scale(self, request: ScaleRequest, *, queue: bool = False) -> Migration:
        """Begin a migration and return its handle. With `queue` a second request waits for the first, else it fails."""
        if not self._turn.acquire(blocking=queue):
            raise MigrationInProgress
        try:
            made, workload = self._plan(request)
            minis = _mini_migrations(made, request)
            migration = self._current = Migration(made, minis, self._cluster, request.mode, request.transfer)
            thread = threads.Thread(lambda: self._carry_out(migration, workload), name="migration")
            thread.start()
        except BaseException:
            self._turn.release()
            raise
        return migration

    def _measure(self) -> Measured:
        self._monitor.poll(self._cluster)
        return self._monitor.measure()

    def _plan(self, request: ScaleRequest) -> tuple[Plan, Workload]:
        """Return the plan, and the workload that it is made for.

        Nodes that join start before others leave, so Spark needs room for all of them at once.
        """
        workload, note = self._measure()
        made = replace(request.plan(self._cluster.assignment(), workload), note=note)
        if made.joining:
            self._cluster.check_room(len(made.current.nodes) + len(made.joining))
        return made, workload

    def _carry_out(self, migration: Migration, workload: Workload) -> None:
        failure: Exception | None = None
        try:
            _log.info("migration begins: %s reason=%s", repr(migration), migration.plan.reason)
            began = MigrationBegan(
                mode=migration.mode,
                transfer=migration.transfer,
                plan=migration.plan.to_dict(),
                workload=workload.to_dict(),
            )
            self._journal.append(began)
            self._migrate(migration)
            outcome = "cancelled" if migration.is_cancelled else "done"
        except Exception as error:  # noqa: BLE001 - raised by `Migration.wait`, and recorded in the journal
            _log.exception("the migration failed")
            outcome, failure = "failed", error
        try:
            self._record_end(migration, outcome, failure)
        except StorageError as error:
            _log.warning("the journal has no record of the end of a migration (%s): %s", outcome, error)
        self._turn.release()
        migration.end(outcome, failure)
        _log.info("migration ended: %s seconds=%.2f", repr(migration), migration.progress().seconds)

    def _migrate(self, migration: Migration) -> None:
        made = migration.plan
        started: list[str] = []
        try:
            migration.phase = "starting nodes"
            self._cluster.add_nodes(made.joining)
            started.extend(made.joining)
            migration.phase = "moving"
            if migration.mode == "restart":
                self._restart(migration)
            else:
                with self._cluster.suspended() if migration.mode == "suspend" else nullcontext():
                    self._move(migration)
        finally:
            migration.phase = "stopping nodes"
            self._remove_idle((*made.leaving, *started), set(migration.assignment.owners))

    def _remove_idle(self, nodes: Sequence[str], working: Set[str]) -> None:
        """Stop the nodes that own nothing. After a migration that failed one may own tasks: the others stop anyway."""
        refused: NodeInUse | None = None
        for node in nodes:
            try:
                if node not in working:
                    self._cluster.remove_node(node)
            except NodeInUse as error:
                refused = error
        if refused is not None:
            raise refused

    def _restart(self, migration: Migration) -> None:
        """Move tasks while all nodes are stopped: from the states that were just saved to where they should be.

        The joining nodes have found room before anything stops. A pause or a cancellation takes effect before that
        too, or not at all.
        """
        while migration.is_paused and not migration.is_cancelled:
            migration.phase = "paused"
            migration.wait_for_resume(_POLL_SECONDS)
        if migration.is_cancelled:
            return
        migration.phase = "restarting"
        with self._cluster.stopped():
            migration.begin()
            self._cluster.start_nodes()
            while not migration.view().is_over:
                if migration.view().is_paused:
                    self._cluster.resume(migration.id)
                self._cluster.wait(migration.id, _POLL_SECONDS)

    def _move(self, migration: Migration) -> None:
        migration.begin()
        while not (view := migration.view()).is_over:
            self._cluster.wait(migration.id, _POLL_SECONDS)
            self._watch_overdue(migration)
            if view.is_idle and view.is_paused:
                migration.phase = "paused"
                migration.wait_for_resume(_POLL_SECONDS)
            else:
                migration.phase = "moving"

    def _watch_overdue(self, migration: Migration) -> None:
        """Note nodes that delay the migration for too long; if it was cancelled, replace them."""
        for awaited in migration.note_overdue():
            if migration.is_cancelled:
                self._cluster.replace_node(awaited.node, f"a cancelled migration waited for {awaited}")

    def _record_end(self, migration: Migration, outcome: str, failure: Exception | None) -> None:
        progress = migration.progress()
        ended = MigrationEnded(
            outcome=outcome,
            mode=migration.mode,
            transfer=migration.transfer,
            strategy=migration.plan.strategy,
            nodes_before=len(migration.plan.current.nodes),
            nodes_after=len(set(migration.assignment.owners)),
            seconds=progress.seconds,
            tasks_moved=progress.tasks_done,
            state_bytes=progress.bytes_done,
            stored_bytes=progress.stored_bytes,
            direct_bytes=progress.direct_bytes,
            error=None if failure is None else str(failure),
        )
        self._journal.append(ended)


def _mini_migrations(made: Plan, request: ScaleRequest) -> list[Sequence[Move]]:
    if request.mode != "progressive":
        return [made.moves]
    phases = schedule_mini_migrations(made.moves, request.tasks_per_node, request.bytes_per_node)
    return [phase.moves for phase in phases]
