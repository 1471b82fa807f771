"""The protocol of a hand-over, and migrations made of them."""

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.core import commands, events
from elastic.core.commands import Command, OpenMigrationLease
from elastic.core.hand_over import TABLE, HandOverEvent, HandOverPhase, MigrationView, next_phase, render_diagram
from elastic.core.ids import Batch, UnitId
from elastic.core.messages import (
    DropUnits,
    InstallUnits,
    NodeJoined,
    ReleaseUnits,
    StepApplied,
    UnitsInstalled,
    UnitsReleased,
)
from elastic.core.steps import Position
from elastic.errors import IllegalTransition
from migration import Assignment, Ownership
from storage.state import BatchTime
from tests.elastic.core.test_coordinator import apply, commit_batch
from tests.elastic.core.world import (
    LEASE,
    World,
    commits,
    drops,
    installs,
    leases,
    moves_to,
    releases,
    request_of,
    scattered,
    state_of,
)

NODES = ["node-1", "node-2", "node-3"]


def test_the_documents_show_the_table_as_it_is() -> None:
    document = Path(__file__).parents[3] / "docs" / "protocol.md"
    assert render_diagram() in document.read_text()


def test_every_row_of_the_table_is_legal_and_anything_else_is_refused() -> None:
    for phase in HandOverPhase:
        for event in HandOverEvent:
            if (phase, event) in TABLE:
                assert next_phase(phase, event) == TABLE[phase, event]
            else:
                with pytest.raises(IllegalTransition):
                    next_phase(phase, event)


def test_every_phase_can_reach_the_end_and_only_a_lost_target_goes_back() -> None:
    order = list(HandOverPhase)
    for (phase, event), (after, _) in TABLE.items():
        assert order.index(after) >= order.index(phase) or event is HandOverEvent.TARGET_LOST
    reached = {HandOverPhase.DONE}
    for _ in HandOverPhase:
        reached |= {phase for (phase, _), (after, _) in TABLE.items() if after in reached}
    assert reached == set(HandOverPhase)


class Cluster(World):
    """Carries commands out in a random order, and loses nodes now and then."""

    def __init__(self, owners: Sequence[int], size: int, seed: int = 0, losses: int = 0) -> None:
        super().__init__(Assignment.even(tasks=len(owners), nodes=2), NODES)
        self.target = scattered(owners)
        self.moves = moves_to(self.current, self.target)
        self.chance = random.Random(seed)  # noqa: S311
        self.losses = losses
        self.dropped: list[int] = []
        self.opened: list[str] = []
        self.closed: list[str] = []
        minis = [self.moves[start : start + size] for start in range(0, len(self.moves), size)]
        self.waiting = self.hear(request_of(self.current, self.target, minis))

    @property
    def migration(self) -> MigrationView:
        found = self.coordinator.view().migration
        assert found is not None
        return found

    def finish(self) -> None:
        for _ in range(10_000):
            if self.migration.is_over and not self.waiting:
                return
            if self.losses and self.chance.random() < 0.3:
                self.losses -= 1
                self.waiting += self.lose(self.chance.choice(NODES))
            else:
                assert self.waiting, "\n".join(self.migration.story)
                self.carry_out(self.waiting.pop(self.chance.randrange(len(self.waiting))))
        raise AssertionError("\n".join(self.migration.story))

    def carry_out_all(self) -> None:
        while self.waiting:
            self.carry_out(self.waiting.pop(0))

    def carry_out(self, command: Command) -> None:
        match command:
            case commands.StartNode(node, incarnation):
                self.waiting += self.hear(NodeJoined(node, incarnation, f"address of {node}"))
            case commands.CommitEpoch():
                self.waiting += self.hear(events.EpochCommitted(self.coordinator.manifest))
            case commands.OpenMigrationLease():
                self.opened.append(f"{len(self.opened) + 1:012d}-000000001-ab")
                self.waiting += self.hear(events.MigrationLeaseOpened(self.opened[-1]))
            case commands.CloseMigrationLease(lease):
                self.closed.append(lease)
            case commands.Send(node, incarnation, ReleaseUnits(units=units, lease=lease)):
                assert lease in self.opened
                states = tuple(state_of(unit, lease=lease) for unit in units)
                self.waiting += self.hear(UnitsReleased(node, incarnation, states))
            case commands.Send(node, incarnation, InstallUnits(units=handles)):
                units = tuple(handle.unit for handle in handles)
                self.waiting += self.hear(UnitsInstalled(node, incarnation, units)) if units else []
            case commands.Send(_, _, DropUnits(units=units)):
                self.dropped += [unit.task for unit in units]
            case commands.CommitAssignment(assignment):
                self.waiting += self.commit(assignment)

    def tasks_in_story(self, action: str) -> int:
        return sum(int(found[1]) for line in self.migration.story if (found := re.match(rf"{action}: (\d+)", line)))


