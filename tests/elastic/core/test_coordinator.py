"""Decisions that concern several parts of the core at once: which reports are used, and in which order."""

from dataclasses import replace

import pytest

from elastic.core import commands, events
from elastic.core.coordinator import Coordinator
from elastic.core.ids import Batch, UnitId
from elastic.core.messages import (
    InstallUnits,
    NodeFailed,
    NodeJoined,
    SnapshotTaken,
    StepApplied,
    TakeSnapshot,
)
from elastic.core.steps import Position
from elastic.results import ResultRef
from elastic.routing import Routing
from migration import Assignment
from storage.state import BatchTime, Manifest
from tests.elastic.core.world import LEASE, World, installs, messages, state_of


def newer(manifest: Manifest) -> Manifest:
    return replace(manifest, number=manifest.number + 1)


def commit_batch(world: World, batch: int) -> list[commands.Command]:
    time = BatchTime(batch, 1_000)
    world.hear(events.BatchLogged(Batch(batch), (), time))
    manifest = newer(world.coordinator.manifest.with_batch(batch, 0, True, (), time))
    return world.hear(events.RoundCommitted(manifest, Batch(batch), 0, (), True, time))


def apply(world: World, node: str, batch: int) -> list[commands.Command]:
    """Let a node report a step; the key of its results has the name of its incarnation."""
    units = tuple(world.coordinator.placement.units_on(node))
    numbers = tuple(unit.number for unit in units)
    results = ResultRef(f"results of {world.incarnation(node)}", batch, 0, numbers, 1, 1)
    return world.report(StepApplied, node, Position(Batch(batch), 0), units, results=results)


def published(decided: list[commands.Command]) -> list[int]:
    return [one.batch for one in decided if isinstance(one, commands.PublishResults)]


def test_results_are_published_when_every_unit_has_applied_the_batch() -> None:
    world = World()
    commit_batch(world, 0)
    assert published(apply(world, "node-1", 0)) == []
    assert published(apply(world, "node-2", 0)) == [0]
    assert world.coordinator.view().pending_batches == 1
    world.hear(events.ResultsPublished(Batch(0)))
    assert world.coordinator.view().is_idle


@pytest.mark.parametrize(
    ("emitting", "complete"), [([False, False], True), ([True, False], False), ([False, True], False)]
)
def test_a_batch_goes_on_if_any_stage_may_emit(emitting: list[bool], complete: bool) -> None:
    """Rows of an input may come to any stage, and timers fire in all of them in the first round."""
    routing = Routing.by_hash(Assignment.even(tasks=4, nodes=1))
    manifest = Manifest.first([*routing.units(0), *routing.units(1)])
    coordinator = Coordinator(manifest, routing, Batch(-1), emitting, ["node-1"])
    decided = coordinator.handle(events.BatchLogged(Batch(0), (), BatchTime(0, 1_000)))
    assert [one.complete for one in decided if isinstance(one, commands.CommitRound)] == [complete]


def test_reports_that_overtake_the_one_before_are_taken_in_order() -> None:
    world = World()
    commit_batch(world, 0)
    commit_batch(world, 1)
    apply(world, "node-1", 1)
    unit = UnitId(0, 0)
    assert world.coordinator.batches.reported(unit) < Position(Batch(0), 0)
    assert not world.coordinator.batches.has_reported(unit, 1)
    apply(world, "node-2", 0)
    apply(world, "node-2", 1)
    assert published(apply(world, "node-1", 0)) == [0]
    assert world.coordinator.batches.reported(unit) == Position(Batch(1), 0)
    assert published(world.hear(events.ResultsPublished(Batch(0)))) == [1]


def test_early_reports_of_a_node_that_is_lost_are_dropped_with_it() -> None:
    world = World()
    commit_batch(world, 0)
    commit_batch(world, 1)
    apply(world, "node-1", 1)
    world.lose("node-1")
    world.join("node-1")
    for node in ("node-1", "node-2"):
        apply(world, node, 0)
        apply(world, node, 1)
    [publish] = world.hear(events.ResultsPublished(Batch(0)))
    assert isinstance(publish, commands.PublishResults)
    current = {f"results of {world.incarnation(node)}" for node in ("node-1", "node-2")}
    assert {ref.key for ref in publish.results} == current


