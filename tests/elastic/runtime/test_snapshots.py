"""A snapshot goes from node to node in turns, and commits nothing that somebody may still need the log for."""

from elastic.runtime.protocol import Saved, Unchanged
from elastic.runtime.protocol.commands import CommitStates
from elastic.runtime.protocol.snapshots import Snapshots
from storage.state import Manifest, StateRef, Unit

UNITS = Manifest.first([Unit.of_task(task) for task in range(4)]).units
LEASE = "000000000001-000000001-ab"
NODES = [f"node-{number}" for number in range(1, 17)]


def state(task: int, batch: int) -> StateRef:
    return StateRef(f"operators/job/state/{LEASE}/task-{task}-{batch}-x.state", Unit.of_task(task), batch, 10, LEASE)


def saved(node: str, *states: StateRef, unchanged: tuple[Unchanged, ...] = ()) -> Saved:
    return Saved(node, f"{node}.1", LEASE, states, unchanged)


def begun(nodes: list[str]) -> Snapshots:
    snapshots = Snapshots(lambda _: -1)
    snapshots.begin()
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
    decided = snapshots.finish(published, UNITS)
    if not decided:
        return None
    [command] = decided
    assert isinstance(command, CommitStates)
    return set(command.states)


def test_an_eighth_of_the_nodes_is_at_it_at_a_time() -> None:
    snapshots = begun(NODES)
    assert asked(snapshots) == ["node-1", "node-2"]
    assert asked(snapshots) == []
    snapshots.saved(saved("node-2"))
    assert asked(snapshots) == ["node-3"]
    assert committed(snapshots) is None
    assert len(begun(NODES[:1])._run.to_ask) == 1  # type: ignore[union-attr]


def test_it_ends_when_the_last_node_has_answered_or_is_lost() -> None:
    snapshots = begun(["node-1", "node-2"])
    assert asked(snapshots) == ["node-1"]
    snapshots.lost("node-2", [])
    assert committed(snapshots) is None
    snapshots.saved(saved("node-1", state(0, 5)))
    assert asked(snapshots) == []
    assert committed(snapshots) == {state(0, 5)}


def test_of_a_unit_that_moved_on_the_newer_state_counts() -> None:
    snapshots = begun(["node-1", "node-2"])
    asked(snapshots)
    snapshots.saved(saved("node-1", state(0, 5), state(1, 5)))
    asked(snapshots)
    snapshots.saved(saved("node-2", state(0, 7), unchanged=(Unchanged(1, -1, 9),)))
    assert committed(snapshots) == {state(0, 7), state(1, 5)}


def test_nothing_is_committed_of_units_that_a_lost_node_told_of_or_had() -> None:
    snapshots = begun(["node-1", "node-2"])
    asked(snapshots)
    snapshots.saved(saved("node-1", state(0, 5), state(1, 5)))
    asked(snapshots)
    snapshots.saved(saved("node-2", state(2, 6), state(3, 6)))
    snapshots.lost("node-2", [1])  # it had taken unit 1 over, and given unit 3 away
    assert committed(snapshots) == {state(0, 5)}


def test_states_wait_until_their_results_are_visible() -> None:
    snapshots = begun(["node-1"])
    asked(snapshots)
    snapshots.saved(saved("node-1", state(0, 5)))
    assert committed(snapshots, published=4) is None
    assert committed(snapshots, published=5) == {state(0, 5)}