@given(
    owners=st.lists(st.integers(0, 2), min_size=2, max_size=12),
    size=st.integers(1, 5),
    seed=st.integers(0, 1_000),
    losses=st.integers(0, 6),
)
def test_a_migration_ends_at_its_target_and_every_moved_task_is_dropped_once(
    owners: list[int], size: int, seed: int, losses: int
) -> None:
    cluster = Cluster(owners, size, seed, losses)
    cluster.finish()
    migration, moved = cluster.migration, sorted(move.task for move in cluster.moves)
    assert migration.assignment.owners == cluster.target.owners
    routing = cluster.coordinator.view().routing
    assert routing.assignment.owners == (cluster.target.owners if moved else cluster.current.owners)
    assert cluster.coordinator.view().route == routing
    assert cluster.tasks_in_story("drop units") == len(moved)
    assert len(set(cluster.dropped)) == len(cluster.dropped)  # a source that was lost has nothing to drop
    assert set(cluster.dropped) <= set(moved)
    assert (migration.tasks_done, migration.size_done) == (len(moved), 2.0 * len(moved))
    assert migration.mini_migrations_done == migration.mini_migrations
    assert sorted(cluster.closed) == cluster.opened


@given(size=st.integers(1, 3), seed=st.integers(0, 100), after=st.integers(0, 8))
def test_a_cancelled_migration_settles_between_two_mini_migrations(size: int, seed: int, after: int) -> None:
    cluster = Cluster([2, 2, 2, 0, 0, 0, 1, 1], size, seed)
    for _ in range(after):
        if cluster.waiting:
            cluster.carry_out(cluster.waiting.pop(0))
    cluster.waiting += cluster.hear(events.CancelRequested("m1"))
    begun = cluster.migration.mini_migrations_done + bool(cluster.migration.in_flight)
    cluster.finish()
    migration = cluster.migration
    assert migration.mini_migrations_done == begun  # nothing starts after a cancellation
    done = migration.tasks_done
    assert done == len(cluster.moves) or done % size == 0
    moved = {move.task for move in cluster.moves if migration.assignment.owners[move.task] == move.target}
    assert len(moved) == done
    assert sorted(cluster.dropped) == sorted(moved)
    assert set(migration.assignment.nodes) == set(migration.assignment.owners)
    assert sorted(cluster.closed) == cluster.opened


def test_a_paused_migration_goes_on_where_it_was() -> None:
    cluster = Cluster([2, 2, 0, 0], 1)
    cluster.carry_out(cluster.waiting.pop(0))  # the lease
    cluster.waiting += cluster.hear(events.PauseRequested("m1"))
    cluster.carry_out_all()
    assert cluster.migration.mini_migrations_done == 1
    assert cluster.migration.is_idle
    assert not cluster.migration.is_over
    assert cluster.opened == cluster.closed  # it pins nothing in the store
    assert cluster.hear(events.SnapshotDue()) == [commands.OpenSnapshotLease()]  # no event continues it
    cluster.waiting += cluster.hear(events.ResumeRequested("m1"))
    cluster.finish()
    assert cluster.migration.assignment.owners == cluster.target.owners


def test_a_migration_that_was_paused_before_it_began_opens_no_lease() -> None:
    world = World(nodes=NODES)
    moves = moves_to(world.current, scattered([2, 0, 1, 1]))
    assert world.hear(request_of(world.current, scattered([2, 0, 1, 1]), [moves], paused=True)) == []
    assert world.hear(events.ResumeRequested("m1")) == [OpenMigrationLease()]


def test_requests_about_another_migration_change_nothing() -> None:
    cluster = Cluster([2, 2, 0, 0], 1)
    for request in (events.PauseRequested, events.CancelRequested, events.ResumeRequested):
        assert cluster.hear(request("m0")) == []
    cluster.hear(events.ChangeNoted("m0", "a line"))
    assert not cluster.migration.is_paused
    assert not cluster.migration.is_cancelled
    assert cluster.migration.story == ()


