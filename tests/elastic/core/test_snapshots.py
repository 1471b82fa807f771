"""A snapshot goes from node to node in turns, and commits no state whose unit may still need the log before it."""

from elastic.core import events
from elastic.core.commands import CommitStates, OpenSnapshotLease
from elastic.core.ids import NO_BATCH, Batch
from elastic.core.messages import SnapshotTaken, UnchangedUnit
from elastic.core.snapshots import Snapshots
from migration import Assignment
from storage.state import Manifest, StateRef, UnitId
from tests.elastic.core.world import World

UNITS = Manifest.first([UnitId(0, task) for task in range(4)]).units
LEASE = "000000000001-000000001-ab"
NODES = [f"node-{number}" for number in range(1, 17)]


def state(task: int, batch: int) -> StateRef:
    return StateRef(f"operators/job/state/{LEASE}/task-{task}-{batch}-x.state", UnitId(0, task), batch, 10, LEASE)


def saved(node: str, *states: StateRef, unchanged: tuple[UnchangedUnit, ...] = ()) -> SnapshotTaken:
    return SnapshotTaken(node, f"{node}.1", LEASE, states, unchanged)


def begun(nodes: list[str]) -> Snapshots:
    snapshots = Snapshots(lambda _: NO_BATCH)
    snapshots.request()
    assert snapshots.begin_if_due() == [OpenSnapshotLease()]
    snapshots.lease_opened(LEASE, nodes)
    return snapshots


def asked(snapshots: Snapshots) -> list[str]:
    """All whose turn it is now."""
    found = []
    while (turn := snapshots.next_to_ask()) is not None:
        found.append(turn[0])
    return found


def committed(snapshots: Snapshots, published: int = 100) -> set[StateRef] | None:
    """What is committed now; None if it is not over."""
    decided = snapshots.commit_if_complete(Batch(published), UNITS)
    if not decided:
        return None
    [command] = decided
    assert isinstance(command, CommitStates)
    return set(command.states)


def test_an_eighth_of_the_nodes_is_at_it_at_a_time() -> None:
    snapshots = begun(NODES)
    assert asked(snapshots) == ["node-1", "node-2"]
    assert asked(snapshots) == []
    snapshots.snapshot_taken(saved("node-2"))
    assert asked(snapshots) == ["node-3"]
    assert committed(snapshots) is None
    assert asked(begun(NODES[:1])) == ["node-1"]


def test_it_ends_when_the_last_node_has_answered_or_is_lost() -> None:
    snapshots = begun(["node-1", "node-2"])
    assert asked(snapshots) == ["node-1"]
    snapshots.node_lost("node-2", [])
    assert committed(snapshots) is None
    snapshots.snapshot_taken(saved("node-1", state(0, 5)))
    assert asked(snapshots) == []
    assert committed(snapshots) == {state(0, 5)}


def test_of_a_unit_that_moved_on_the_newer_state_counts() -> None:
    snapshots = begun(["node-1", "node-2"])
    asked(snapshots)
    snapshots.snapshot_taken(saved("node-1", state(0, 5), state(1, 5)))
    asked(snapshots)
    snapshots.snapshot_taken(
        saved("node-2", state(0, 7), unchanged=(UnchangedUnit(UnitId(0, 1), Batch(-1), Batch(9)),))
    )
    assert committed(snapshots) == {state(0, 7), state(1, 5)}


def test_nothing_is_committed_of_units_that_a_lost_node_told_of_or_had() -> None:
    snapshots = begun(["node-1", "node-2"])
    asked(snapshots)
    snapshots.snapshot_taken(saved("node-1", state(0, 5), state(1, 5)))
    asked(snapshots)
    snapshots.snapshot_taken(saved("node-2", state(2, 6), state(3, 6)))
    snapshots.node_lost("node-2", [UnitId(0, 1)])  # it had taken unit 1 over, and given unit 3 away
    assert committed(snapshots) == {state(0, 5)}


def test_states_wait_until_their_results_are_visible() -> None:
    snapshots = begun(["node-1"])
    asked(snapshots)
    snapshots.snapshot_taken(saved("node-1", state(0, 5)))
    assert committed(snapshots, published=4) is None
    assert committed(snapshots, published=5) == {state(0, 5)}


def test_a_snapshot_that_is_due_while_no_node_has_units_begins_when_one_has() -> None:
    world = World(Assignment.even(4, 1))
    world.lose("node-1")
    assert world.hear(events.SnapshotDue()) == []
    assert OpenSnapshotLease() in world.join("node-1")
    assert OpenSnapshotLease() not in world.hear(events.SnapshotDue())  # one is under way


def test_a_snapshot_that_is_due_while_one_is_under_way_is_not_repeated_after_it() -> None:
    snapshots = begun(["node-1"])
    snapshots.request()
    snapshots.end()
    assert snapshots.begin_if_due() == []
