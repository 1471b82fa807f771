"""What every routing promises, for the one we have and for minimal versions of two more."""

import json

import numpy as np
import pyarrow as pa
import pytest

from elastic.errors import InvalidJob
from elastic.routing import ROUTINGS, IntervalRouting, Routing, routing_from_json, split
from migration import Assignment, ScatteredAssignment
from storage.state import UnitId
from tests.elastic.routing.example_routings import KeyTableRouting, TwoChoicesRouting

NODES = ("node-1", "node-2", "node-3")
HASHES = np.random.default_rng(5).integers(-(2**63), 2**63 - 1, 2_000)
HOT = int(HASHES[17])
# Every second row is of one key.
SKEWED = np.where(np.arange(len(HASHES)) % 2, HASHES, HOT)

ROUTINGS_UNDER_TEST: dict[str, Routing] = {
    "intervals": IntervalRouting(Assignment(NODES, (0, 5, 5, 16)), epoch=3),
    "scattered": IntervalRouting(ScatteredAssignment(NODES, tuple(task % 3 for task in range(16))), epoch=3),
    "key-table": KeyTableRouting(NODES, 16, {HOT: "node-3", int(HASHES[1]): "node-1"}, epoch=3),
    "two-choices": TwoChoicesRouting(NODES, 16, epoch=3),
}


@pytest.fixture(params=ROUTINGS_UNDER_TEST)
def routing(request: pytest.FixtureRequest) -> Routing:
    return ROUTINGS_UNDER_TEST[request.param]


@pytest.fixture
def _example_routings(monkeypatch: pytest.MonkeyPatch) -> None:
    for toy in (KeyTableRouting, TwoChoicesRouting):
        monkeypatch.setitem(ROUTINGS, toy.kind, toy)


@pytest.mark.parametrize("stage", [0, 2])
def test_every_row_goes_to_a_unit_of_its_stage(routing: Routing, stage: int) -> None:
    numbers = routing.unit_numbers(SKEWED, stage)
    assert numbers.dtype == np.int64
    assert len(numbers) == len(SKEWED)
    assert set(numbers.tolist()) <= {unit.number for unit in routing.units(stage)}
    assert {unit.stage for unit in routing.units(stage)} == {stage}


def test_a_unit_is_on_exactly_the_nodes_that_own_it(routing: Routing) -> None:
    units_on = {node: routing.units_on(node, [2, 0]) for node in NODES}
    for unit in [*routing.units(0), *routing.units(2)]:
        assert routing.owners(unit)
        assert set(routing.owners(unit)) == {node for node in NODES if unit in units_on[node]}
    assert all(units == sorted(units) for units in units_on.values())
    assert routing.units_on("node-9", [0]) == []


def test_all_rows_of_a_unit_reach_all_its_owners_in_order(routing: Routing) -> None:
    rows = pa.table({"hash": SKEWED, "position": np.arange(len(SKEWED))})
    numbers = routing.unit_numbers(SKEWED, 1)
    shares = split(rows, numbers).for_node(routing)
    for node in NODES:
        owned = [unit.number for unit in routing.units_on(node, [1]) if unit.number in numbers]
        expected = {number: np.flatnonzero(numbers == number).tolist() for number in owned}
        slices = shares[node].slices() if node in shares else {}
        assert {number: rows["position"].to_pylist() for number, rows in slices.items()} == expected


@pytest.mark.usefixtures("_example_routings")
def test_a_routing_survives_a_round_trip_through_json(routing: Routing) -> None:
    restored = routing_from_json(json.loads(json.dumps(routing.to_json())))
    assert type(restored) is type(routing)
    assert restored == routing
    assert restored.epoch == 3


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(InvalidJob, match="'by-magic', only 'intervals'"):
        routing_from_json({"kind": "by-magic"})


def test_interval_routing_takes_the_hash_modulo_the_tasks() -> None:
    routing = ROUTINGS_UNDER_TEST["intervals"]
    assert routing.unit_numbers(HASHES, 0).tolist() == [value % 16 for value in HASHES.tolist()]
    assert routing.owners(UnitId(0, 4)) == ("node-1",)
    assert routing.owners(UnitId(0, 5)) == ("node-3",)
    assert routing.units_on("node-2", range(3)) == []


def test_more_tasks_than_a_stage_can_number_are_refused() -> None:
    with pytest.raises(InvalidJob, match="1,048,576"):
        IntervalRouting(Assignment.even(2**20 + 1, 2))


def test_a_listed_key_leaves_the_other_keys_of_its_task_alone() -> None:
    routing = ROUTINGS_UNDER_TEST["key-table"]
    numbers = routing.unit_numbers(SKEWED, 0)
    assert set(numbers[SKEWED == HOT].tolist()) == {16}
    assert (numbers[SKEWED != HOT] != 16).all()
    assert routing.owners(UnitId(0, 16)) == ("node-3",)


def test_two_choices_halve_the_load_of_a_hot_key() -> None:
    routing = TwoChoicesRouting(NODES, 16)
    tasks = routing.unit_numbers(np.full(1_000, HOT), 0).tolist()
    assert sorted(map(tasks.count, routing.choices(HOT))) == [500, 500]
