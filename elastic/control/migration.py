"""Migrations of tasks between nodes, which may join and leave, and migrations of single keys."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from elastic.control.cluster import Cluster
from elastic.control.handle import MigrationHandle, Moved
from elastic.control.html import format_strips, migration_to_html
from elastic.control.key_portions import KeyPortion
from elastic.core.events import MigrationRequested, RekeyRequested
from elastic.core.hand_over import MigrationView
from elastic.core.rekeying import RekeyingView
from migration import Move, Ownership, Plan

if TYPE_CHECKING:
    from migration import KeyPlan  # brings compiled code with it


class TaskMigration(MigrationHandle[Plan, MigrationView]):
    """Tasks that move between nodes, and nodes that join and leave."""

    level = "tasks"

    def __init__(
        self,
        plan: Plan,
        mini_migrations: Sequence[Sequence[Move]],
        cluster: Cluster,
        mode: str = "progressive",
        transfer: str = "store",
    ) -> None:
        super().__init__(plan, cluster)
        self.mode = mode
        self.transfer = transfer
        self._mini_migrations = tuple(tuple(moves) for moves in mini_migrations if moves)

    @property
    def assignment(self) -> Ownership:
        """The assignment that the migration committed last, or began with."""
        return self.view().assignment

    @property
    def nodes(self) -> tuple[int, int]:
        return len(self.plan.current.nodes), len(self.plan.target.nodes)

    @property
    def cap_share(self) -> float | None:
        return self.plan.owned_cap_share

    def __repr__(self) -> str:
        view = self.view()
        return (
            f"TaskMigration({self.nodes[0]} -> {self.nodes[1]} nodes, {self.phase}, "
            f"{view.tasks_done} of {view.tasks} tasks, {self.plan.strategy}, {self.mode})"
        )

    def _repr_html_(self) -> str:
        """Return what notebooks show."""
        title = f"Migration {self.nodes[0]} → {self.nodes[1]} nodes ({self.plan.strategy}, {self.mode})"
        return migration_to_html(title, self.progress(), format_strips(self.plan, self.assignment))

    def _find_view(self) -> MigrationView | None:
        return self._cluster.migration(self.id)

    def _before_begin(self) -> MigrationView:
        moves = [move for mini in self._mini_migrations for move in mini]
        return MigrationView(
            self.id,
            self.plan.current,
            is_paused=self._paused,
            is_cancelled=self._cancelled,
            mini_migrations=len(self._mini_migrations),
            tasks=len(moves),
            size=sum(move.size for move in moves),
        )

    def _request_moves(self, *, paused: bool, cancelled: bool) -> None:
        minis = () if cancelled else self._mini_migrations
        self._cluster.begin(
            MigrationRequested(
                self.id,
                self.plan.current,
                self.plan.target,
                minis,
                self.transfer == "direct",
                paused,
                self.mode == "warm",
            )
        )

    def _count_moved(self, view: MigrationView) -> Moved:
        return Moved(view.tasks_done, view.tasks, view.size_done, view.size, view.stored_bytes, view.direct_bytes)

    def _list_awaited(self, view: MigrationView) -> list[tuple[str, str]]:
        return [(one.node, f"{one.action} task{_plural(one.tasks)}") for one in view.awaited]


def _plural(tasks: Sequence[int]) -> str:
    return f"{'' if len(tasks) == 1 else 's'} {', '.join(map(str, tasks))}"


class KeyMigration(MigrationHandle["KeyPlan", RekeyingView]):
    """Single keys that move between nodes, in portions that are bounded per node; nodes stay."""

    level = "keys"
    mode = "rekey"
    transfer = "log"

    def __init__(self, plan: "KeyPlan", portions: Sequence[KeyPortion], cluster: Cluster) -> None:
        super().__init__(plan, cluster)
        self._portions = tuple(portions)

    @property
    def nodes(self) -> tuple[int, int]:
        return len(self.plan.nodes), len(self.plan.nodes)

    @property
    def cap_share(self) -> float | None:
        total = sum(self.plan.loads_after)
        return self.plan.cap / total if total else None

    def __repr__(self) -> str:
        view = self.view()
        return (
            f"KeyMigration({len(self.plan.nodes)} nodes, {self.phase}, {view.keys_done} of {view.keys} keys, "
            f"{self.plan.strategy})"
        )

    def _repr_html_(self) -> str:
        """Return what notebooks show."""
        return migration_to_html(f"Migration of keys ({self.plan.strategy})", self.progress())

    def _find_view(self) -> RekeyingView | None:
        return self._cluster.rekeying(self.id)

    def _before_begin(self) -> RekeyingView:
        return RekeyingView(
            self.id,
            is_paused=self._paused,
            is_cancelled=self._cancelled,
            portions=len(self._portions),
            keys=sum(len(portion.targets) for portion in self._portions),
            size=sum(portion.size for portion in self._portions),
        )

    def _request_moves(self, *, paused: bool, cancelled: bool) -> None:
        portions = () if cancelled else self._portions
        targets, sizes = tuple(one.targets for one in portions), tuple(one.size for one in portions)
        self._cluster.begin(RekeyRequested(self.id, targets, sizes, paused))

    def _count_moved(self, view: RekeyingView) -> Moved:
        return Moved(view.keys_done, view.keys, view.size_done, view.size, view.stored_bytes)

    def _list_awaited(self, view: RekeyingView) -> list[tuple[str, str]]:
        return [(node, f"take batch {view.batch}, which moves keys") for node in view.awaited]


Migration = TaskMigration | KeyMigration
