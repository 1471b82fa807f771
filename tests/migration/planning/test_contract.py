"""What every strategy promises, whatever it is."""

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from migration import STRATEGIES, AdditiveTerms, AdditiveValue, Assignment, Infeasible, Plan, Workload, plan
from tests.migration.instances import Question, questions, skewed_workload

names = pytest.mark.parametrize("strategy", STRATEGIES)


def knowledge(strategy: str, tasks: int) -> dict[str, Any]:
    """What a strategy needs to know; nothing for most of them."""
    if strategy == "mtm":
        terms = AdditiveTerms(boundary=np.zeros(tasks + 1))
        return {"value": AdditiveValue(dict.fromkeys(range(1, tasks + 1), terms))}
    return {}


def answer(question: Question, strategy: str) -> Plan:
    extra = knowledge(strategy, question.workload.tasks)
    try:
        return plan(question.current, question.nodes, question.workload, question.tau, strategy, **extra)
    except Infeasible:
        assume(False)
        raise


@names
@given(question=questions())
def test_every_task_has_one_owner_among_the_remaining_nodes(strategy: str, question: Question) -> None:
    assume(question.nodes <= question.workload.tasks)
    target = answer(question, strategy).target
    assert len(target.owners) == question.workload.tasks
    assert set(target.owners) <= set(target.nodes)
    assert len(target.nodes) == question.nodes


@names
@given(question=questions())
def test_the_same_question_gets_the_same_answer_and_changes_nothing(strategy: str, question: Question) -> None:
    assume(question.nodes <= question.workload.tasks)
    before = copy.deepcopy(question)
    assert answer(question, strategy) == answer(question, strategy)
    assert question == before


@names
@given(question=questions())
def test_a_plan_survives_json(strategy: str, question: Question) -> None:
    assume(question.nodes <= question.workload.tasks)
    made = answer(question, strategy)
    assert Plan.from_json(made.to_json()) == made


@names
@given(st.integers(0, 50))
def test_the_baselines_are_never_cheaper_than_the_optimum_at_the_balance_they_reach(strategy: str, seed: int) -> None:
    workload = skewed_workload(24, seed)
    current = Assignment.even(24, 5)
    made = plan(current, 6, workload, 1.0, strategy, **knowledge(strategy, 24))
    if not isinstance(made.target, Assignment):
        return
    reached = made.heaviest.work * 6 / workload.total_work - 1
    assert plan(current, 6, workload, max(reached, 0.0), relax=True).cost <= made.cost + 1e-9


@names
def test_a_picture_of_the_plan_names_every_node(strategy: str) -> None:
    made = plan(Assignment.even(16, 3), 4, Workload.uniform(16), 0.5, strategy, **knowledge(strategy, 16))
    text = str(made)
    assert text.startswith(f"{strategy}: 3 -> 4 nodes, 16 tasks")
    assert all(node in text for node in (*made.current.nodes, *made.target.nodes))
