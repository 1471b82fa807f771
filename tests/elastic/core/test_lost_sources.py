"""A source that is lost while states are on their way from node to node: who is told what, whatever comes first."""

from typing import Any

import pytest

from elastic.core import commands, events
from elastic.core.ids import UnitId
from elastic.core.messages import InstallUnits, StateStored, UnitHandle, UnitsInstalled, UnitsReleased
from tests.elastic.core.world import World, messages, moves_to, request_of, scattered, state_of

UNIT = UnitId(0, 1)
STATE = state_of(UNIT)


class Nodes(World):
    """Two nodes, and task 1 on its way from the first to the second, straight."""

    def __init__(self) -> None:
        super().__init__()
        target = scattered([0, 1, 1, 1])
        self.begin(request_of(self.current, target, [moves_to(self.current, target)], direct=True))

    def install_after(self, kind: Any, node: str, *facts: Any, **more: Any) -> list[UnitHandle]:
        """Return the units that a node is told to install because of a report."""
        found: list[tuple[str, InstallUnits]] = messages(self.report(kind, node, *facts, **more), InstallUnits)
        return [handle for _, message in found for handle in message.units]


@pytest.fixture
def nodes() -> Nodes:
    return Nodes()


def test_a_target_fetches_from_the_source_while_that_lives(nodes: Nodes) -> None:
    [held] = nodes.install_after(UnitsReleased, "node-1", (STATE,), stored=False)
    assert (held.unit.task, held.state, held.source) == (1, STATE, "address of node-1")


def test_a_state_that_only_a_lost_source_had_is_not_waited_for(nodes: Nodes) -> None:
    nodes.install_after(UnitsReleased, "node-1", (STATE,), stored=False)
    [held] = nodes.install_after(events.NodeLost, "node-1", "crashed")
    assert (held.unit.task, held.state, held.source) == (1, None, None)


@pytest.mark.parametrize("order", ["stored first", "released first"])
def test_a_state_that_a_lost_source_has_stored_is_read_from_the_store(nodes: Nodes, order: str) -> None:
    if order == "stored first":
        nodes.install_after(StateStored, "node-1", STATE)
    nodes.install_after(UnitsReleased, "node-1", (STATE,), stored=False)
    if order == "released first":
        nodes.install_after(StateStored, "node-1", STATE)
    [held] = nodes.install_after(events.NodeLost, "node-1", "crashed")
    assert (held.unit.task, held.state, held.source) == (1, STATE, None)


def test_a_report_of_an_incarnation_that_was_replaced_makes_nothing_durable(nodes: Nodes) -> None:
    old = nodes.incarnation("node-1")
    nodes.install_after(UnitsReleased, "node-1", (STATE,), stored=False)
    nodes.install_after(events.NodeLost, "node-1", "crashed")
    assert nodes.hear(StateStored("node-1", old, STATE)) == []
    assert nodes.coordinator.placement.released_state(UNIT) is None


def test_a_source_that_is_lost_when_the_target_works_changes_nothing(nodes: Nodes) -> None:
    nodes.install_after(UnitsReleased, "node-1", (STATE,), stored=False)
    nodes.install_after(UnitsInstalled, "node-2", (UNIT,), 10)
    assert nodes.install_after(events.NodeLost, "node-1", "crashed") == []


def test_when_both_are_lost_the_next_target_begins_with_what_was_saved(nodes: Nodes) -> None:
    nodes.install_after(UnitsReleased, "node-1", (STATE,), stored=False)
    nodes.lose("node-2")
    nodes.lose("node-1")
    [(node, install)] = messages(nodes.join("node-2"), InstallUnits)
    assert node == "node-2"
    assert {(held.unit.task, held.state, held.source) for held in install.units} == {
        (task, None, None) for task in (1, 2, 3)
    }


def test_a_target_that_is_not_there_is_started() -> None:
    world, target = World(), scattered([2, 0, 1, 1])
    world.begin(request_of(world.current, target, [moves_to(world.current, target)]))
    decided = world.release("node-1", 0)
    assert [one.node for one in decided if isinstance(one, commands.StartNode)] == ["node-3"]
