"""Nodes choose units of a partial stage behind another one by load: they learn who owns what, and what is split."""

from dataclasses import replace
from typing import Any

import pytest

from elastic.core import commands, events
from elastic.core.coordinator import Coordinator
from elastic.core.ids import Batch
from elastic.core.messages import ApplyStep, InstallUnits, NodeJoined
from elastic.routing import HASH, Groupings, PartialGrouping, Routing
from migration import Assignment
from storage.state import BatchTime, Manifest
from tests.elastic.core.world import messages

TASKS = 4


class World:
    """A coordinator with one node; every batch is one round."""

    def __init__(self, *by_stage: Any) -> None:
        routing = Routing(Assignment.even(TASKS, 1), Groupings(TASKS, by_stage))
        units = [unit for stage in range(2) for unit in routing.units(stage)]
        self.coordinator = Coordinator(
            Manifest.first(units, routing.to_json()), routing, Batch(-1), [False, False], ["node-1"]
        )
        self.sent: list[Any] = []
        self.coordinator.start()
        [node] = self.coordinator.view().nodes
        self.hear(NodeJoined(node.name, node.incarnation, "address"))
        self.hear(events.EpochCommitted(self.coordinator.manifest))

    def hear(self, event: Any) -> list[Any]:
        decided = self.coordinator.handle(event)
        self.sent += [message for kind in (InstallUnits, ApplyStep) for _, message in messages(decided, kind)]
        return decided

    def take(self, batch: int) -> Routing | None:
        """Return the routing that a batch comes with."""
        time = BatchTime(batch, 1_000 * batch)
        self.hear(events.BatchLogged(Batch(batch), (), time))
        manifest = self.coordinator.manifest.with_batch(Batch(batch), 0, True, (), time)
        self.hear(events.RoundCommitted(manifest, Batch(batch), 0, (), True, time))
        routing: Routing | None = self.sent[-1].routing
        return routing

    def commit(self, routing: Routing) -> None:
        manifest = replace(self.coordinator.manifest, epoch=routing.epoch, assignment=routing.to_json())
        self.hear(events.SplitCommitted(manifest, routing))


def test_nodes_get_a_new_assignment_once_if_they_choose_by_load() -> None:
    world = World(HASH, PartialGrouping())
    assert world.sent[-1].routing.groupings.nodes_choose
    assert world.take(0) is None
    moved = world.coordinator.view().routing.with_assignment(Assignment.even(TASKS, 2), 1)
    world.coordinator.placement.commit(moved)
    assert world.take(1) == moved
    assert world.take(2) is None


@pytest.mark.parametrize("by_stage", [(), (PartialGrouping(), HASH)])
def test_nodes_that_do_not_choose_need_no_assignment(by_stage: Any) -> None:
    world = World(*by_stage)
    world.coordinator.placement.commit(world.coordinator.view().routing.with_assignment(Assignment.even(TASKS, 2), 1))
    assert world.take(0) is None


def test_a_change_of_split_keys_is_committed_and_reaches_nodes_with_the_next_step() -> None:
    world = World(PartialGrouping("none", "none"), HASH)
    assert commands.CommitSplit(0, "head") in world.hear(events.SplitRequested(0, "head"))
    assert world.take(0) is None
    routing = world.coordinator.view().routing.with_splits(0, "head", 1)
    world.commit(routing)
    assert world.coordinator.view().routing.groupings[0] == PartialGrouping("head", "none")
    assert world.take(1) == routing  # sent by the groupings of before, and committed all the same
    assert world.take(2) is None
