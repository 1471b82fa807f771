"""What a node knows of the costs of rows that it sends: the newest costs, its own share of the senders, and turns."""

import numpy as np
import pytest

from elastic.core.ids import Batch
from elastic.core.stage_costs import SHAPE, NodeCosts, StageCosts
from elastic.core.steps import Position
from elastic.node.known_costs import KnownCosts
from elastic.routing import Groupings, Routing
from elastic.routing.shuffle import NO_FORECAST, ExecutionSketch, Forecast
from migration import Assignment

NODES = ("node-1", "node-2", "node-3")
KEYS = np.array([7, 8])


def routing_of(grouping: str) -> Routing:
    return Routing(Assignment.even(6, 3), Groupings.of_kinds(6, ["hash", grouping]))


def costs_of(seconds: float) -> tuple[NodeCosts, ...]:
    """Return the costs of a node on which every row of two cost keys took that long."""
    sketch = ExecutionSketch(SHAPE)
    sketch.add(np.repeat(KEYS, 50), np.full(100, seconds))
    return (NodeCosts("node-1", (StageCosts.of(1, sketch),)),)


def forecast(known: KnownCosts, *, grouping: str = "shuffle:posg", round_: int = 0, node: str = "node-2") -> Forecast:
    return known.forecast(1, Position(Batch(4), round_), routing_of(grouping), node)


def test_rows_are_expected_to_take_what_the_newest_costs_say() -> None:
    known = KnownCosts()
    assert forecast(known).costs is None
    for seconds in (0.25, 0.5):
        known.learn(costs_of(seconds))
        known.learn(None)  # a step without costs changes nothing
        assert forecast(known).estimate(KEYS).tolist() == pytest.approx([seconds] * 2)


def test_each_node_is_one_of_several_senders_and_each_round_has_another_turn() -> None:
    known = KnownCosts()
    known.learn(costs_of(0.25))
    for sender, node in enumerate(NODES):
        share = forecast(known, node=node).share
        assert (share.sender, share.senders) == (sender, 3)
    assert forecast(known, node="node-9").share.sender == 0  # it leaves just now
    assert [forecast(known, round_=number).batch for number in (0, 1, 2)] == [4, 5, 6]


def test_nothing_is_expected_of_stages_that_do_not_choose_by_costs() -> None:
    known = KnownCosts()
    known.learn(costs_of(0.25))
    assert forecast(known, grouping="hash") is NO_FORECAST
    assert forecast(known, grouping="shuffle:round-robin").costs is None
