"""Standbys by the driver: where they are, who is told, who takes over, and what is committed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pytest

from elastic.core import commands, events
from elastic.core.commands import Command
from elastic.core.coordinator import Coordinator
from elastic.core.ids import Batch, UnitId
from elastic.core.messages import (
    ApplyStep,
    CaughtUp,
    DropUnits,
    FollowBatches,
    InstallUnits,
    NodeJoined,
    SnapshotTaken,
    StandbysCaughtUp,
    StandbysDropped,
    StepOverdue,
    UnitsReleased,
)
from elastic.core.steps import Position
from elastic.routing import Groupings, Routing, TableGrouping
from migration import Assignment, Ownership
from storage.state import Manifest
from tests.elastic.core.test_coordinator import apply, commit_batch
from tests.elastic.core.world import LEASE, World, messages, moves_to, request_of, scattered, state_of


class Standbys(World):
    """Six tasks on three nodes, whose standbys have caught up."""

    told: list[tuple[str, UnitId]]  # who was told to follow what, in a test that asks

    def __init__(self, number: int = 1, current: Ownership | None = None) -> None:
        super().__init__(current or Assignment.even(tasks=6, nodes=3), standbys=number)
        for node, tasks in follows(self.commit_standbys(self.decided)):
            self.catch_up(node, *tasks)

    def commit_standbys(self, decided: Sequence[Command]) -> list[Command]:
        """Commit what is to be committed, with the next epoch."""
        [commit] = [one for one in decided if isinstance(one, commands.CommitAssignment)]
        epoch = self.coordinator.placement.committed.epoch + 1
        routing = Routing.by_hash(commit.assignment).with_assignment(commit.assignment, epoch, commit.standbys)
        return self.hear(events.AssignmentCommitted(self.coordinator.manifest, routing, commit.assignment))

    def catch_up(self, node: str, *tasks: int) -> list[Command]:
        return self.report(StandbysCaughtUp, node, tuple(UnitId(0, task) for task in tasks))

    def owners(self) -> list[str]:
        return [self.coordinator.placement.owner(UnitId(0, task)) for task in range(6)]

    def standbys(self) -> tuple[tuple[str, ...], ...]:
        return self.coordinator.view().route.standbys


def installs(decided: Sequence[Command], *, standby: bool) -> list[tuple[str, tuple[int, ...]]]:
    found = []
    for node, message in messages(decided, InstallUnits):
        assert len({handle.standby for handle in message.units}) <= 1
        tasks = tuple(handle.unit.task for handle in message.units if handle.standby == standby)
        if tasks:
            found.append((node, tasks))
    return found


def follows(decided: Sequence[Command]) -> list[tuple[str, tuple[int, ...]]]:
    return installs(decided, standby=True)


def takes_over(decided: Sequence[Command]) -> list[tuple[str, tuple[int, ...]]]:
    return installs(decided, standby=False)


def snapshot_of(world: World, task: int, batch: int) -> events.StatesCommitted:
    """Commit a batch, and return the event that the state of a task after it is committed too."""
    commit_batch(world, batch)
    manifest = world.coordinator.manifest
    states = manifest.units.with_states([state_of(UnitId(0, task), batch)])
    return events.StatesCommitted(replace(manifest, number=manifest.number + 1, units=states), LEASE)


@pytest.fixture
def world() -> Standbys:
    return Standbys()


def test_standbys_are_placed_when_all_nodes_serve_and_told_when_that_is_committed() -> None:
    world = Standbys.__new__(Standbys)
    World.__init__(world, Assignment.even(tasks=6, nodes=3), standbys=1)
    [commit] = [one for one in world.decided if isinstance(one, commands.CommitAssignment)]
    assert commit.standbys == (("node-2",), ("node-2",), ("node-1",), ("node-3",), ("node-2",), ("node-2",))
    assert follows(world.commit_standbys(world.decided)) == [
        ("node-1", (2,)),
        ("node-2", (0, 1, 4, 5)),
        ("node-3", (3,)),
    ]


def test_a_job_without_standbys_commits_and_sends_nothing_for_them() -> None:
    world = World()
    assert not [one for one in world.decided if isinstance(one, commands.CommitAssignment)]
    [apply_step, _] = messages(commit_batch(world, 0), ApplyStep)
    assert apply_step[1].published == -1
    for node in ("node-1", "node-2"):
        apply(world, node, 0)
    assert world.hear(events.ResultsPublished(Batch(0))) == []


def test_standbys_of_a_run_before_are_given_up_by_a_run_without() -> None:
    assignment = Assignment.even(tasks=4, nodes=2)
    routing = Routing.by_hash(assignment).with_assignment(assignment, 3, (("node-2",), ("node-2",), (), ()))
    manifest = Manifest.first([UnitId(0, task) for task in range(4)])
    world = World.__new__(World)
    world.coordinator = Coordinator(manifest, routing, Batch(-1), [False], assignment.nodes)
    decided = [command for name in assignment.nodes for command in world.join(name)]
    assert [one.standbys for one in decided if isinstance(one, commands.CommitAssignment)] == [()]
    assert follows(decided) == []


def test_senders_bring_rows_to_the_nodes_that_follow(world: Standbys) -> None:
    assert world.coordinator.view().route.owners(UnitId(0, 3)) == ("node-2", "node-3")


def test_standbys_learn_what_is_published_with_the_next_step_or_at_once_if_none_follows(world: Standbys) -> None:
    commit_batch(world, 0)
    commit_batch(world, 1)
    for node in ("node-1", "node-2", "node-3"):
        apply(world, node, 0)
    assert messages(world.hear(events.ResultsPublished(Batch(0))), FollowBatches) == []
    steps = messages(commit_batch(world, 2), ApplyStep)
    assert {(node, one.published) for node, one in steps} == {(f"node-{number}", 0) for number in (1, 2, 3)}
    for node in ("node-1", "node-2", "node-3"):
        apply(world, node, 1)
        apply(world, node, 2)
    world.hear(events.ResultsPublished(Batch(1)))
    told = messages(world.hear(events.ResultsPublished(Batch(2))), FollowBatches)
    assert [(node, one.published) for node, one in told] == [(f"node-{number}", 2) for number in (1, 2, 3)]


def test_standbys_take_over_at_once_and_that_is_committed_behind_it(world: Standbys) -> None:
    decided = world.lose("node-2")
    assert takes_over(decided) == [("node-1", (2,)), ("node-3", (3,))]
    assert world.owners() == ["node-1"] * 3 + ["node-3"] * 3
    [commit] = [one for one in decided if isinstance(one, commands.CommitAssignment)]
    assert commit.assignment == Assignment(("node-1", "node-2", "node-3"), (0, 3, 3, 6))
    assert commit.standbys == (("node-2",),) * 6


def test_standbys_are_told_before_a_process_is_started(world: Standbys) -> None:
    decided = world.lose("node-2")
    starts = [place for place, one in enumerate(decided) if isinstance(one, commands.StartNode)]
    [start], told = starts, [place for place, one in enumerate(decided) if isinstance(one, commands.Send)]
    assert max(told) < start


def test_a_standby_that_takes_over_is_told_what_was_reported(world: Standbys) -> None:
    commit_batch(world, 0)
    commit_batch(world, 1)
    apply(world, "node-2", 0)
    [handle] = [
        handle
        for node, message in messages(world.lose("node-2"), InstallUnits)
        for handle in message.units
        if node == "node-3"
    ]
    assert (handle.unit.task, handle.reported, handle.through) == (3, Position(Batch(0), 0), -1)


def test_the_lost_node_returns_as_a_standby_of_what_it_lost(world: Standbys) -> None:
    decided = world.lose("node-2")
    assert follows(world.commit_standbys(decided)) == []
    joined = world.join("node-2")
    assert takes_over(joined) == []
    assert follows(joined) == [("node-2", (0, 1, 2, 3, 4, 5))]


def test_a_standby_that_has_not_caught_up_does_not_take_over(world: Standbys) -> None:
    world.report(StandbysDropped, "node-3", (UnitId(0, 3),))
    decided = world.lose("node-2")
    assert takes_over(decided) == [("node-1", (2,))]
    assert world.owners()[3] == "node-2"
    assert takes_over(world.join("node-2")) == [("node-2", (3,))]


def test_a_standby_that_has_lost_the_log_is_told_to_load_a_newer_state_once_there_is_one(world: Standbys) -> None:
    """The same one again would be dropped at once again."""
    assert follows(world.report(StandbysDropped, "node-3", (UnitId(0, 3),))) == []
    assert follows(world.hear(snapshot_of(world, 3, batch=0))) == [("node-3", (3,))]
    assert follows(world.report(StandbysDropped, "node-3", (UnitId(0, 3),))) == []
    assert follows(world.hear(snapshot_of(world, 3, batch=1))) == [("node-3", (3,))]


def test_a_standby_that_is_dropped_when_there_is_a_newer_state_follows_from_that_at_once(
    world: Standbys,
) -> None:
    world.hear(snapshot_of(world, 3, batch=0))
    assert follows(world.report(StandbysDropped, "node-3", (UnitId(0, 3),))) == [("node-3", (3,))]


def test_of_two_standbys_the_one_with_fewer_units_takes_over() -> None:
    world = Standbys(2)
    assert world.standbys()[2] == ("node-1", "node-3")
    assert takes_over(world.lose("node-1")) == [("node-2", (0,)), ("node-3", (1,))]


def test_when_the_next_owner_is_lost_too_the_second_standby_takes_over() -> None:
    world = Standbys(2)
    world.lose("node-1")
    assert takes_over(world.lose("node-2")) == [("node-3", (0, 2, 3))]
    assert set(world.owners()) == {"node-3"}


def test_when_owner_and_standby_are_lost_the_next_incarnation_restores_the_units(world: Standbys) -> None:
    world.lose("node-3")
    world.lose("node-2")
    assert world.owners() == ["node-1", "node-1", "node-1", "node-2", "node-2", "node-2"]
    assert takes_over(world.join("node-2")) == [("node-2", (3, 4, 5))]


def test_while_one_assignment_is_being_committed_the_next_one_waits_and_then_has_both_changes() -> None:
    world = Standbys(2)
    decided = world.lose("node-2")
    assert not [one for one in world.lose("node-3") if isinstance(one, commands.CommitAssignment)]
    assert set(world.owners()) == {"node-1"}
    [commit] = [one for one in world.commit_standbys(decided) if isinstance(one, commands.CommitAssignment)]
    assert set(commit.assignment.owners) == {"node-1"}


def test_nothing_is_installed_while_a_snapshot_is_being_committed(world: Standbys) -> None:
    world.hear(events.SnapshotDue())
    world.hear(events.SnapshotLeaseOpened(LEASE))
    for node in ("node-1", "node-2", "node-3"):
        world.report(SnapshotTaken, node, LEASE)
    assert takes_over(world.lose("node-2")) == []
    decided = world.hear(events.StatesCommitted(world.coordinator.manifest, LEASE))
    assert takes_over(decided) == [("node-1", (2,)), ("node-3", (3,))]


def test_no_standby_is_told_of_a_state_while_a_newer_one_is_being_committed(world: Standbys) -> None:
    world.hear(events.SnapshotDue())
    world.hear(events.SnapshotLeaseOpened(LEASE))
    for node in ("node-1", "node-2", "node-3"):
        world.report(SnapshotTaken, node, LEASE)
    lost = world.lose("node-1")
    assert not any(isinstance(one, commands.CommitAssignment) for one in lost)
    assert follows(world.join("node-1")) == []
    decided = world.hear(events.StatesCommitted(world.coordinator.manifest, LEASE))
    assert any(isinstance(one, commands.CommitAssignment) for one in decided)


def test_after_a_restart_nodes_that_own_nothing_start_too_to_follow(world: Standbys) -> None:
    world.commit_standbys(world.lose("node-1"))
    world.join("node-1")
    world.hear(events.StopAllRequested())
    started = [one for name in ("node-2", "node-3") for one in world.hear(events.StartRequested(name))]
    assert {one.node for one in started if isinstance(one, commands.StartNode)} == {"node-2", "node-3"}
    decided = world.join("node-2")
    assert [one.node for one in decided if isinstance(one, commands.StartNode)] == ["node-1"]


def test_a_state_that_the_lost_node_has_saved_is_not_committed_for_what_others_take_over(world: Standbys) -> None:
    world.hear(events.SnapshotDue())
    world.hear(events.SnapshotLeaseOpened(LEASE))
    commit_batch(world, 0)
    for node in ("node-1", "node-2", "node-3"):
        apply(world, node, 0)
    world.hear(events.ResultsPublished(Batch(0)))
    world.report(SnapshotTaken, "node-1", LEASE)
    world.report(SnapshotTaken, "node-2", LEASE, (state_of(UnitId(0, 2), 0),))
    world.lose("node-2")
    [commit] = [
        one
        for one in world.report(SnapshotTaken, "node-3", LEASE, (state_of(UnitId(0, 2), 0), state_of(UnitId(0, 4), 0)))
        if isinstance(one, commands.CommitStates)
    ]
    assert [ref.unit.task for ref in commit.states] == [4]


def test_a_step_that_kills_a_node_does_not_kill_its_standbys_too(world: Standbys) -> None:
    units = (UnitId(0, 2),)
    decided = world.report(StepOverdue, "node-2", Position(Batch(0), 0), units, 5.0)
    assert takes_over(decided) == []
    assert world.owners()[2:4] == ["node-2", "node-2"]


def test_a_node_that_takes_over_is_careful_until_it_has_caught_up(world: Standbys) -> None:
    [(_, first), (_, second)] = messages(world.lose("node-2"), InstallUnits)
    assert first.careful
    assert second.careful
    world.report(CaughtUp, "node-3", 1)
    assert not world.coordinator.crashes.is_careful("node-3")


def test_a_loss_is_over_when_all_that_take_over_have_caught_up(world: Standbys) -> None:
    world.coordinator.handle(events.NodeLost("node-2", world.incarnation("node-2"), "crashed"), at=10.0)
    world.coordinator.handle(CaughtUp("node-3", world.incarnation("node-3"), 1, 2, 30), at=10.2)
    assert world.coordinator.view().recoveries == ()
    world.coordinator.handle(CaughtUp("node-1", world.incarnation("node-1"), 1, 2, 5), at=10.5)
    [recovery] = world.coordinator.view().recoveries
    assert (recovery.node, recovery.seconds, recovery.units, recovery.replayed_rows) == ("node-2", 0.5, 2, 35)


def test_the_standbys_of_a_unit_that_a_child_process_tries_are_told_so_too() -> None:
    world = Standbys()
    world.coordinator._skips_poison = True
    units = (UnitId(0, 2),)
    decided: list[Command] = []
    for _ in range(3):
        decided = world.report(StepOverdue, "node-2", Position(Batch(0), 0), units, 5.0)
        if not follows(decided):
            world.join("node-2")
    [(node, message)] = [one for one in messages(decided, InstallUnits) if one[1].units[0].standby]
    assert (node, message.units[0].isolated) == ("node-1", (Position(Batch(0), 0),))


# While tasks move.


def test_a_task_that_moves_is_left_to_its_hand_over(world: Standbys) -> None:
    """Task 3 moves to node-1 and has its standby on node-3."""
    target = scattered([0, 0, 1, 0, 2, 2])
    world.begin(request_of(world.current, target, [moves_to(world.current, target)]))
    assert takes_over(world.lose("node-2")) == [("node-1", (2, 3))]
    assert world.owners() == ["node-1"] * 4 + ["node-3"] * 2
    world.install("node-1", 3)
    assert world.coordinator.placement.is_committing  # the new owner of task 2; the mini-migration waits for that


def test_a_mini_migration_moves_tasks_from_where_they_are_now(world: Standbys) -> None:
    target = Assignment(("node-1", "node-2", "node-3"), (0, 1, 4, 6))
    moves = moves_to(world.current, target)
    assert [(move.task, move.source, move.target) for move in moves] == [(1, "node-1", "node-2")]
    world.hear(request_of(world.current, target, [moves], paused=True))
    world.commit_standbys(world.lose("node-1"))
    assert world.owners() == ["node-2"] * 4 + ["node-3"] * 2
    [opened] = world.hear(events.ResumeRequested("m1"))
    assert opened == commands.OpenMigrationLease()
    assert world.hear(events.MigrationLeaseOpened(LEASE)) == [commands.CloseMigrationLease(LEASE)]
    view = world.coordinator.view().migration
    assert view is not None
    assert view.is_over
    assert view.assignment.owners == ("node-2",) * 4 + ("node-3",) * 2


def test_a_source_that_stays_a_standby_keeps_its_state(world: Standbys) -> None:
    """Task 3 moves to its standby; so its source takes the place of that."""
    target = Assignment(("node-1", "node-2", "node-3"), (0, 2, 3, 6))
    world.begin(request_of(world.current, target, [moves_to(world.current, target)]))
    world.release("node-2", 3)
    decided = world.commit_standbys(world.install("node-3", 3))
    assert messages(decided, DropUnits) == []
    assert ("node-2", (3,)) in follows(decided)
    assert world.coordinator.view().routing.standbys[3] == ("node-2",)


def test_a_standby_goes_only_when_those_that_replace_it_have_caught_up(world: Standbys) -> None:
    target = Assignment(("node-1", "node-2", "node-3"), (0, 2, 2, 6))
    world.begin(request_of(world.current, target, [moves_to(world.current, target)]))
    world.release("node-2", 2, 3)
    decided = world.commit_standbys(world.install("node-3", 2, 3))
    decided += world.commit_standbys(decided)  # the places after the migration
    assert world.coordinator.view().routing.standbys[2] == ("node-2",)
    assert UnitId(0, 2) in world.coordinator.placement.followed_by("node-1")
    dropped = messages(world.catch_up("node-2", 2), DropUnits)
    assert [(node, one.units) for node, one in dropped] == [("node-1", (UnitId(0, 2),))]
    assert not messages(world.catch_up("node-2", 2), DropUnits)


def test_no_task_is_with_a_standby_on_its_own_node_after_any_loss(world: Standbys) -> None:
    for node in ("node-1", "node-3", "node-2", "node-1", "node-1"):
        world.lose(node)
        world.join(node)
        assert {owner for owner in world.owners() if not owner.startswith("node-")} == set()
        route = world.coordinator.view().route  # its constructor checks it
        assert len(route.standbys) in (0, 6)


def test_the_view_tells_how_many_standbys_have_no_node() -> None:
    for number, nodes, missing in ((1, 1, 1), (2, 2, 1), (3, 3, 1), (1, 2, 0), (0, 1, 0)):
        world = World(Assignment.even(tasks=6, nodes=nodes), standbys=number)
        assert world.coordinator.view().standbys_without_node == missing


def test_a_node_whose_tasks_standbys_took_over_leaves_when_it_is_asked_to(world: Standbys) -> None:
    """No migration has to move anything from it, so none commits an assignment without it."""
    world.commit_standbys(world.lose("node-1"))
    world.join("node-1")
    decided = world.hear(events.StopRequested("node-1"))
    assert world.coordinator.view().node("node-1") is None
    [commit] = [one for one in decided if isinstance(one, commands.CommitAssignment)]
    assert set(commit.assignment.nodes) == {"node-2", "node-3"}
    assert all(set(nodes) < {"node-2", "node-3"} and nodes for nodes in commit.standbys)
    assert not any(isinstance(one, commands.StartNode) for one in world.commit_standbys(decided))
    assert any(isinstance(one, commands.StartNode) for one in world.hear(events.StartRequested("node-1")))


def test_a_standby_starts_from_the_saved_state_while_a_newer_one_is_on_its_way_elsewhere(world: Standbys) -> None:
    commit_batch(world, 0)
    for node in world.current.nodes:
        apply(world, node, 0)
    world.hear(events.ResultsPublished(Batch(0)))
    target = scattered([0, 0, 2, 1, 2, 2])  # task 2 leaves node-2
    world.begin(request_of(world.current, target, [moves_to(world.current, target)]))
    world.report(UnitsReleased, "node-2", (state_of(UnitId(0, 2), batch=0),))
    world.lose("node-1")
    told = [one for node, one in messages(world.join("node-1"), InstallUnits) if node == "node-1"]
    [(message, handle)] = [(one, handle) for one in told for handle in one.units if handle.unit.task == 2]
    assert (handle.standby, handle.state, handle.through) == (True, None, -1)
    assert [step.batch for step in message.steps] == [0]


def test_a_node_that_owns_nothing_gets_the_steps_that_it_follows(world: Standbys) -> None:
    world.commit_standbys(world.lose("node-1"))
    world.join("node-1")
    assert [node for node, _ in messages(commit_batch(world, 0), ApplyStep)] == ["node-1", "node-2", "node-3"]


def test_a_node_that_left_and_was_started_again_stays_in_the_assignment(world: Standbys) -> None:
    world.commit_standbys(world.lose("node-1"))
    world.join("node-1")
    world.commit_standbys(world.hear(events.StopRequested("node-1")))
    world.hear(events.StartRequested("node-1"))
    decided = world.join("node-1")
    assert follows(decided) == []
    idle = Assignment(("node-1", "node-2", "node-3"), (0, 0, 4, 6))
    routing = Routing.by_hash(idle).with_assignment(idle, 9, world.coordinator.placement.committed.standbys)
    world.hear(events.AssignmentCommitted(world.coordinator.manifest, routing, idle))
    [commit] = [one for one in world.lose("node-3") if isinstance(one, commands.CommitAssignment)]
    assert "node-1" in commit.assignment.nodes


def test_nodes_that_were_all_stopped_follow_nothing_until_they_are_told_again(world: Standbys) -> None:
    world.hear(events.StopAllRequested())
    assert world.coordinator.view().standbys == {}
    world.hear(events.StartOwnersRequested())
    told = [one for node in world.current.nodes for one in follows(world.join(node))]
    assert {task for _, tasks in told for task in tasks} == set(range(6))


def test_only_a_job_with_standbys_starts_nodes_that_own_nothing_and_only_beside_nodes_that_serve() -> None:
    def started(decided: Sequence[Command]) -> list[str]:
        return [one.node for one in decided if isinstance(one, commands.StartNode)]

    for standbys, expected in ((0, []), (1, ["node-2"])):
        world = World(nodes=["node-1"], standbys=standbys)
        assert started(world.decided) == expected
    stopped = Standbys()
    late = snapshot_of(stopped, 3, batch=0)
    stopped.hear(events.StopAllRequested())
    assert started(stopped.hear(late)) == []


def test_nodes_that_own_nothing_are_not_started_while_tasks_move(world: Standbys) -> None:
    """A restart moves tasks while all nodes are stopped: it needs the new owners first."""
    target = Assignment(("node-1", "node-2", "node-3"), (0, 0, 4, 6))
    world.hear(events.StopAllRequested())
    world.begin(request_of(world.current, target, [moves_to(world.current, target)]))
    decided = world.join("node-2")
    assert [one for one in decided if isinstance(one, commands.StartNode)] == []


def test_standbys_are_placed_after_a_migration_whose_last_target_was_lost_while_it_was_committed(
    world: Standbys,
) -> None:
    target = Assignment((*world.current.nodes, "node-4"), (0, 2, 4, 5, 6))
    world.hear(events.StartRequested("node-4"))
    world.join("node-4")
    world.begin(request_of(world.current, target, [moves_to(world.current, target)]))
    world.release("node-3", 5)
    decided = world.install("node-4", 5)
    world.lose("node-4")
    world.commit_standbys(decided)
    world.join("node-4")
    was_under_way = world.coordinator.hand_overs.is_under_way
    decided = world.install("node-4", 5)
    assert (was_under_way, world.coordinator.hand_overs.is_under_way) == (True, False)
    [commit] = [one for one in decided if isinstance(one, commands.CommitAssignment)]
    assert commit.standbys[5] == ("node-3",)


def test_of_standbys_that_were_dropped_only_those_with_a_newer_state_are_told(world: Standbys) -> None:
    assert follows(world.report(StandbysDropped, "node-2", (UnitId(0, 0), UnitId(0, 1)))) == []
    assert follows(world.hear(snapshot_of(world, 0, batch=0))) == [("node-2", (0,))]
    assert follows(world.hear(snapshot_of(world, 1, batch=1))) == [("node-2", (1,))]


def two_stages(*standbys: int) -> Standbys:
    """Six tasks with two stages; the second has standbys, which have been told to follow."""
    assignment = Assignment.even(tasks=6, nodes=3)
    world = Standbys.__new__(Standbys)
    manifest = Manifest.first([UnitId(stage, task) for stage in range(2) for task in range(6)])
    world.coordinator = Coordinator(
        manifest, Routing.by_hash(assignment), Batch(-1), [True, False], assignment.nodes, standbys=standbys
    )
    for name in assignment.nodes:
        decided = world.join(name)
    world.commit_standbys(decided)
    return world


def test_a_standby_takes_over_when_it_has_caught_up_in_all_stages() -> None:
    world = two_stages(1, 1)
    world.catch_up("node-2", 0, 1)
    world.report(StandbysCaughtUp, "node-2", (UnitId(1, 1),))
    world.lose("node-1")
    assert world.owners() == ["node-1", "node-2", "node-2", "node-2", "node-3", "node-3"]
    assert world.coordinator.placement.units_on("node-1") == [UnitId(0, 0), UnitId(1, 0)]


def test_a_standby_takes_over_a_task_whose_other_stage_has_no_standbys() -> None:
    world = two_stages(1, 0)
    world.catch_up("node-2", 0, 1)
    decided = world.lose("node-1")
    assert [(node, [handle.unit for handle in one.units]) for node, one in messages(decided, InstallUnits)] == [
        ("node-2", [UnitId(0, 0), UnitId(0, 1), UnitId(1, 0), UnitId(1, 1)])
    ]


def protected(standbys: int, of_guests: int) -> Standbys:
    """Six tasks on three nodes, whose guests have another number of standbys than their other units."""
    assignment = Assignment.even(tasks=6, nodes=3)
    routing = Routing(assignment, Groupings(6, (TableGrouping(),)))
    world = Standbys.__new__(Standbys)
    manifest = Manifest.first(routing.units(0))
    world.coordinator = Coordinator(
        manifest,
        routing,
        Batch(-1),
        [False],
        assignment.nodes,
        standbys=[standbys],
        standbys_of_guests=[of_guests],
    )
    for name in assignment.nodes:
        decided = world.join(name)
    [commit] = [one for one in decided if isinstance(one, commands.CommitAssignment)]
    after = routing.with_assignment(commit.assignment, 1, commit.standbys)
    told = messages(world.hear(events.AssignmentCommitted(manifest, after, commit.assignment)), InstallUnits)
    world.told = [(node, handle.unit) for node, one in told for handle in one.units]
    return world


@pytest.mark.parametrize(("standbys", "of_guests"), [(0, 1), (0, 2), (1, 2)])
def test_guests_have_standbys_of_their_own_number(standbys: int, of_guests: int) -> None:
    world = protected(standbys, of_guests)
    told = Counter(unit for _, unit in world.told)
    assert told == {
        UnitId(0, task, guests): number
        for guests, number in ((False, standbys), (True, of_guests))
        for task in range(6)
        if number
    }
    assert world.coordinator.view().standbys_without_node == 0


def test_a_node_that_follows_a_task_for_its_guests_alone_drops_what_it_follows_besides() -> None:
    """Such as after a warm hand-over: its source goes on as a standby of all units."""
    world = protected(0, 1)
    [(node, guests)] = [(node, unit) for node, unit in world.told if unit.task == 0]
    own = UnitId(0, 0)
    world.coordinator.placement.follow(node, [own])
    dropped = messages(world.report(StandbysCaughtUp, node, (guests,)), DropUnits)
    assert [(name, one.units) for name, one in dropped] == [(node, (own,))]


def test_senders_bring_no_rows_for_standbys_of_later_stages() -> None:
    assert not any(two_stages(0, 1).standbys())
    assert all(two_stages(1, 0).standbys())


class OneHost(Standbys):
    """All nodes are on one host, at first in one executor, unless the test says otherwise."""

    def __init__(self, current: Ownership | None = None, executors: Mapping[str, str] = MappingProxyType({})) -> None:
        self.executors = {**dict.fromkeys(("node-1", "node-2", "node-3"), "a"), **executors}
        super().__init__(current=current)

    def join(self, node: str) -> list[Command]:
        self.report(NodeJoined, node, "host:1", 1, self.executors[node])
        return self.hear(events.EpochCommitted(self.coordinator.manifest))


def test_standbys_are_placed_again_when_a_node_returns_to_another_executor() -> None:
    """Where it was, the loss of the executor would take the owner of a task together with its standby."""
    world = OneHost()
    assert world.standbys() == (("node-2",), ("node-2",), ("node-1",), ("node-3",), ("node-2",), ("node-2",))
    world.commit_standbys(world.lose("node-3"))
    world.executors["node-3"] = "b"
    [commit] = [one for one in world.join("node-3") if isinstance(one, commands.CommitAssignment)]
    assert set(commit.assignment.owners) == {"node-1", "node-2"}
    assert commit.standbys == (("node-3",),) * 6


def test_standbys_stay_when_a_node_returns_to_its_executor() -> None:
    world = OneHost()
    world.commit_standbys(world.lose("node-3"))
    assert not [one for one in world.join("node-3") if isinstance(one, commands.CommitAssignment)]


def test_valid_standbys_of_scattered_tasks_stay_when_standbys_are_placed_again() -> None:
    """Other places would be as good, but need copies."""
    world = OneHost(scattered([0, 1, 2, 0, 1, 2]), {"node-1": "a", "node-2": "b", "node-3": "c"})
    routing = world.coordinator.placement.committed
    others = {"node-1": "node-2", "node-2": "node-3", "node-3": "node-1"}
    moved = tuple((others[owner],) for owner in routing.assignment.owners)
    assert moved != routing.standbys
    world.coordinator.placement.commit(routing.with_assignment(routing.assignment, routing.epoch, moved))
    world.commit_standbys(world.lose("node-1"))
    world.executors["node-1"] = "d"
    decided = world.join("node-1")
    assert world.coordinator.standbys._hosts["node-1"] == "host/d"
    assert [one for one in decided if isinstance(one, commands.CommitAssignment)] == []
    kept = world.coordinator.placement.committed
    assert all(
        {owner, *nodes} <= {was, *before}
        for owner, nodes, was, before in zip(
            kept.assignment.owners, kept.standbys, routing.assignment.owners, moved, strict=True
        )
    )
