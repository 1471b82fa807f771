"""The exact planner against brute force with a real matching."""

import math

import pytest
from hypothesis import assume, given, settings

from migration import Assignment, Infeasible, Plan, Workload, plan
from migration.planning import reference
from tests.migration.instances import Question, intervals, questions, random_question, skewed_workload


def asked(question: Question, relax: bool = False) -> Plan:
    return plan(
        question.current,
        question.nodes,
        question.workload,
        question.tau,
        leaving=question.leaving,
        allow_idle=question.allow_idle,
        relax=relax,
    )


def optimum(question: Question) -> float | None:
    return reference.cheapest_cost(
        question.current, question.nodes, question.workload, question.tau, question.leaving, question.allow_idle
    )


def check_against_the_oracle(question: Question) -> None:
    best = optimum(question)
    if best is None:
        with pytest.raises(Infeasible):
            asked(question)
    else:
        assert math.isclose(asked(question).cost, best, rel_tol=1e-9, abs_tol=1e-9), question


@given(questions())
def test_no_balanced_assignment_is_cheaper_than_the_plan(question: Question) -> None:
    check_against_the_oracle(question)


@pytest.mark.parametrize("thousand", range(max(2, settings().max_examples // 100)))
def test_thousands_of_seeded_questions_get_the_cheapest_answer(thousand: int) -> None:
    for seed in range(1_000 * thousand, 1_000 * (thousand + 1)):
        check_against_the_oracle(random_question(seed))


@given(questions(most_tasks=12))
def test_the_plan_has_the_cost_and_the_balance_it_states(question: Question) -> None:
    try:
        answer = asked(question)
    except Infeasible:
        assume(False)
    before, after = question.current.owners, answer.target.owners
    moved = [task for task, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    assert [move.task for move in answer.moves] == moved
    assert all((move.source, move.target) == (before[move.task], after[move.task]) for move in answer.moves)
    assert math.isclose(answer.cost, float(question.workload.state[moved].sum()), abs_tol=1e-9)
    loads = [float(question.workload.work[answer.target.tasks_of(node)].sum()) for node in answer.target.nodes]
    assert loads == pytest.approx(list(answer.loads))
    cap = (1 + question.tau) * float(question.workload.work.sum()) / question.nodes
    assert max(loads) <= cap * (1 + 1e-8)
    assert answer.cap == pytest.approx(cap)
    assert answer.balanced


@given(questions(most_tasks=12))
def test_the_right_nodes_remain(question: Question) -> None:
    try:
        answer = asked(question)
    except Infeasible:
        assume(False)
    staying = [node for node in question.current.nodes if node not in question.leaving]
    assert len(answer.target.nodes) == question.nodes
    assert not set(question.leaving) & set(answer.target.nodes)
    if question.nodes >= len(staying):
        assert set(staying) <= set(answer.target.nodes)
    else:
        assert set(answer.target.nodes) <= set(staying)
    if not question.allow_idle:
        assert all(answer.target.tasks_of(node) for node in answer.target.nodes)


@given(questions())
def test_names_that_must_remain_are_the_same_as_the_others_leaving(question: Question) -> None:
    staying = [node for node in question.current.nodes if node not in question.leaving]
    assume(staying and len(staying) <= question.workload.tasks)
    try:
        by_count = plan(question.current, len(staying), question.workload, question.tau, leaving=question.leaving)
    except Infeasible:
        assume(False)
    by_name = plan(question.current, staying, question.workload, question.tau)
    assert by_name == by_count


@given(questions(most_tasks=12))
def test_relaxing_finds_the_smallest_cap_and_says_so(question: Question) -> None:
    answer = asked(question, relax=True)
    if not answer.relaxed:
        assert asked(question) == answer
        return
    with pytest.raises(Infeasible) as refused:
        asked(question)
    assert "relaxed" in answer.reason
    assert answer.cap > refused.value.cap
    assert answer.heaviest.work == pytest.approx(answer.cap)
    tighter = answer.cap / refused.value.cap * (1 + question.tau) * (1 - 1e-6) - 1
    with pytest.raises(Infeasible):
        plan(question.current, question.nodes, question.workload, tighter, allow_idle=question.allow_idle)


def test_a_balanced_assignment_stays_as_it_is_even_if_its_state_is_empty() -> None:
    current = intervals(3, 5, 4)
    answer = plan(current, 3, Workload([1.0] * 12, [0.0] * 12), tau=0.3)
    assert answer.target == current
    assert answer.moves == ()


def test_empty_state_is_not_shuffled_about() -> None:
    answer = plan(Assignment.even(12, 3), 4, Workload([1.0] * 12, [0.0] * 12), tau=0)
    assert answer.cost == 0
    assert len(answer.moves) == 4


def test_the_papers_skewed_case_that_trips_the_authors_program_is_optimal() -> None:
    workload = skewed_workload(14, seed=7, sigma=1.0)
    for nodes_now in (2, 4):
        current = Assignment.even(14, nodes_now)
        answer = plan(current, 6, workload, tau=0.8)
        assert answer.cost == pytest.approx(reference.cheapest_cost(current, 6, workload, 0.8))


def test_new_nodes_carry_the_names_they_are_given() -> None:
    answer = plan(Assignment.even(8, 2), 3, Workload.uniform(8), tau=0.5, new_nodes=["fresh"])
    assert answer.joining == ("fresh",)
    assert plan(Assignment.even(8, 2), 3, Workload.uniform(8), tau=0.5).joining == ("node-3",)
    taken = Assignment.even(8, ["node-1", "node-4"])
    assert plan(taken, 4, Workload.uniform(8), tau=0.5).joining == ("node-3", "node-5")


def test_a_named_node_leaves_while_another_joins() -> None:
    answer = plan(Assignment.even(8, 2), ["node-2"], Workload.uniform(8), new_nodes=["fresh"])
    assert set(answer.target.nodes) == {"node-2", "fresh"}
    assert answer.leaving == ("node-1",)
    assert answer.cost == 4
