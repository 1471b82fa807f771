"""The journal records of a migration: one when it begins, one when it is over."""

from typing import Protocol

from elastic.control.migration import KeyMigration, TaskMigration
from migration import Workload
from storage.journal import JournalRecord, KeysBegan, KeysEnded, MigrationBegan, MigrationEnded


class MigrationRecords(Protocol):
    """Creates the journal records of a migration."""

    def create_begin(self) -> JournalRecord: ...
    def create_end(self, outcome: str, error: str | None) -> JournalRecord: ...


class TaskMigrationRecords:
    """Records the plan of a migration of tasks with its workload, and the outcome."""

    def __init__(self, migration: TaskMigration, workload: Workload) -> None:
        self._migration = migration
        self._workload = workload

    def create_begin(self) -> MigrationBegan:
        migration = self._migration
        return MigrationBegan(
            mode=migration.mode,
            transfer=migration.transfer,
            plan=migration.plan.to_dict(),
            workload=self._workload.to_dict(),
        )

    def create_end(self, outcome: str, error: str | None) -> MigrationEnded:
        migration, progress = self._migration, self._migration.progress()
        return MigrationEnded(
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
            background_bytes=migration.plan.background_cost,
            error=error,
        )


class KeyMigrationRecords:
    """Without the keys themselves: there may be thousands, and the table has them."""

    def __init__(self, migration: KeyMigration, stage: int) -> None:
        self._migration = migration
        self._stage = stage

    def create_begin(self) -> KeysBegan:
        plan = self._migration.plan
        return KeysBegan(
            stage=self._stage,
            strategy=plan.strategy,
            keys=len(plan.moves),
            state_bytes=plan.cost + plan.overhead,
            entries=len(plan.entries),
            theta=plan.theta,
            overload_before=plan.theta_before,
            overload_after=plan.theta_reached,
            reason=plan.reason,
            note=plan.note,
        )

    def create_end(self, outcome: str, error: str | None) -> KeysEnded:
        progress = self._migration.progress()
        return KeysEnded(
            outcome=outcome,
            stage=self._stage,
            strategy=self._migration.plan.strategy,
            seconds=progress.seconds,
            keys_moved=progress.keys_done,
            state_bytes=progress.bytes_done,
            stored_bytes=progress.stored_bytes,
            error=error,
        )
