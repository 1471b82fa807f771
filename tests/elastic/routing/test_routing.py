"""What every routing promises, whatever its groupings, assignment and standbys."""

import json
import pickle

import numpy as np
import pyarrow as pa
import pytest

from elastic.errors import InvalidJob
from elastic.routing import HASH, Groupings, KeyTable, Routing, TableGrouping, split
from migration import Assignment, ScatteredAssignment
from storage.state import UnitId

NODES = ("node-1", "node-2", "node-3")
HASHES = np.random.default_rng(5).integers(-(2**63), 2**63 - 1, 2_000)
HOT = int(HASHES[17])
# Every second row is of one key.
SKEWED = np.where(np.arange(len(HASHES)) % 2, HASHES, HOT)
INTERVALS = Assignment(NODES, (0, 5, 5, 16))
TABLE = TableGrouping(KeyTable.from_entries({HOT: 15, int(HASHES[1]): 2}))
STANDBYS = tuple((("node-2",) if task % 2 else ()) for task in range(16))

ROUTINGS_UNDER_TEST: dict[str, Routing] = {
    "intervals": Routing.by_hash(INTERVALS, epoch=3),
    "scattered": Routing.by_hash(ScatteredAssignment(NODES, tuple(task % 3 for task in range(16))), epoch=3),
    "table": Routing(INTERVALS, Groupings(16, (TABLE, HASH, TableGrouping()), epoch=2), epoch=3),
    "standbys": Routing(INTERVALS, Groupings(16), 3, STANDBYS),
    "table and standbys": Routing(INTERVALS, Groupings(16, (HASH, TABLE), epoch=1), 3, STANDBYS),
}


@pytest.fixture(params=ROUTINGS_UNDER_TEST)
def routing(request: pytest.FixtureRequest) -> Routing:
    return ROUTINGS_UNDER_TEST[request.param]


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_every_row_goes_to_a_unit_of_its_stage(routing: Routing, stage: int) -> None:
    numbers = routing.unit_numbers(SKEWED, stage)
    assert numbers.dtype == np.int64
    assert len(numbers) == len(SKEWED)
    assert set(numbers.tolist()) <= {unit.number for unit in routing.units(stage)}
    assert {unit.stage for unit in routing.units(stage)} == {stage}
    assert [routing.groupings.unit_of(key, stage).number for key in SKEWED[:50].tolist()] == numbers[:50].tolist()


def test_a_unit_is_on_exactly_the_nodes_that_own_it(routing: Routing) -> None:
    units_on = {node: routing.units_on(node, [2, 0]) for node in NODES}
    for unit in [*routing.units(0), *routing.units(2)]:
        assert routing.owners(unit)[0] == routing.assignment.owners[unit.task]
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


def test_a_routing_survives_a_round_trip_through_json_and_pickle(routing: Routing) -> None:
    restored = Routing.from_json(json.loads(json.dumps(routing.to_json())))
    assert restored == routing
    assert (restored.epoch, restored.groupings.epoch) == (3, routing.groupings.epoch)
    assert pickle.loads(pickle.dumps(routing)) == routing  # noqa: S301 # our own bytes


def test_the_document_of_hashed_stages_is_that_of_earlier_versions() -> None:
    document = {"kind": "intervals", "epoch": 3, "assignment": INTERVALS.to_dict()}
    assert json.dumps(ROUTINGS_UNDER_TEST["intervals"].to_json()) == json.dumps(document)


@pytest.mark.parametrize("kind", ["by-magic", None])
def test_an_unknown_kind_is_refused(kind: str | None) -> None:
    with pytest.raises(InvalidJob, match="only 'intervals' and 'grouped'"):
        Routing.from_json({"kind": kind})


def test_a_hashed_row_is_in_the_task_of_its_hash() -> None:
    routing = ROUTINGS_UNDER_TEST["intervals"]
    assert routing.unit_numbers(HASHES, 0).tolist() == [value % 16 for value in HASHES.tolist()]
    assert routing.owners(UnitId(0, 4)) == ("node-1",)
    assert routing.owners(UnitId(0, 5)) == ("node-3",)
    assert routing.units_on("node-2", range(3)) == []


def test_a_key_of_the_table_is_a_guest_and_leaves_the_other_keys_of_its_task_alone() -> None:
    routing = ROUTINGS_UNDER_TEST["table"]
    numbers = routing.unit_numbers(SKEWED, 0)
    hashed = ROUTINGS_UNDER_TEST["intervals"].unit_numbers(SKEWED, 0)
    guests = UnitId(0, 15, guests=True)
    assert set(numbers[SKEWED == HOT].tolist()) == {guests.number}
    listed = np.isin(SKEWED, [HOT, HASHES[1]])
    assert (numbers[~listed] == hashed[~listed]).all()
    assert routing.owners(guests) == ("node-3",)


def test_guests_move_with_their_task_and_the_table_stays() -> None:
    routing = ROUTINGS_UNDER_TEST["table"]
    moved = routing.with_assignment(Assignment(("node-1",), (0, 16)), epoch=4)
    assert moved.owners(UnitId(0, 15, guests=True)) == ("node-1",)
    assert (moved.groupings, moved.epoch) == (routing.groupings, 4)


def test_other_groupings_have_the_epoch_that_they_are_committed_in() -> None:
    routing = ROUTINGS_UNDER_TEST["standbys"].with_groupings([TABLE], epoch=9)
    assert (routing.epoch, routing.groupings.epoch, routing.groupings[0]) == (9, 9, TABLE)
    assert routing.standbys == STANDBYS


def test_more_tasks_than_a_stage_can_number_are_refused() -> None:
    with pytest.raises(InvalidJob, match="524,288"):
        Routing.by_hash(Assignment.even(2**19 + 1, 2))


def test_parts_of_different_jobs_are_refused() -> None:
    with pytest.raises(InvalidJob, match="Make all of them for the same job"):
        Routing(INTERVALS, Groupings(17))
    with pytest.raises(InvalidJob, match="Make all of them for the same job"):
        Routing(INTERVALS, Groupings(16), standbys=((),))
    with pytest.raises(InvalidJob, match="names task 15, but the job has 8 tasks"):
        Groupings(8, (TABLE,))


def test_a_standby_is_never_the_owner() -> None:
    with pytest.raises(InvalidJob, match="task 0 has a node twice: node-1, node-2, node-1"):
        Routing(INTERVALS, Groupings(16), standbys=(("node-2", "node-1"), *[()] * 15))


def test_an_unknown_grouping_is_refused() -> None:
    with pytest.raises(InvalidJob, match="unknown grouping 'random'"):
        Groupings.of_kinds(16, ["hash", "random"])
