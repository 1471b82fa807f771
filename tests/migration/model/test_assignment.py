"""An assignment that exists covers every task exactly once."""

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migration import Assignment, InvalidAssignment, Ownership, ScatteredAssignment, Workload, apply_moves
from migration.model import Move, compute_moves, ownership_from_dict
from tests.migration.instances import assignments, workloads


@st.composite
def scattered(draw: st.DrawFn, tasks: int) -> ScatteredAssignment:
    nodes = draw(st.integers(1, 4))
    owners = draw(st.lists(st.integers(0, nodes - 1), min_size=tasks, max_size=tasks))
    return ScatteredAssignment(tuple(f"n{index}" for index in range(nodes)), tuple(owners))


def any_ownership(tasks: int) -> st.SearchStrategy[Ownership]:
    return st.one_of(assignments(tasks), scattered(tasks))


@given(st.integers(1, 20).flatmap(any_ownership))
def test_runs_cover_every_task_once_in_order(ownership: Ownership) -> None:
    covered = [task for run in ownership.runs for task in range(run.start, run.stop)]
    assert covered == list(range(ownership.tasks))
    assert all(run.start < run.stop for run in ownership.runs)
    assert all(left.node != right.node for left, right in zip(ownership.runs, ownership.runs[1:], strict=False))


@given(st.integers(1, 20).flatmap(any_ownership))
def test_owners_and_tasks_of_agree(ownership: Ownership) -> None:
    owners = ownership.owners
    for node in ownership.nodes:
        assert ownership.tasks_of(node) == [task for task, owner in enumerate(owners) if owner == node]


@given(st.data())
def test_loads_are_sums_of_work(data: st.DataObject) -> None:
    tasks = data.draw(st.integers(1, 12))
    ownership, workload = data.draw(any_ownership(tasks)), data.draw(workloads(tasks))
    loads = ownership.loads(workload)
    assert list(loads) == list(ownership.nodes)
    for node, load in loads.items():
        assert load == pytest.approx(float(workload.work[ownership.tasks_of(node)].sum()))


@given(st.integers(1, 20).flatmap(any_ownership))
def test_ownership_survives_json_and_pickle(ownership: Ownership) -> None:
    assert ownership_from_dict(json.loads(ownership.to_json())) == ownership
    assert pickle.loads(pickle.dumps(ownership)) == ownership  # noqa: S301


@given(st.data())
def test_applying_the_moves_leads_to_the_target(data: st.DataObject) -> None:
    tasks = data.draw(st.integers(1, 12))
    before, after = data.draw(any_ownership(tasks)), data.draw(any_ownership(tasks))
    moves = compute_moves(before, after, Workload.uniform(tasks))
    everyone = list(dict.fromkeys((*before.nodes, *after.nodes)))
    assert apply_moves(before, moves, everyone).owners == after.owners
    assert len({move.task for move in moves}) == len(moves)


def test_a_move_from_a_node_that_does_not_own_the_task_is_refused() -> None:
    with pytest.raises(InvalidAssignment, match="belongs to 'node-1'"):
        apply_moves(Assignment.even(4, 2), [Move(0, "node-2", "node-1", 1.0)], ["node-1", "node-2"])


def test_an_even_assignment_has_intervals_whose_lengths_differ_by_at_most_one() -> None:
    assert Assignment.even(5, ["a", "b"]) == Assignment(("a", "b"), (0, 2, 5))
    assert str(Assignment.even(5, ["a", "b"])) == "a [0, 2)  b [2, 5)"


@pytest.mark.parametrize(
    ("intervals", "word"),
    [
        ({"a": (0, 3), "b": (2, 5)}, "task 2 belongs to both 'a' and 'b'"),
        ({"a": (0, 2), "b": (3, 5)}, "task 2 has no owner"),
        ({"a": (1, 5)}, "task 0 has no owner"),
        ({"a": (0, 2), "b": (4, 3), "c": (2, 4)}, "is not an interval"),
        ({"a": (-1, 4)}, "is not an interval"),
        ({}, "at least one"),
    ],
)
def test_intervals_that_overlap_or_leave_gaps_are_refused(intervals: dict[str, tuple[int, int]], word: str) -> None:
    with pytest.raises(InvalidAssignment, match=word):
        ownership_from_dict(
            {
                "kind": "scattered",
                "tasks": max((stop for _, stop in intervals.values()), default=0),
                "nodes": [{"name": node, "runs": [interval]} for node, interval in intervals.items()],
            }
        )


@pytest.mark.parametrize(
    ("nodes", "boundaries", "word"),
    [
        (("a",), (0, 2, 4), "1 nodes need 2 boundaries, not 3"),
        (("a", "b"), (0, 5, 4), "do not rise"),
        (("a", "b"), (1, 2, 4), "do not rise"),
        (("a",), (0, 0), "do not rise"),
        (("a", "a"), (0, 2, 4), "appears twice"),
        (("a", ""), (0, 2, 4), "'' is not a node name"),
        ((1, "b"), (0, 2, 4), "1 is not a node name"),
        ((), (0,), "at least one node"),
        (("a",), (0, 2.5), "not whole numbers"),
    ],
)
def test_an_assignment_that_cannot_be_does_not_exist(
    nodes: tuple[str, ...], boundaries: tuple[int, ...], word: str
) -> None:
    with pytest.raises(InvalidAssignment, match=word):
        Assignment(nodes, boundaries)


@pytest.mark.parametrize(
    "document",
    [
        "[]",
        "{",
        '{"kind": "intervals"}',
        '{"kind": "intervals", "tasks": 4, "nodes": [{"name": "a", "runs": [[0, 2], [3, 4]]}]}',
        '{"kind": "intervals", "tasks": 4, "nodes": [{"name": "a", "runs": [[1, 4]]}]}',
        '{"kind": "intervals", "tasks": 5, "nodes": [{"name": "a", "runs": [[0, 4]]}]}',
    ],
)
def test_a_document_that_is_no_assignment_is_refused(document: str) -> None:
    with pytest.raises(InvalidAssignment):
        Assignment.from_json(document)


def test_a_scattered_assignment_with_unknown_owners_is_refused() -> None:
    with pytest.raises(InvalidAssignment, match=r"0\.\.1"):
        ScatteredAssignment(("a", "b"), (0, 2))
    with pytest.raises(InvalidAssignment, match="at least one task"):
        ScatteredAssignment(("a",), ())
    with pytest.raises(InvalidAssignment, match="'c' is not among"):
        ScatteredAssignment.from_owners(["c"], ["a"])
    with pytest.raises(InvalidAssignment, match="not a kind"):
        ownership_from_dict({"kind": "heap"})
