"""Whole sequences of migrations, against trying every sequence of partitions."""

from itertools import pairwise

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from migration import Assignment, Infeasible, InvalidInput, TooManyPartitions, UnknownStrategy, Workload, plan
from migration.planning import plan_sequence, reference
from tests.migration.instances import assignments, intervals, skewed_workload, taus, workloads


@settings(max_examples=max(60, settings().max_examples))
@given(st.data())
def test_no_sequence_of_balanced_partitions_is_cheaper(data: st.DataObject) -> None:
    tasks = data.draw(st.integers(1, 7))
    current, workload = data.draw(assignments(tasks)), data.draw(workloads(tasks))
    counts = data.draw(st.lists(st.integers(1, tasks), min_size=1, max_size=3))
    step_taus = [data.draw(taus) for _ in counts]
    optimum = reference.cheapest_sequence_cost(current, counts, workload, step_taus)
    if optimum is None:
        with pytest.raises(Infeasible):
            plan_sequence(current, counts, workload, step_taus)
        return
    plans = plan_sequence(current, counts, workload, step_taus)
    assert sum(step.cost for step in plans) == pytest.approx(optimum)
    assert [len(step.target.nodes) for step in plans] == counts
    assert all(step.balanced for step in plans)


def test_the_thirteen_task_example_costs_six_where_single_steps_cost_seven() -> None:
    current, workload = intervals(4, 5, 4), Workload.uniform(13)
    together = plan_sequence(current, [2, 3], workload, tau=0.4)
    assert sum(step.cost for step in together) == 6
    first = plan(current, 2, workload, tau=0.4)
    second = plan(first.target, 3, workload, tau=0.4)
    assert first.cost + second.cost >= 7


def test_table_three_as_its_own_definitions_have_it() -> None:
    current, workload = intervals(13, 7), Workload.uniform(20)
    assert sum(step.cost for step in plan_sequence(current, [3, 4], workload, tau=0.4)) == 6


def test_each_plan_starts_where_the_one_before_it_ends() -> None:
    workload = skewed_workload(24, 2)
    plans = plan_sequence(Assignment.even(24, 4), [5, 6, 4], workload, tau=0.3)
    assert all(left.target == right.current for left, right in pairwise(plans))


def test_a_sequence_of_one_is_a_single_step() -> None:
    workload = skewed_workload(64, 3)
    current = plan(Assignment.even(64, 8), 8, workload).target
    assert plan_sequence(current, [11], workload)[0].cost == pytest.approx(plan(current, 11, workload).cost)


def test_too_many_partitions_are_counted_not_enumerated() -> None:
    workload = Workload.uniform(256)
    with pytest.raises(TooManyPartitions, match="fallback") as caught:
        plan_sequence(Assignment.even(256, 8), [9, 10, 12], workload, tau=0.4)
    assert len(caught.value.counts) == 2
    assert min(caught.value.counts) > 10**9


@pytest.mark.parametrize("fallback", ["beam", "ssm"])
@pytest.mark.parametrize("seed", range(5))
def test_a_fallback_is_asked_for_by_name_and_close_to_the_optimum(fallback: str, seed: int) -> None:
    workload = skewed_workload(32, seed)
    current = plan(Assignment.even(32, 5), 5, workload, tau=0.3).target
    counts = [6, 7, 5, 6]
    exact = sum(step.cost for step in plan_sequence(current, counts, workload, tau=0.3))
    found = sum(step.cost for step in plan_sequence(current, counts, workload, tau=0.3, limit=0, fallback=fallback))
    single = sum(step.cost for step in plan_sequence(current, counts, workload, tau=0.3, limit=0, fallback="ssm"))
    assert exact - 1e-9 <= found <= single + 1e-9


def test_bad_sequences_are_refused() -> None:
    current, workload = Assignment.even(8, 2), Workload.uniform(8)
    with pytest.raises(InvalidInput, match="at least one"):
        plan_sequence(current, [], workload)
    with pytest.raises(InvalidInput, match="one for every step"):
        plan_sequence(current, [2, 3], workload, tau=[0.1])
    with pytest.raises(InvalidInput, match="nodes is 0"):
        plan_sequence(current, [2, 0], workload)
    with pytest.raises(UnknownStrategy, match="beam"):
        plan_sequence(current, [2], workload, fallback="hope")
    with pytest.raises(Infeasible):
        plan_sequence(current, [2, 3], workload, tau=0)
