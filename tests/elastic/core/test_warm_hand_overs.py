"""Warm migrations: targets follow, sources work on until they have caught up, and then roles switch."""

from collections.abc import Sequence

import pytest

from elastic.core import commands, events
from elastic.core.commands import Command
from elastic.core.hand_over import HandOverPhase
from elastic.core.ids import Batch, UnitId
from elastic.core.messages import (
    DropUnits,
    InstallUnits,
    ReleaseUnits,
    SnapshotTaken,
    StandbysCaughtUp,
    StoppedUnit,
    UnitsReleased,
)
from elastic.core.steps import Position
from migration import Assignment, Ownership
from tests.elastic.core.test_coordinator import apply, commit_batch
from tests.elastic.core.test_standbys import Standbys, follows, takes_over
from tests.elastic.core.world import LEASE, World, commits, leases, messages, moves_to, request_of, scattered, state_of

TARGET = Assignment(("node-1", "node-2"), (0, 1, 4))  # task 1 moves from node-1 to node-2


class Warm(World):
    """Targets have been told to follow their tasks: the second node task 1, unless the test says otherwise."""

    def __init__(self, target: Ownership = TARGET) -> None:
        super().__init__()
        self.decided = self.begin(request_of(self.current, target, [moves_to(self.current, target)], warm=True))

    def catch_up(self, node: str, *tasks: int) -> list[Command]:
        return self.report(StandbysCaughtUp, node, tuple(UnitId(0, task) for task in tasks))

    def stop(self, node: str, *tasks: int, after: int = -1) -> list[Command]:
        stopped = tuple(StoppedUnit(UnitId(0, task), Batch(after)) for task in tasks)
        return self.report(UnitsReleased, node, (), stopped=stopped)

    def begin_snapshot(self) -> None:
        """Publish a batch, and let the nodes save what it changed."""
        commit_batch(self, 0)
        for node in ("node-1", "node-2"):
            apply(self, node, 0)
        self.hear(events.ResultsPublished(Batch(0)))
        self.hear(events.SnapshotDue())
        self.hear(events.SnapshotLeaseOpened(LEASE))

    def phases(self) -> list[HandOverPhase]:
        migration = self.coordinator.hand_overs._migration
        assert migration is not None
        return [one.phase for one in migration.in_flight]

    def owner(self, task: int) -> str:
        return self.coordinator.placement.owner(UnitId(0, task))


@pytest.fixture
def world() -> Warm:
    return Warm()


def released(decided: Sequence[Command]) -> list[tuple[str, ReleaseUnits]]:
    return messages(decided, ReleaseUnits)


def test_a_target_follows_while_its_source_works_on(world: Warm) -> None:
    assert follows(world.decided) == [("node-2", (1,))]
    assert released(world.decided) == []
    assert world.owner(1) == "node-1"
    assert world.coordinator.view().route.owners(UnitId(0, 1)) == ("node-1", "node-2")
    [awaited] = world.coordinator.view().migration.awaited  # type: ignore[union-attr]
    assert awaited == ("node-2", "follow", (1,))


def test_when_the_target_has_caught_up_the_source_stops_and_stores_nothing(world: Warm) -> None:
    [(node, message)] = released(world.catch_up("node-2", 1))
    assert (node, message.units, message.warm) == ("node-1", (UnitId(0, 1),), True)
    assert world.coordinator.view().route.owners(UnitId(0, 1)) == ("node-2",)


def test_all_sources_stop_together_when_the_last_target_has_caught_up() -> None:
    world = Warm(scattered([0, 1, 0, 1]))  # task 1 moves to the second node, and task 2 to the first
    assert released(world.catch_up("node-2", 1)) == []
    assert [node for node, _ in released(world.catch_up("node-1", 2))] == ["node-1", "node-2"]


