"""From a request to its end: plan, start nodes, move, stop nodes, write it down. One migration at a time."""

import logging
import threading
from collections.abc import Sequence, Set
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from elastic.control.cluster import Cluster
from elastic.control.journal import Journal
from elastic.control.migration import Migration
from elastic.control.monitor import Measured, Monitor
from elastic.control.request import ScaleRequest
from elastic.errors import MigrationRunning, NodeInUse
from migration import Plan, Workload
from migration.live import MigrationRun
from migration.schedule import mini_migrations
from storage.errors import StorageError

_log = logging.getLogger(__name__)
_LOOK_SECONDS = 0.2


class Scaler:
    """Carries scale requests out on one job's cluster."""

    def __init__(self, cluster: Cluster, monitor: Monitor, journal: Journal) -> None:
        self._cluster = cluster
        self._monitor = monitor
        self._journal = journal
        self._turn = threading.Lock()  # held by the migration under way
        self._current: Migration | None = None

    @property
    def current(self) -> Migration | None:
        """The latest migration, over or not."""
        return self._current

    def workload(self) -> Workload:
        """Work and state of every task, as measured up to now."""
        return self._measure().workload

    def plan(self, request: ScaleRequest) -> Plan:
        """What the request would do; changes nothing."""
        return self._plan(request)[0]

    def scale(self, request: ScaleRequest, *, queue: bool = False) -> Migration:
        """Begin; returns as soon as it has. A second request waits for the first with `queue`, else it is refused."""
        if not self._turn.acquire(blocking=queue):
            raise MigrationRunning
        try:
            made, workload = self._plan(request)
            run = MigrationRun(made.current, made.target, _minis(made, request))
            migration = self._current = Migration(made, run, request.mode, request.transfer, self._cluster.steps)
            thread = threading.Thread(target=self._carry_out, args=(migration, workload), name="migration", daemon=True)
            thread.start()
        except BaseException:
            self._turn.release()
            raise
        return migration

    def _measure(self) -> Measured:
        self._monitor.look(self._cluster)
        return self._monitor.measure()

    def _plan(self, request: ScaleRequest) -> tuple[Plan, Workload]:
        """Return the plan, and the workload that it is made for.

        Nodes that join start before others leave, so Spark needs room for all of them at once.
        """
        workload, note = self._measure()
        made = replace(request.planned(self._cluster.assignment(), workload), note=note)
        if made.joining:
            self._cluster.check_room(len(made.current.nodes) + len(made.joining))
        return made, workload

    def _carry_out(self, migration: Migration, workload: Workload) -> None:
        failure: Exception | None = None
        try:
            how = {"mode": migration.mode, "transfer": migration.transfer}
            _log.info("migration begins: %s reason=%s", repr(migration), migration.plan.reason)
            self._journal.append("began", **how, plan=migration.plan.to_dict(), workload=workload.to_dict())
            self._migrate(migration)
            outcome = "cancelled" if migration.run.is_cancelled else "done"
        except Exception as error:  # noqa: BLE001 - told to whoever waits, and written down
            _log.exception("the migration failed")
            outcome, failure = "failed", error
        try:
            self._write_down(migration, outcome, failure)
        except StorageError as error:
            _log.warning("the end of a migration (%s) was not written down: %s", outcome, error)
        self._turn.release()
        migration.end(outcome, failure)
        _log.info("migration ended: %s seconds=%.2f", repr(migration), migration.progress().seconds)

    def _migrate(self, migration: Migration) -> None:
        made, run = migration.plan, migration.run
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
            self._remove_idle((*made.leaving, *started), set(run.assignment.owners))

    def _remove_idle(self, nodes: Sequence[str], working: Set[str]) -> None:
        """A node that cannot leave keeps no other one from leaving; after a migration that failed, it may own tasks."""
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
        """Stopped nodes are lost sources: their tasks go where they should, from the states that were just saved.

        That the joining nodes have room was seen before anything stops. A pause or a cancellation takes effect before
        that too, or not at all.
        """
        run = migration.run
        while run.is_paused and not run.is_over:
            migration.phase = "paused"
            migration.wait_for_resume(_LOOK_SECONDS)
        if run.is_over:
            return
        migration.phase = "restarting"
        with self._cluster.stopped():
            self._cluster.begin(run, migration.transfer)
            self._cluster.start_nodes()
            while not run.is_over:
                self._cluster.wait(run, _LOOK_SECONDS)
                if run.is_paused and run.is_between:
                    run.unpause()
                    self._cluster.go_on()

    def _move(self, migration: Migration) -> None:
        run = migration.run
        self._cluster.begin(run, migration.transfer)
        while not run.is_over:
            self._cluster.wait(run, _LOOK_SECONDS)
            self._look_after(migration)
            if not run.is_between or run.is_over:
                continue
            if run.is_paused:
                migration.phase = "paused"
                migration.wait_for_resume(_LOOK_SECONDS)
            else:
                migration.phase = "moving"
                self._cluster.go_on()

    def _look_after(self, migration: Migration) -> None:
        """Tell of nodes that keep the migration waiting too long; one that was cancelled does not wait for them."""
        for waiting in migration.tell_overdue():
            if migration.run.is_cancelled:
                self._cluster.replace_node(waiting.node, f"a cancelled migration waited for {waiting}")

    def _write_down(self, migration: Migration, outcome: str, failure: Exception | None) -> None:
        progress = migration.progress()
        facts: dict[str, Any] = {
            "outcome": outcome,
            "mode": migration.mode,
            "transfer": migration.transfer,
            "strategy": migration.plan.strategy,
            "nodes_before": len(migration.plan.current.nodes),
            "nodes_after": len(set(migration.run.assignment.owners)),
            "seconds": progress.seconds,
            "tasks_moved": progress.tasks_done,
            "state_bytes": progress.bytes_done,
            "stored_bytes": progress.stored_bytes,
            "direct_bytes": progress.direct_bytes,
            "error": None if failure is None else str(failure),
        }
        self._journal.append("ended", **facts)


def _minis(made: Plan, request: ScaleRequest) -> list[Any]:
    if request.mode != "progressive":
        return [made.moves] if made.moves else []
    phases = mini_migrations(made.moves, request.tasks_per_node, request.bytes_per_node)
    return [phase.moves for phase in phases]