def test_reports_of_an_incarnation_that_was_replaced_are_ignored() -> None:
    world = World()
    commit_batch(world, 0)
    old, units = world.incarnation("node-1"), tuple(world.coordinator.placement.units_on("node-1"))
    world.lose("node-1")
    world.join("node-1")
    apply(world, "node-2", 0)
    assert world.hear(StepApplied("node-1", old, Position(Batch(0), 0), units)) == []
    assert world.hear(NodeFailed("node-1", old, {})) == []
    assert published(apply(world, "node-1", 0)) == [0]


def test_the_loss_of_an_incarnation_that_was_replaced_changes_nothing() -> None:
    world = World()
    old = world.incarnation("node-1")
    world.lose("node-1")
    current = world.incarnation("node-1")
    assert world.hear(events.NodeLost("node-1", old, "its process died")) == []
    assert world.incarnation("node-1") == current
    assert world.coordinator.view().losses == 1


def test_reports_of_a_node_without_units_are_ignored() -> None:
    world = World()
    commit_batch(world, 0)
    world.lose("node-1")
    apply(world, "node-1", 0)  # it has not even joined
    world.report(NodeJoined, "node-1", "an address")
    apply(world, "node-1", 0)
    world.report(NodeFailed, "node-1", {})
    assert world.coordinator.failure is None
    assert published(apply(world, "node-2", 0)) == []


def test_no_two_incarnations_of_a_node_have_the_same_name() -> None:
    world = World()
    names = [world.incarnation("node-1")]
    for _ in range(3):
        world.lose("node-1")
        names.append(world.incarnation("node-1"))
    assert len(set(names)) == 4


def test_an_incarnation_joins_once() -> None:
    world = World()
    assert world.report(NodeJoined, "node-1", "another address") == []
    assert world.coordinator.view().addresses()["node-1"] == "address of node-1"


def snapshot(world: World) -> list[commands.Command]:
    """Take a snapshot of the two nodes; return what is decided when the last one has answered."""
    assert world.hear(events.SnapshotDue()) == [commands.OpenSnapshotLease()]
    [(first, _)] = messages(world.hear(events.SnapshotLeaseOpened(LEASE)), TakeSnapshot)
    decided = world.report(SnapshotTaken, first, LEASE, (state_of(UnitId(0, 0), 0),))
    [(second, _)] = messages(decided, TakeSnapshot)
    return world.report(SnapshotTaken, second, LEASE)


def applied_world() -> World:
    world = World()
    commit_batch(world, 0)
    apply(world, "node-1", 0)
    apply(world, "node-2", 0)
    world.hear(events.ResultsPublished(Batch(0)))
    return world


def test_no_units_are_installed_while_a_snapshot_is_committed() -> None:
    world = applied_world()
    [commit] = snapshot(world)
    assert isinstance(commit, commands.CommitStates)
    assert [ref.unit for ref in commit.states] == [UnitId(0, 0)]
    world.lose("node-1")
    assert messages(world.join("node-1"), InstallUnits) == []
    manifest = newer(world.coordinator.manifest.with_states(commit.states, unchanged={}, published=0))
    [(node, install)] = messages(world.hear(events.StatesCommitted(manifest, LEASE)), InstallUnits)
    assert node == "node-1"
    assert [(handle.unit.task, handle.state) for handle in install.units] == [(0, commit.states[0]), (1, None)]


def test_a_snapshot_that_failed_lets_units_be_installed_and_the_next_one_begin() -> None:
    world = applied_world()
    snapshot(world)
    world.lose("node-1")
    world.join("node-1")
    assert installs(world.hear(events.SnapshotFailed("the store is away"))) == [("node-1", (0, 1))]
    assert world.coordinator.view().snapshots_ended == 1
    assert world.hear(events.SnapshotDue()) == [commands.OpenSnapshotLease()]


def test_there_is_one_snapshot_at_a_time_and_none_without_nodes() -> None:
    world = World()
    assert world.hear(events.SnapshotDue()) == [commands.OpenSnapshotLease()]
    assert world.hear(events.SnapshotDue()) == []
    world = World()
    world.hear(events.StopAllRequested())
    assert world.hear(events.SnapshotDue()) == []