def one_task() -> tuple[World, Ownership, list[Command]]:
    """Task 0 is on its way from node-1 to node-3."""
    world = World(Assignment.even(tasks=2, nodes=2), NODES)
    target = scattered([2, 1])
    decided = world.begin(request_of(world.current, target, [moves_to(world.current, target)]))
    return world, target, decided


def test_a_hand_over_goes_from_release_over_install_and_commit_to_drop() -> None:
    world, target, decided = one_task()
    assert releases(decided) == [("node-1", (0,))]
    assert installs(world.release("node-1", 0)) == [("node-3", (0,))]
    assert world.coordinator.view().tasks_on("node-3") == (0,)
    [commit] = commits(world.install("node-3", 0))
    assert commit.owners == target.owners
    decided = world.commit(commit)
    assert drops(decided) == [("node-1", (0,))]
    assert leases(decided) == [commands.CloseMigrationLease(LEASE)]
    migration = world.coordinator.view().migration
    assert migration is not None
    assert migration.is_over


def test_a_source_that_is_lost_before_it_stored_anything_is_not_waited_for() -> None:
    world, _, _ = one_task()
    assert installs(world.lose("node-1")) == [("node-3", (0,))]


def test_a_source_that_has_no_units_when_it_is_asked_is_not_waited_for() -> None:
    world = World(Assignment.even(tasks=2, nodes=2), NODES)
    target = scattered([2, 1])
    world.lose("node-1")
    decided = world.begin(request_of(world.current, target, [moves_to(world.current, target)]))
    assert (releases(decided), installs(decided)) == ([], [("node-3", (0,))])


def test_a_target_is_told_again_when_the_source_is_lost_while_it_installs() -> None:
    world, _, _ = one_task()
    world.release("node-1", 0)
    assert installs(world.lose("node-1")) == [("node-3", (0,))]


def test_the_commit_waits_for_every_target_of_the_mini_migration() -> None:
    world = World(Assignment.even(tasks=4, nodes=2), NODES)
    target = scattered([2, 0, 2, 1])
    world.begin(request_of(world.current, target, [moves_to(world.current, target)]))
    world.release("node-1", 0)
    assert commits(world.install("node-3", 0)) == []
    world.release("node-2", 2)
    [commit] = commits(world.install("node-3", 2))
    assert commit.owners == target.owners


def test_a_target_that_is_lost_while_the_assignment_is_committed_must_install_before_the_source_drops() -> None:
    world, _, _ = one_task()
    world.release("node-1", 0)
    [commit] = commits(world.install("node-3", 0))
    world.lose("node-3")
    assert drops(world.commit(commit)) == []
    assert world.commit(commit) == []
    migration = world.coordinator.view().migration
    assert migration is not None
    assert migration.assignment.owners == commit.owners
    world.lose("node-1")
    assert installs(world.join("node-3")) == [("node-3", (0,))]
    world.join("node-1")
    assert drops(world.install("node-3", 0)) == [("node-1", (0,))]


def test_bytes_that_went_directly_are_counted_once() -> None:
    world, _, _ = one_task()
    world.release("node-1", 0)
    for _ in range(2):
        world.install("node-3", 0, direct_bytes=10)
    migration = world.coordinator.view().migration
    assert migration is not None
    assert (migration.stored_bytes, migration.direct_bytes) == (10, 10)


def test_what_a_source_released_is_not_installed_before_its_last_results_are_reported() -> None:
    """The target must know which output it need not report again."""
    world, _, _ = one_task()
    time, batch = BatchTime(0, 1_000), Batch(0)
    world.hear(events.BatchLogged(batch, (), time))
    world.hear(events.RoundCommitted(world.coordinator.manifest, batch, 0, (), True, time))
    states = (state_of(UnitId(0, 0), batch=0),)
    assert installs(world.report(UnitsReleased, "node-1", states)) == []
    reported = world.report(StepApplied, "node-1", Position(batch, 0), (UnitId(0, 0),))
    assert installs(reported) == [("node-3", (0,))]


def test_all_nodes_stop_unless_the_commit_of_a_migration_is_under_way() -> None:
    world, _, _ = one_task()
    world.release("node-1", 0)
    [commit] = commits(world.install("node-3", 0))
    assert world.hear(events.StopAllRequested()) == []
    world.commit(commit)
    stopping = world.hear(events.StopAllRequested())
    assert [one.node for one in stopping if isinstance(one, commands.StopNode)] == NODES


