"""From a request to its end: plan, start nodes, move tasks or keys, stop nodes, record it. One migration at a time."""

import logging
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from elastic import threads
from elastic.control.cluster import Cluster
from elastic.control.key_portions import KeyPortion, make_portions
from elastic.control.key_request import KeyRequest
from elastic.control.levels import LevelPlans
from elastic.control.migration import KeyMigration, Migration, TaskMigration
from elastic.control.monitor import Measured, Monitor
from elastic.control.records import KeyMigrationRecords, MigrationRecords, TaskMigrationRecords
from elastic.control.request import ScaleRequest
from elastic.errors import ElasticError, MigrationInProgress, NodeInUse
from migration import Move, Plan, Workload
from migration.errors import InvalidInput, MigrationError
from migration.schedule import schedule_mini_migrations
from storage.errors import StorageError
from storage.journal import JobJournal

if TYPE_CHECKING:
    from migration import KeyPlan  # brings compiled code with it

_log = logging.getLogger(__name__)
_POLL_SECONDS = 0.2
_Kind = TypeVar("_Kind", TaskMigration, KeyMigration)
_PlanKind = TypeVar("_PlanKind", Plan, "KeyPlan")


class _PlannedKeys(NamedTuple):
    """A plan by key, and the portions that carry it out."""

    plan: "KeyPlan"
    stage: int
    portions: Sequence[KeyPortion]


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

    def plan_keys(self, request: KeyRequest) -> "KeyPlan":
        """Return which keys the request would move; changes nothing."""
        return self._plan_keys(request).plan

    def plan_levels(self, tasks: ScaleRequest, keys: KeyRequest) -> LevelPlans:
        """Return what both requests, which have the same tolerance, would do; changes nothing.

        Raises the planner's error if neither has a plan.
        """
        return self._plan_levels(tasks, keys)[0]

    def scale(self, request: ScaleRequest, *, queue: bool = False) -> TaskMigration:
        """Begin to move tasks and return the handle. With `queue` a second request waits for the first, else fails."""
        with self._take_turn(queue=queue):
            return self._move_tasks(request, *self._plan(request))

    def move_keys(self, request: KeyRequest, *, queue: bool = False) -> KeyMigration:
        """Begin to move keys and return the handle; `queue` as for `scale`."""
        with self._take_turn(queue=queue):
            return self._move_keys(self._plan_keys(request))

    def balance(self, tasks: ScaleRequest, keys: KeyRequest, *, queue: bool = False) -> Migration:
        """Begin the better one of two requests, as `LevelPlans` chooses; its plan says why."""
        with self._take_turn(queue=queue):
            plans, workload, planned = self._plan_levels(tasks, keys)
            if plans.level == "tasks" and plans.tasks is not None:
                return self._move_tasks(tasks, _with_note(plans.tasks, plans.reason), workload)
            if planned is None:
                raise AssertionError("the level that is chosen has a plan")
            return self._move_keys(planned._replace(plan=_with_note(planned.plan, plans.reason)))

    def _move_tasks(self, request: ScaleRequest, made: Plan, workload: Workload) -> TaskMigration:
        request = self._choose_mode(request)
        minis = _mini_migrations(made, request)
        migration = TaskMigration(made, minis, self._cluster, request.mode, request.transfer)
        self._start(migration, TaskMigrationRecords(migration, workload), self._migrate_tasks)
        return migration

    def _move_keys(self, planned: _PlannedKeys) -> KeyMigration:
        migration = KeyMigration(planned.plan, planned.portions, self._cluster)
        self._start(migration, KeyMigrationRecords(migration, planned.stage), self._migrate_keys)
        return migration

    @contextmanager
    def _take_turn(self, *, queue: bool) -> Iterator[None]:
        """Take the turn, which the end of the migration gives back; it is given back here if none begins."""
        if not self._turn.acquire(blocking=queue):
            raise MigrationInProgress
        try:
            yield
        except BaseException:
            self._turn.release()
            raise

    def _start(self, migration: _Kind, records: MigrationRecords, migrate: Callable[[_Kind], None]) -> None:
        self._current = migration
        threads.Thread(lambda: self._carry_out(migration, records, migrate), name="migration").start()

    def _measure(self) -> Measured:
        self._monitor.poll(self._cluster)
        return self._monitor.measure()

    def _plan(self, request: ScaleRequest) -> tuple[Plan, Workload]:
        """Return the plan, and the workload that it is made for.

        Nodes that join start before others leave, so Spark needs room for all of them at once.
        """
        workload, note = self._measure()
        made = self._plan_tasks(request, workload, note)
        if made.joining:
            self._cluster.check_room(len(made.current.nodes) + len(made.joining))
        return made, workload

    def _plan_tasks(self, request: ScaleRequest, workload: Workload, note: str) -> Plan:
        """Return the plan; only warm migrations switch the roles of owners and standbys."""
        request = self._choose_mode(request)
        standbys = self._cluster.standbys() if request.mode == "warm" else None
        current = self._cluster.assignment() if standbys is None else standbys.routing.assignment
        return replace(request.plan(current, workload, standbys), note=note)

    def _choose_mode(self, request: ScaleRequest) -> ScaleRequest:
        return request.choose_mode(has_reserves=self._cluster.has_reserves())

    def _plan_keys(self, request: KeyRequest) -> _PlannedKeys:
        measured = self._cluster.measure_keys(request.stage)
        made, routing = request.plan(measured), measured.routing
        portions = make_portions(
            made,
            measured.stage,
            routing.assignment,  # not the one of now: a node of the plan may have lost its tasks meanwhile
            routing.groupings,
            request.bytes_per_node,
            measured.sizes(),
            measured.records,
        )
        made = replace(made, overhead=max(0.0, sum(portion.size for portion in portions) - made.cost))
        return _PlannedKeys(made, measured.stage, portions)

    def _plan_levels(self, tasks: ScaleRequest, keys: KeyRequest) -> tuple[LevelPlans, Workload, _PlannedKeys | None]:
        workload, note = self._measure()
        by_task = planned = None
        no_tasks: Exception | None = None
        no_keys: Exception | None = None
        try:
            by_task = self._plan_tasks(tasks, workload, note)
        except InvalidInput:
            raise  # a wrong option of one level must not decide for the other
        except MigrationError as error:
            no_tasks = error
        try:
            planned = self._plan_keys(keys)
        except InvalidInput:
            raise
        except (ElasticError, MigrationError) as error:
            no_keys = error
            if by_task is None:
                raise
        by_key = None if planned is None else planned.plan
        return LevelPlans(keys.theta, by_task, by_key, no_tasks, no_keys), workload, planned

    def _carry_out(self, migration: _Kind, records: MigrationRecords, migrate: Callable[[_Kind], None]) -> None:
        failure: Exception | None = None
        try:
            _log.info("migration begins: %s reason=%s", repr(migration), migration.plan.reason)
            self._journal.append(records.create_begin())
            migrate(migration)
            outcome = "cancelled" if migration.is_cancelled else "done"
        except Exception as error:  # noqa: BLE001 - raised by `Migration.wait`, and recorded in the journal
            _log.exception("the migration failed")
            outcome, failure = "failed", error
        try:
            self._journal.append(records.create_end(outcome, None if failure is None else str(failure)))
        except StorageError as error:
            _log.warning("the journal has no record of the end of a migration (%s): %s", outcome, error)
        self._turn.release()
        migration.end(outcome, failure)
        _log.info("migration ended: %s seconds=%.2f", repr(migration), migration.progress().seconds)

    def _migrate_keys(self, migration: KeyMigration) -> None:
        migration.phase = "moving"
        self._move(migration)

    def _migrate_tasks(self, migration: TaskMigration) -> None:
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

    def _restart(self, migration: TaskMigration) -> None:
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


def _with_note(plan: _PlanKind, note: str) -> _PlanKind:
    """Return the plan with one more note."""
    return replace(plan, note="; ".join(filter(None, (plan.note, note))))


def _mini_migrations(made: Plan, request: ScaleRequest) -> list[Sequence[Move]]:
    """Return the moves that are committed together: all of them, unless `progressive` bounds what is in flight.

    Warm targets copy at a bounded speed anyway, and each switch of roles costs the stream a pause, however few switch.
    """
    if request.mode != "progressive":
        return [made.moves]
    phases = schedule_mini_migrations(made.moves, request.tasks_per_node, request.bytes_per_node)
    return [phase.moves for phase in phases]
