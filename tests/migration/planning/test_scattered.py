"""Planning from what a cancelled migration leaves: nodes with several runs of tasks."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from migration import Assignment, InvalidAssignment, ScatteredAssignment, Workload, plan, plan_sequence
from tests.migration.instances import intervals

NODES = ("node-1", "node-2", "node-3", "node-4")


@st.composite
def scattered(draw: st.DrawFn) -> tuple[ScatteredAssignment, Workload]:
    owners = draw(st.lists(st.sampled_from(NODES), min_size=8, max_size=24))
    numbers = st.lists(st.integers(1, 9), min_size=len(owners), max_size=len(owners))
    return ScatteredAssignment.from_owners(owners, NODES), Workload(draw(numbers), draw(numbers))


@given(scattered(), st.integers(1, 6), st.sampled_from(["ssm", "even"]))
def test_any_assignment_can_be_planned_from(
    found: tuple[ScatteredAssignment, Workload], nodes: int, strategy: str
) -> None:
    current, workload = found
    made = plan(current, nodes, workload, strategy=strategy, relax=True)
    assert isinstance(made.target, Assignment)
    assert len(made.target.nodes) == nodes
    moved = {move.task for move in made.moves}
    assert moved == {task for task in range(current.tasks) if current.owners[task] != made.target.owners[task]}
    assert made.cost == pytest.approx(sum(float(workload.state[task]) for task in moved))


@given(scattered(), st.sampled_from(NODES))
def test_a_node_that_must_leave_leaves(found: tuple[ScatteredAssignment, Workload], leaver: str) -> None:
    current, workload = found
    made = plan(current, 3, workload, leaving=[leaver], relax=True)
    assert leaver not in made.target.nodes


def test_a_cancelled_migration_can_be_gone_back_on_or_on_with_at_the_cost_of_what_it_left_undone() -> None:
    before, after = intervals(8, 8), intervals(5, 6, 5)
    owners = list(before.owners)
    owners[5] = after.owners[5]  # one of six tasks has moved
    half_way = ScatteredAssignment.from_owners(owners, after.nodes)
    workload = Workload([1.0] * 16, [1.0] * 16)
    assert plan(half_way, ["node-1", "node-2"], workload).cost == 1.0
    assert plan(half_way, 3, workload).cost == 5.0


def test_a_sequence_begins_with_intervals() -> None:
    current = ScatteredAssignment.from_owners(["node-1", "node-2"] * 4, ["node-1", "node-2"])
    with pytest.raises(InvalidAssignment, match="one step first"):
        plan_sequence(current, [3, 2], Workload([1.0] * 8, [1.0] * 8))
