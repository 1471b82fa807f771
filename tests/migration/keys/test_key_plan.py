"""A key plan tells its whole decision, as text and as a document."""

import copy
import json
import math
from dataclasses import replace
from typing import Any

import pytest

from migration import InvalidPlan, KeyLoads, KeyPlan, NodeLoad, plan_keys
from migration.keys import KeyEntry, KeyMove
from tests.migration.keys.instances import zipf_loads

LOADS = KeyLoads(
    [1, 2, 3, 4, 5, 6], [0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 0, 1], [7.0, 4.0, 2.0, 1.0, 5.0, 1.0], [7.0, 4, 2, 1, 5, 2]
)
PLAN = plan_keys(LOADS, ["left", "right"], theta=0, strategy="llfd")
PINNED = plan_keys(LOADS, ["left", "right"], strategy="llfd", pinned=[0.0, 10.0])


def test_a_plan_states_moves_table_cost_and_balance() -> None:
    assert [*PLAN.moves] == [KeyMove(1, "left", "right", 7.0), KeyMove(4, "right", "left", 1.0)]
    assert [*PLAN.entries] == [
        KeyEntry(1, "right"),
        KeyEntry(3, "right"),
        KeyEntry(4, "left"),
        KeyEntry(5, "left"),
    ]
    assert (PLAN.cost, PLAN.total_state) == (8, 21)
    assert PLAN.cost_share == pytest.approx(8 / 21)
    assert PLAN.ratio == PLAN.cost / PLAN.lower_bound
    assert PLAN.theta_before == pytest.approx(0.6)
    assert PLAN.theta_reached == 0
    assert PLAN.heaviest == NodeLoad("left", 10.0)


def test_a_plan_is_told_in_a_few_lines() -> None:
    lines = str(PLAN).splitlines()
    assert lines[0] == "llfd: 6 keys, 2 nodes, theta 0"
    assert lines[1].startswith("moves 2 keys, 8 of 21 state (38.10 %), ")
    assert lines[2] == "routing table: 4 entries of at most 3,000"
    assert lines[3] == "theta 0.6 -> 0; heaviest left: work 10, cap 10"
    assert lines[-2].split() == ["left", "█" * 20, "160", "%", "█" * 20, "100", "%", "7", "1", "2"]
    assert len(lines) == 9


def test_a_plan_shows_pinned_work_where_there_is_some() -> None:
    assert PINNED.loads_before == (16.0, 14.0)
    assert PINNED.pinned == (0.0, 10.0)
    lines = str(PINNED).splitlines()
    assert lines[4] == "pinned: 10 of 30 work (33.3 %)"
    assert [line.split()[-1] for line in lines[-3:]] == ["pinned", "1", "10"]
    assert "pinned" not in str(PLAN)


def test_many_nodes_are_shortened() -> None:
    plan = plan_keys(zipf_loads(3_000, 90), 90, strategy="mixed", relax=True)
    assert "more nodes ..." in str(plan)
    assert len(str(plan).splitlines()) < 60


def test_a_plan_survives_json() -> None:
    for plan in (
        PLAN,
        plan_keys(LOADS, 2, 2.0, "min-mig"),
        plan_keys(zipf_loads(500, 5), 5, 0.01, "mixed", relax=True),
        PINNED,
        replace(PLAN, overhead=1_200.0),
    ):
        assert KeyPlan.from_json(plan.to_json()) == plan
        assert hash(KeyPlan.from_json(plan.to_json())) == hash(plan)


def test_a_document_without_pinned_work_is_one_of_a_plan_without() -> None:
    document = PLAN.to_dict()
    assert document.pop("pinned") == []
    assert KeyPlan.from_dict(document) == PLAN


def test_what_moves_take_besides_the_state_is_shown_where_it_is_known() -> None:
    assert "besides" not in str(PLAN)
    assert "; 1.2k besides the state" in str(replace(PLAN, overhead=1_200.0))
    document = PLAN.to_dict()
    assert document.pop("overhead") == 0
    assert KeyPlan.from_dict(document) == PLAN


def test_a_document_has_no_infinity() -> None:
    plan = plan_keys(LOADS, 2, 2.0, "min-table")
    assert plan.ratio == math.inf
    assert json.loads(plan.to_json())["ratio"] is None


def _edited(**changes: Any) -> dict[str, Any]:
    document = copy.deepcopy(PLAN.to_dict())
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = document
        for parent in parents:
            place = place[parent]
        place[last] = value
    return document


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"moves__hashes": [1]}, "columns of its moves differ in length"),
        ({"entries__targets": [1]}, "columns of its entries differ in length"),
        ({"moves__hashes": [1, 1]}, "its moves name a key twice"),
        ({"entries__hashes": [1, 1, 4, 5]}, "its entries name a key twice"),
        ({"moves__targets": [1, 2]}, "nodes beyond the 2"),
        ({"moves__sources": [-1, 1]}, "nodes beyond the 2"),
        ({"moves__targets": [0, 0]}, "stays where it is"),
        ({"cost": 9.0}, "its cost 9 is not the size of its moves"),
        ({"loads_after": [10.0]}, "it has 1 loads for 2 nodes"),
        ({"pinned": [1.0]}, "1 amounts of pinned work for 2 nodes"),
        ({"pinned": [0.0, 5.0]}, "pinned work 5 of 'right' is not a part of its load"),
        ({"pinned": [-1.0, 0.0]}, "pinned work -1 of 'left' is not a part of its load"),
        ({"pinned": [math.nan, 0.0]}, "pinned work nan of 'left' is not a part of its load"),
        ({"pinned": 7}, "not a key plan document"),
        ({"nodes": []}, "beyond the 0"),
        ({"keys": "many"}, "not a key plan document"),
        ({"moves": 7}, "not a key plan document"),
    ],
)
def test_a_document_that_contradicts_itself_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidPlan, match=message):
        KeyPlan.from_dict(_edited(**changes))


def test_a_document_with_missing_parts_is_refused() -> None:
    for name in ("moves", "cap", "loads_before", "note"):
        document = PLAN.to_dict()
        del document[name]
        with pytest.raises(InvalidPlan, match=name):
            KeyPlan.from_dict(document)
    with pytest.raises(InvalidPlan, match="not JSON"):
        KeyPlan.from_json("{")