def test_a_migration_that_is_cancelled_while_targets_follow_changes_nothing(world: Warm) -> None:
    decided = world.hear(events.CancelRequested("m1"))
    assert leases(decided) == [commands.CloseMigrationLease(LEASE)]
    assert [(node, one.units) for node, one in messages(decided, DropUnits)] == [("node-2", (UnitId(0, 1),))]
    view = world.coordinator.view()
    assert view.migration is not None
    assert view.migration.is_over
    assert view.migration.assignment == world.current
    assert view.route is view.routing
    assert released(world.catch_up("node-2", 1)) == []


def test_a_cancellation_after_the_switch_began_brings_it_to_its_end(world: Warm) -> None:
    world.catch_up("node-2", 1)
    world.hear(events.CancelRequested("m1"))
    world.stop("node-1", 1)
    assert commits(world.install("node-2", 1)) == [TARGET]


def test_the_target_takes_over_when_the_last_results_of_the_source_are_reported(world: Warm) -> None:
    commit_batch(world, 0)
    world.catch_up("node-2", 1)
    assert takes_over(world.stop("node-1", 1, after=0)) == []
    decided = apply(world, "node-1", 0)
    assert takes_over(decided) == [("node-2", (1,))]
    [(_, message)] = messages(decided, InstallUnits)
    assert message.units[0].reported == Position(Batch(0), 0)


def test_a_warm_migration_ends_as_any_other(world: Warm) -> None:
    world.catch_up("node-2", 1)
    world.stop("node-1", 1)
    [commit] = [one for one in world.install("node-2", 1) if isinstance(one, commands.CommitAssignment)]
    assert commit.assignment == TARGET
    decided = world.commit(TARGET)
    assert [(node, one.units) for node, one in messages(decided, DropUnits)] == [("node-1", (UnitId(0, 1),))]
    view = world.coordinator.view()
    assert view.migration is not None
    assert view.migration.is_over
    assert view.migration.stored_bytes == 0
    assert view.route is view.routing
    assert world.coordinator.placement.prepared_for("node-2") == []  # else it would follow the task ever after


def test_a_target_that_is_lost_while_it_follows_follows_again(world: Warm) -> None:
    world.lose("node-2")
    assert world.phases() == [HandOverPhase.FOLLOWING]
    assert world.catch_up("node-2", 1) == []  # of the incarnation that has not joined
    assert follows(world.join("node-2")) == [("node-2", (1,))]
    assert len(released(world.catch_up("node-2", 1))) == 1


def test_a_source_that_is_lost_leaves_its_tasks_to_the_target(world: Warm) -> None:
    decided = world.lose("node-1")
    assert takes_over(decided) == [("node-2", (1,))]
    assert world.phases() == [HandOverPhase.INSTALLING]
    world.install("node-2", 1)
    assert world.phases() == [HandOverPhase.INSTALLED]


def test_a_source_that_is_lost_after_it_was_told_to_stop_leaves_its_tasks_to_the_target(world: Warm) -> None:
    world.catch_up("node-2", 1)
    assert takes_over(world.lose("node-1")) == [("node-2", (1,))]


def test_a_target_that_is_lost_while_the_source_stops_restores_from_the_last_snapshot(world: Warm) -> None:
    world.catch_up("node-2", 1)
    world.lose("node-2")
    world.stop("node-1", 1)
    decided = world.join("node-2")
    [(_, message)] = messages(decided, InstallUnits)
    assert {handle.unit.task for handle in message.units} == {1, 2, 3}
    assert not any(handle.standby for handle in message.units)


def test_a_state_that_the_source_saves_after_the_switch_is_not_committed(world: Warm) -> None:
    """The target may be repeating steps before it, whose log would go."""
    world.begin_snapshot()
    world.catch_up("node-2", 1)
    world.stop("node-1", 1, after=0)
    states = tuple(state_of(UnitId(0, task), 0) for task in (0, 1))
    world.report(SnapshotTaken, "node-1", LEASE, states)
    [commit] = [one for one in world.report(SnapshotTaken, "node-2", LEASE) if isinstance(one, commands.CommitStates)]
    assert [ref.unit.task for ref in commit.states] == [0]


