"""A source that is lost while states are on their way from node to node: who is told what, whatever comes first."""

from typing import Any

import pytest

from elastic.routing import IntervalRouting
from elastic.runtime.controller.moving import Moving
from elastic.runtime.protocol import Adopt, Coordinator, Installed, Joined, Released, Stored, commands, events
from migration import Assignment, Workload, moves_between
from migration.live import HandOver, InstallState, MigrationRun
from storage.state import Manifest, StateRef, Unit

LEASE = "000000000001-000000001-ab"
MANIFEST = Manifest.first([Unit.of_task(task) for task in range(4)])
STATE = StateRef(f"operators/job/state/{LEASE}/task-1--1-x.state", Unit.of_task(1), -1, 10, LEASE)


class Nodes:
    """Two nodes that are up, and the task 1 on its way from the first to the second, straight."""

    def __init__(self) -> None:
        current = Assignment.even(tasks=4, nodes=2)
        self.coordinator = Coordinator(MANIFEST, IntervalRouting(current), -1, [False], current.nodes)
        self.moving = Moving(self.coordinator)
        for node, incarnation in self.coordinator.roster.wanted().items():
            self.hear(Joined(node, incarnation, f"address of {node}"))
            self.hear(events.EpochCommitted(self.coordinator.manifest))
        target = Assignment.of_lengths([1, 3])
        moves = moves_between(current, target, Workload([1.0] * 4, [1.0] * 4))
        self.moving.begin(MigrationRun(current, target, [moves]), direct=True)
        self.hear(events.MoveLeaseOpened(LEASE))

    def hear(self, event: Any) -> list[commands.Command]:
        return self.moving.handle(event)

    def says(self, kind: Any, node: str, *facts: Any, **more: Any) -> list[Adopt]:
        heard = self.hear(kind(node, self.coordinator.roster.wanted()[node], *facts, **more))
        return [one.message for one in heard if isinstance(one, commands.Send) and isinstance(one.message, Adopt)]


@pytest.fixture
def nodes() -> Nodes:
    return Nodes()


def test_a_target_fetches_from_the_source_while_that_lives(nodes: Nodes) -> None:
    [adopt] = nodes.says(Released, "node-1", (STATE,), stored=False)
    [held] = adopt.units
    assert (held.slot, held.state, held.source) == (1, STATE, "address of node-1")


def test_a_state_that_only_a_lost_source_had_is_not_waited_for(nodes: Nodes) -> None:
    nodes.says(Released, "node-1", (STATE,), stored=False)
    [adopt] = nodes.says(events.NodeLost, "node-1", "crashed")
    [held] = adopt.units
    assert (held.slot, held.state, held.source) == (1, None, None)


@pytest.mark.parametrize("order", ["stored first", "released first"])
def test_a_state_that_a_lost_source_has_stored_is_read_from_the_store(nodes: Nodes, order: str) -> None:
    if order == "stored first":
        nodes.says(Stored, "node-1", STATE)
    nodes.says(Released, "node-1", (STATE,), stored=False)
    if order == "released first":
        nodes.says(Stored, "node-1", STATE)
    [adopt] = nodes.says(events.NodeLost, "node-1", "crashed")
    [held] = adopt.units
    assert (held.slot, held.state, held.source) == (1, STATE, None)


def test_what_an_incarnation_says_that_does_not_count_any_more_makes_nothing_durable(nodes: Nodes) -> None:
    old = nodes.coordinator.roster.wanted()["node-1"]
    nodes.says(Released, "node-1", (STATE,), stored=False)
    nodes.says(events.NodeLost, "node-1", "crashed")
    assert nodes.hear(Stored("node-1", old, STATE)) == []
    assert nodes.coordinator.placement.released_state(1) is None


def test_a_source_that_is_lost_when_the_target_works_changes_nothing(nodes: Nodes) -> None:
    nodes.says(Released, "node-1", (STATE,), stored=False)
    nodes.says(Installed, "node-2", (1,), 10)
    assert nodes.says(events.NodeLost, "node-1", "crashed") == []


def test_when_both_are_lost_the_next_target_begins_with_what_was_saved(nodes: Nodes) -> None:
    nodes.says(Released, "node-1", (STATE,), stored=False)
    nodes.says(events.NodeLost, "node-2", "crashed")
    nodes.says(events.NodeLost, "node-1", "crashed")
    nodes.says(Joined, "node-2", "address of node-2")
    [adopt] = [
        one.message
        for one in nodes.hear(events.EpochCommitted(nodes.coordinator.manifest))
        if isinstance(one, commands.Send) and isinstance(one.message, Adopt)
    ]
    assert {(held.slot, held.state, held.source) for held in adopt.units} == {(slot, None, None) for slot in (1, 2, 3)}


def test_a_target_that_is_not_there_is_started(nodes: Nodes) -> None:
    hand_over = HandOver("node-1", "node-3", (0,), 1.0)
    decided = nodes.hear(InstallState(hand_over))
    assert [one.node for one in decided if isinstance(one, commands.StartNode)] == ["node-3"]
