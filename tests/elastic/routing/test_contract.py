"""What every routing promises, for the one we have and for toys of two that will come."""

import json

import numpy as np
import pyarrow as pa
import pytest

from elastic.errors import InvalidJob
from elastic.routing import ROUTINGS, IntervalRouting, Routing, routing_from_json, split, stage_of
from migration import Assignment, ScatteredAssignment
from tests.elastic.routing.toys import KeyTableRouting, TwoChoicesRouting

NODES = ("node-1", "node-2", "node-3")
HASHES = np.random.default_rng(5).integers(-(2**63), 2**63 - 1, 2_000)
HOT = int(HASHES[17])
# Every second row is of one key.
SKEWED = np.where(np.arange(len(HASHES)) % 2, HASHES, HOT)

MADE: dict[str, Routing] = {
    "intervals": IntervalRouting(Assignment.of_lengths([5, 0, 11], NODES), epoch=3),
    "scattered": IntervalRouting(ScatteredAssignment(NODES, tuple(task % 3 for task in range(16))), epoch=3),
    "key-table": KeyTableRouting(NODES, 16, {HOT: "node-3", int(HASHES[1]): "node-1"}, epoch=3),
    "two-choices": TwoChoicesRouting(NODES, 16, epoch=3),
}


@pytest.fixture(params=MADE)
def routing(request: pytest.FixtureRequest) -> Routing:
    return MADE[request.param]


@pytest.fixture
def _all_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for toy in (KeyTableRouting, TwoChoicesRouting):
        monkeypatch.setitem(ROUTINGS, toy.kind, toy)


@pytest.mark.parametrize("stage", [0, 2])
def test_every_row_goes_to_a_slot_of_its_stage(routing: Routing, stage: int) -> None:
    slots = routing.slots_of(SKEWED, stage)
    assert slots.dtype == np.int64
    assert len(slots) == len(SKEWED)
    assert set(slots.tolist()) <= set(routing.slots(stage))
    assert {stage_of(slot) for slot in routing.slots(stage)} == {stage}


def test_a_slot_is_on_exactly_the_nodes_that_own_it(routing: Routing) -> None:
    on = {node: routing.slots_on(node, [2, 0]) for node in NODES}
    for slot in [*routing.slots(0), *routing.slots(2)]:
        assert routing.owners(slot)
        assert set(routing.owners(slot)) == {node for node in NODES if slot in on[node]}
    assert all(slots == sorted(slots) for slots in on.values())
    assert routing.slots_on("node-9", [0]) == []


def test_different_slots_have_different_units(routing: Routing) -> None:
    slots = [*routing.slots(0), *routing.slots(1)]
    assert len({routing.unit(slot) for slot in slots}) == len(slots)


def test_all_rows_of_a_slot_reach_all_its_owners_in_order(routing: Routing) -> None:
    rows = pa.table({"hash": SKEWED, "number": np.arange(len(SKEWED))})
    slots = routing.slots_of(SKEWED, 1)
    shares = split(rows, slots).for_node(routing)
    for node in NODES:
        expected = {
            slot: np.flatnonzero(slots == slot).tolist() for slot in routing.slots_on(node, [1]) if slot in slots
        }
        got = shares[node].slices() if node in shares else {}
        assert {slot: piece["number"].to_pylist() for slot, piece in got.items()} == expected


@pytest.mark.usefixtures("_all_registered")
def test_a_routing_travels_as_json(routing: Routing) -> None:
    travelled = routing_from_json(json.loads(json.dumps(routing.to_json())))
    assert type(travelled) is type(routing)
    assert travelled == routing
    assert (travelled.epoch, travelled.wants_heavy_hitters) == (3, routing.wants_heavy_hitters)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(InvalidJob, match="'by-magic', only 'intervals'"):
        routing_from_json({"kind": "by-magic"})


def test_interval_routing_is_the_hash_modulo_the_tasks() -> None:
    routing = MADE["intervals"]
    assert routing.slots_of(HASHES, 0).tolist() == [value % 16 for value in HASHES.tolist()]
    assert routing.owners(4) == ("node-1",)
    assert routing.owners(5) == ("node-3",)
    assert routing.slots_on("node-2", range(3)) == []


def test_more_tasks_than_a_stage_can_number_are_refused() -> None:
    with pytest.raises(InvalidJob, match="1,048,576"):
        IntervalRouting(Assignment.even(2**20 + 1, 2))


def test_a_listed_key_leaves_the_other_keys_of_its_task_alone() -> None:
    routing = MADE["key-table"]
    slots = routing.slots_of(SKEWED, 0)
    assert set(slots[SKEWED == HOT].tolist()) == {16}
    assert (slots[SKEWED != HOT] != 16).all()
    assert routing.owners(16) == ("node-3",)
    assert routing.unit(16).keys == str(HOT)


def test_two_choices_halve_what_a_hot_key_does_to_its_task() -> None:
    routing = TwoChoicesRouting(NODES, 16)
    of_hot_key = routing.slots_of(np.full(1_000, HOT), 0).tolist()
    assert sorted(map(of_hot_key.count, routing.choices(HOT))) == [500, 500]