def test_a_node_that_owns_units_stays_and_one_that_owns_none_stops() -> None:
    world = World(nodes=["node-1", "node-2", "node-3"])
    assert world.hear(events.StopRequested("node-1")) == []
    incarnation = world.incarnation("node-3")
    assert world.hear(events.StopRequested("node-3")) == [commands.StopNode("node-3", incarnation)]
    assert world.hear(events.StopRequested("node-3")) == []


def test_all_nodes_stop_and_their_owners_start_again_with_new_incarnations() -> None:
    world = World()
    before = {node.incarnation for node in world.coordinator.view().nodes}
    world.hear(events.StopAllRequested())
    assert world.coordinator.view().nodes == ()
    started = world.hear(events.StartOwnersRequested())
    assert [one.node for one in started if isinstance(one, commands.StartNode)] == ["node-1", "node-2"]
    assert before.isdisjoint(node.incarnation for node in world.coordinator.view().nodes)


def test_after_a_failure_nothing_is_decided() -> None:
    world = World()
    [fail] = world.report(NodeFailed, "node-1", {"type": "OperatorFailed"})
    assert isinstance(fail, commands.FailJob)
    assert world.lose("node-1") == []
    assert world.hear(events.SnapshotDue()) == []


def test_a_node_that_fails_to_start_is_counted_until_it_joins() -> None:
    world = World()
    world.lose("node-1")
    for attempts in (1, 2):
        world.report(events.NodeLost, "node-1", "OSError: no licence", failed=True)
        failed = world.coordinator.view().failed_starts["node-1"]
        assert (failed.attempts, failed.reason) == (attempts, "OSError: no licence")
    world.join("node-1")
    assert world.coordinator.view().failed_starts == {}


def handles_after_a_loss(world: World) -> tuple[list[int], list[int]]:
    """Lose a node after batch 0 was published, 1 applied and 2 committed; return what its units begin after, and with.

    Nothing was saved meanwhile.
    """
    for batch in range(3):
        commit_batch(world, batch)
    for batch in range(2):
        for node in ("node-1", "node-2"):
            apply(world, node, batch)
    world.hear(events.ResultsPublished(Batch(0)))
    world.lose("node-1")
    [(_, message)] = messages(world.join("node-1"), InstallUnits)
    return [handle.through for handle in message.units], [step.batch for step in message.steps]


def test_a_unit_without_state_repeats_no_batch_that_it_has_reported() -> None:
    assert handles_after_a_loss(World(stateless=[0])) == ([1, 1], [2])


def test_a_unit_with_state_repeats_all_batches_since_its_saved_state() -> None:
    assert handles_after_a_loss(World()) == ([-1, -1], [0, 1, 2])


def test_a_unit_without_state_repeats_all_rounds_of_a_batch_that_is_not_complete() -> None:
    """Its rounds may have come from other units that are repeated, too; their output is dropped."""
    world = World(stateless=[0])
    time = BatchTime(0, 1_000)
    world.coordinator.batches._emitting = [True]
    manifest = newer(world.coordinator.manifest.with_batch(0, 0, False, (), time))
    world.hear(events.RoundCommitted(manifest, Batch(0), 0, (), False, time))
    apply(world, "node-1", 0)
    unit = world.coordinator.placement.units_on("node-1")[0]
    assert world.coordinator.batches.reported(unit) == Position(Batch(0), 0)
    assert world.coordinator.batches.reported_batch(unit) == -1


def test_units_without_state_in_a_saved_state_begin_there() -> None:
    """An operator that had state before the job was upgraded: what is saved is loaded as ever."""
    world = World(stateless=[0])
    commit_batch(world, 0)
    for node in ("node-1", "node-2"):
        apply(world, node, 0)
    unit = UnitId(0, 0)
    saved = replace(world.coordinator.manifest, units=world.coordinator.manifest.units.with_states([state_of(unit)]))
    world.coordinator.manifest = saved
    handle = world.coordinator._create_saved_handle(unit)
    assert (handle.state, handle.through) == (state_of(unit), world.coordinator._through(unit))