def test_a_view_is_over_only_when_the_last_mini_migration_is() -> None:
    """Every view that another thread may see is one of these."""
    cluster = Cluster([2, 2, 0, 0], 2)
    views = []
    while cluster.waiting:
        cluster.carry_out(cluster.waiting.pop(0))
        views.append(cluster.migration)
    over = [view.is_over for view in views]
    assert over == sorted(over)
    assert all(view.mini_migrations_done == view.mini_migrations for view in views if view.is_over)
    assert cluster.migration is cluster.migration  # a view that does not change is the same object


def test_a_target_that_is_lost_installs_all_tasks_again_before_they_are_committed() -> None:
    world = World()
    target = Assignment(("node-1", "node-2"), (0, 0, 4))
    world.begin(request_of(world.current, target, [moves_to(world.current, target)]))
    world.release("node-1", 0, 1)
    world.install("node-2", 0)
    view = world.coordinator.view().migration
    assert view is not None
    assert view.awaited == (("node-2", "install", (1,)),)
    world.lose("node-2")
    world.join("node-2")
    assert commits(world.install("node-2", 1)) == []
    assert commits(world.install("node-2", 0)) == [target]


def test_a_migration_that_was_paused_while_its_lease_was_opened_asks_for_another_one_when_it_goes_on() -> None:
    world = World(nodes=NODES)
    target = scattered([2, 0, 1, 1])
    assert world.hear(request_of(world.current, target, [moves_to(world.current, target)])) == [OpenMigrationLease()]
    assert world.hear(events.PauseRequested("m1")) == []
    assert world.hear(events.MigrationLeaseOpened(LEASE)) == [commands.CloseMigrationLease(LEASE)]
    assert world.hear(events.ResumeRequested("m1")) == [OpenMigrationLease()]


def test_a_migration_is_under_way_until_its_last_mini_migration_or_until_it_is_cancelled() -> None:
    cluster = Cluster([2, 2, 0, 0], 1)
    hand_overs = cluster.coordinator.hand_overs
    cluster.carry_out(cluster.waiting.pop(0))  # the lease
    seen = [(hand_overs.is_under_way, hand_overs.is_moving)]
    cluster.waiting += cluster.hear(events.PauseRequested("m1"))
    cluster.carry_out_all()
    seen.append((hand_overs.is_under_way, hand_overs.is_moving))
    cluster.hear(events.CancelRequested("m1"))
    seen.append((hand_overs.is_under_way, hand_overs.is_moving))
    assert seen == [(True, True), (True, False), (False, False)]


def release_in_batch() -> World:
    """The source of task 0 has released it after a batch whose results are not reported."""
    world, _, _ = one_task()
    commit_batch(world, 0)
    states = (state_of(UnitId(0, 0), batch=0),)
    assert installs(world.report(UnitsReleased, "node-1", states, stored=False)) == []
    return world


def test_what_a_source_released_before_all_nodes_stopped_is_not_installed_by_the_next_migration() -> None:
    world = release_in_batch()
    world.hear(events.StopAllRequested())
    world.hear(events.StartOwnersRequested())
    for node in ("node-1", "node-2"):
        world.join(node)
    target = scattered([1, 1])
    world.begin(request_of(world.current, target, [moves_to(world.current, target)]))
    assert installs(apply(world, "node-1", 0)) == []


def test_what_only_a_lost_source_released_is_forgotten_although_its_results_are_reported_later() -> None:
    world = release_in_batch()
    assert installs(world.lose("node-1")) == [("node-3", (0,))]
    apply(world, "node-3", 0)
    assert world.coordinator.placement.released_state(UnitId(0, 0)) is None


def test_the_view_is_that_of_the_latest_migration_although_it_moves_nothing() -> None:
    """Whoever waits for it would wait forever for another one."""
    cluster = Cluster([2, 2, 0, 0], 1)
    cluster.finish()
    assert cluster.hear(replace(request_of(cluster.target, cluster.target, []), id="m2")) == []
    assert (cluster.migration.id, cluster.migration.is_over) == ("m2", True)


def test_a_report_of_one_release_does_not_end_another_one_of_the_same_source() -> None:
    world = World(nodes=NODES)
    target = scattered([2, 1, 1, 1])
    world.begin(request_of(world.current, target, [moves_to(world.current, target)]))
    assert installs(world.release("node-1", 0)) == [("node-3", (0,))]
    assert installs(world.release("node-1", 1)) == [("node-2", (1,))]