def test_a_state_that_was_saved_before_the_switch_is_not_committed_after_it(world: Warm) -> None:
    world.begin_snapshot()
    world.report(SnapshotTaken, "node-1", LEASE, tuple(state_of(UnitId(0, task), 0) for task in (0, 1)))
    world.catch_up("node-2", 1)
    world.stop("node-1", 1, after=0)
    [commit] = [one for one in world.report(SnapshotTaken, "node-2", LEASE) if isinstance(one, commands.CommitStates)]
    assert [ref.unit.task for ref in commit.states] == [0]


def test_a_move_to_a_standby_begins_with_the_switch() -> None:
    world = Standbys()
    target = Assignment(("node-1", "node-2", "node-3"), (0, 2, 3, 6))  # task 3 to node-3, its standby
    decided = world.begin(request_of(world.current, target, [moves_to(world.current, target)], warm=True))
    assert follows(decided) == []
    assert [(node, one.warm) for node, one in released(decided)] == [("node-2", True)]


def test_targets_follow_the_standbys_that_take_over_from_a_lost_source() -> None:
    """Tasks 2 and 3 go from node-2 to node-1 and node-3, where their standbys are; then 2 is to go on to node-3."""
    world = Standbys()
    target = scattered([0, 0, 2, 2, 2, 2])
    world.begin(request_of(world.current, target, [moves_to(world.current, target)[:1]], warm=True))
    decided = world.lose("node-2")
    assert takes_over(decided) == [("node-1", (2,)), ("node-3", (3,))]
    view = world.coordinator.view().migration
    assert view is not None
    assert [(one.source, one.target, one.tasks) for one in view.in_flight] == [("node-1", "node-3", (2,))]
    world.commit_standbys(decided)
    assert [node for node, _ in released(world.catch_up("node-3", 2))] == ["node-1"]


def test_a_target_that_takes_over_a_part_itself_does_not_wait_for_itself() -> None:
    world = Standbys()
    target = scattered([0, 0, 2, 2, 2, 2])  # tasks 2 and 3 go to node-3, which is the standby of 3
    world.begin(request_of(world.current, target, [moves_to(world.current, target)], warm=True))
    world.lose("node-2")
    view = world.coordinator.view().migration
    assert view is not None
    parts = {(one.source, one.target, one.tasks) for one in view.in_flight}
    assert parts == {("node-2", "node-3", (3,)), ("node-1", "node-3", (2,))}
    assert {(one.action, one.tasks) for one in view.awaited} == {("install", (3,)), ("follow", (2,))}


def test_a_node_that_stays_stays_in_the_assignment_when_standbys_take_over_all_its_tasks() -> None:
    world = Standbys()
    target = Assignment(("node-1", "node-2", "node-3"), (0, 2, 5, 6))
    world.begin(request_of(world.current, target, [moves_to(world.current, target)]))
    world.commit_standbys(world.lose("node-1"))
    world.release("node-3", 4)
    [after] = commits(world.install("node-2", 4))
    assert after.owners == ("node-2",) * 5 + ("node-3",)
    assert set(after.nodes) == {"node-1", "node-2", "node-3"}


def test_tasks_that_are_taken_over_by_a_node_that_is_to_leave_move_on() -> None:
    world = Standbys()
    target = scattered([0, 0, 0, 0, 0, 0])
    moves = [move for move in moves_to(world.current, target) if move.source == "node-3"]
    request = request_of(world.current, target, [moves])
    world.begin(request)
    world.commit_standbys(world.lose("node-2"))  # task 3 is on node-3 now, which is to leave
    world.release("node-3", 4, 5)
    decided = world.commit_standbys(world.install("node-1", 4, 5))
    assert commands.OpenMigrationLease() in decided
    decided = world.hear(events.MigrationLeaseOpened(LEASE))
    assert [(node, tuple(unit.task for unit in one.units)) for node, one in released(decided)] == [("node-3", (3,))]


