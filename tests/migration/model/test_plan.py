"""A plan tells the whole decision, in numbers, in JSON and in text."""

import json
import pickle
from typing import Any

import pytest

from migration import Assignment, InvalidInput, InvalidPlan, Plan, Workload, plan

MADE = plan(Assignment.even(6, 2), 3, Workload([1.0] * 6, [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]), tau=0.0)


def test_the_numbers_of_a_small_plan() -> None:
    assert MADE.target.owners == ("node-1", "node-1", "node-3", "node-3", "node-2", "node-2")
    assert MADE.cost == 70
    assert MADE.cost_share == pytest.approx(70 / 210)
    assert MADE.heaviest == ("node-1", 2.0)
    assert MADE.cap == 2
    assert MADE.joining == ("node-3",)
    assert MADE.leaving == ()
    assert [str(move) for move in MADE.moves] == ["task 2: node-1 -> node-3 (30)", "task 3: node-2 -> node-3 (40)"]


def test_the_text_shows_the_decision_at_a_glance() -> None:
    assert str(MADE).splitlines() == [
        "ssm: 2 -> 3 nodes, 6 tasks, tau 0",
        "moves 2 tasks, 70 of 210 state (33.3 %)",
        "heaviest node-1: work 2, 100 % of the cap 2",
        "the least state that any balanced assignment moves",
        "",
        "before  aaabbb",
        "after   aaccbb",
        "moving  ..^^..",
        "",
        "  node            tasks  work of cap                      gives       takes",
        "a node-1      3 -> 2     ████████████████████ 100 %          30",
        "b node-2      3 -> 2     ████████████████████ 100 %          40",
        "c node-3      0 -> 2     ████████████████████ 100 %                      70",
    ]


def test_a_large_plan_still_fits_on_a_screen() -> None:
    text = str(plan(Assignment.even(4096, 100), 120, Workload.uniform(4096)))
    lines = text.splitlines()
    assert len(lines) < 60
    assert max(map(len, lines)) < 120
    assert "a letter is 64 tasks" in text
    assert "more nodes" in text


def test_a_node_that_leaves_is_shown_leaving() -> None:
    made = plan(Assignment.even(6, 3), ["node-1", "node-3"], Workload.uniform(6))
    assert made.leaving == ("node-2",)
    assert "leaves" in str(made)


def test_a_plan_survives_pickle() -> None:
    assert pickle.loads(pickle.dumps(MADE)) == MADE  # noqa: S301


def edited(**changes: Any) -> str:
    return json.dumps({**json.loads(MADE.to_json()), **changes})


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        edited(moves=[]),
        edited(cost=1.0),
        edited(loads=[1.0]),
        edited(moves="none"),
        edited(current={"kind": "heap"}),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        Plan.from_json(text)


def test_the_refusal_of_an_edited_plan_says_what_to_do() -> None:
    with pytest.raises(InvalidPlan, match="Plan again"):
        Plan.from_json(edited(cost=1.0))


def test_without_state_the_share_is_nothing() -> None:
    made = plan(Assignment.even(4, 2), 4, Workload([1.0] * 4, [0.0] * 4))
    assert made.cost_share == 0