def test_a_target_takes_over_from_a_standby_whose_own_take_over_was_never_committed() -> None:
    world = Standbys()
    target = scattered([2, 0, 1, 1, 2, 2])  # task 0 moves from node-1 to node-3
    world.begin(request_of(world.current, target, [moves_to(world.current, target)], warm=True))
    world.hear(events.SnapshotDue())
    world.hear(events.SnapshotLeaseOpened(LEASE))
    for node in world.current.nodes:
        saving = world.report(SnapshotTaken, node, LEASE)
    assert any(isinstance(one, commands.CommitStates) for one in saving)  # until it ends, no owner is committed
    assert commits(world.lose("node-1")) == []
    world.catch_up("node-3", 0)
    world.report(UnitsReleased, "node-2", (), stopped=(StoppedUnit(UnitId(0, 0), Batch(-1)),))
    decided = world.hear(events.SnapshotFailed("the store is away"))
    world.install("node-3", 0)
    [before] = commits(decided)
    assert before.owners[:2] == ("node-1", "node-2")  # task 0 is on its way
    [after] = commits(world.commit_standbys(decided))
    assert after.owners[:2] == ("node-3", "node-2")


def test_a_cancellation_while_only_some_targets_follow_brings_all_to_their_end() -> None:
    """One target has taken over from a lost source already: what it has begun cannot be left."""
    world = Standbys()
    target = scattered([0, 0, 2, 2, 2, 2])  # tasks 2 and 3 go to node-3, which is the standby of 3
    world.begin(request_of(world.current, target, [moves_to(world.current, target)], warm=True))
    decided = world.lose("node-2")
    world.hear(events.CancelRequested("m1"))
    view = world.coordinator.view().migration
    assert view is not None
    assert [one.action for one in view.awaited] == ["install", "follow"]
    decided = world.commit_standbys(decided)
    decided += world.catch_up("node-3", 2)
    assert [node for node, _ in released(decided)] == ["node-1"]
    world.report(UnitsReleased, "node-1", (), stopped=(StoppedUnit(UnitId(0, 2), Batch(-1)),))
    [after] = commits(world.install("node-3", 2, 3))
    assert after.owners == target.owners


def test_tasks_on_a_node_that_is_to_leave_move_on_when_standbys_took_over_all_that_was_to_move() -> None:
    world = Standbys()
    target = scattered([0, 0, 0, 0, 0, 0])
    moves = [move for move in moves_to(world.current, target) if move.task == 2]
    world.hear(request_of(world.current, target, [moves], paused=True))
    world.commit_standbys(world.lose("node-2"))  # task 2 is on node-1 now, and task 3 on node-3, which is to leave
    world.hear(events.ResumeRequested("m1"))
    decided = world.hear(events.MigrationLeaseOpened(LEASE))
    assert leases(decided) == [commands.CloseMigrationLease(LEASE), commands.OpenMigrationLease()]
    decided = world.hear(events.MigrationLeaseOpened(LEASE))
    assert [(node, tuple(unit.task for unit in one.units)) for node, one in released(decided)] == [
        ("node-3", (3, 4, 5))
    ]


def test_a_target_that_is_not_there_is_started() -> None:
    world = Warm(scattered([0, 2, 1, 1]))
    assert [one.node for one in world.decided if isinstance(one, commands.StartNode)] == ["node-3"]
    assert follows(world.join("node-3")) == [("node-3", (1,))]


def test_standbys_take_over_what_has_moved_while_another_target_restores_its_tasks() -> None:
    """Task 1 has moved to node-2, and its source follows it; node-3, the target of task 3, is not back."""
    world = Standbys()
    target = scattered([0, 1, 1, 2, 2, 2])
    world.begin(request_of(world.current, target, [moves_to(world.current, target)]))
    world.release("node-1", 1)
    world.release("node-2", 3)
    world.install("node-2", 1)
    decided = world.install("node-3", 3)
    world.lose("node-3")
    decided = world.commit_standbys(decided)
    assert ("node-1", (1,)) in follows(decided)
    world.catch_up("node-1", 1)
    view = world.coordinator.view().migration
    assert view is not None
    assert [(one.node, one.tasks) for one in view.awaited] == [("node-3", (3,))]
    assert ("node-1", (1, 2)) in takes_over(world.lose("node-2"))
