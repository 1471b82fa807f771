"""Cost now plus discounted value later, against trying every partition."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given

from migration import AdditiveTerms, AdditiveValue, Assignment, Infeasible, InvalidInput, Plan, Workload, plan
from migration.planning import reference
from migration.planning.values import ValueFunction
from tests.migration.instances import Question, questions, skewed_workload


@dataclass(frozen=True)
class Scrambled:
    """A value function with no structure at all: a fixed pseudo-random number for every partition."""

    seed: int
    scale: float

    def value(self, boundaries: Sequence[int]) -> float:
        return self.scale * float(np.random.default_rng([self.seed, *boundaries]).random())

    def at_least(self, nodes: int) -> float:  # noqa: ARG002
        return 0.0

    def terms(self, nodes: int) -> AdditiveTerms | None:  # noqa: ARG002
        return None


@st.composite
def additive_values(draw: st.DrawFn, tasks: int, nodes: int) -> AdditiveValue:
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    interval = rng.integers(-5, 6, (tasks + 1, tasks + 1)).astype(float) if draw(st.booleans()) else None
    terms = AdditiveTerms(rng.integers(-5, 6, tasks + 1).astype(float), interval, constant=3.0)
    return AdditiveValue({nodes: terms})


def foresighted(question: Question, value: ValueFunction, gamma: float) -> Plan:
    try:
        return plan(
            question.current,
            question.nodes,
            question.workload,
            question.tau,
            "mtm",
            leaving=question.leaving,
            value=value,
            gamma=gamma,
        )
    except Infeasible:
        assume(False)
        raise


def least(question: Question, value: ValueFunction, gamma: float) -> float:
    leavers = {index for index, node in enumerate(question.current.nodes) if node in question.leaving}
    return min(
        reference.migration_cost(question.current.boundaries, boundaries, question.workload, leavers)
        + gamma * value.value(boundaries)
        for boundaries in reference.balanced_partitions(question.workload, question.nodes, question.tau)
    )


gammas = st.sampled_from([0.0, 0.5, 0.8, 1.0])


@given(st.data(), questions(), gammas)
def test_with_an_additive_value_the_minimum_is_exact(data: st.DataObject, question: Question, gamma: float) -> None:
    assume(question.nodes <= question.workload.tasks)
    value = data.draw(additive_values(question.workload.tasks, question.nodes))
    made = foresighted(question, value, gamma)
    assert made.future_cost is not None
    assert made.cost + made.future_cost == pytest.approx(least(question, value, gamma))


@given(questions(), gammas, st.integers(0, 1000), st.sampled_from([0.5, 5.0, 500.0]))
def test_any_other_value_is_searched_until_the_minimum_is_proven(
    question: Question, gamma: float, seed: int, scale: float
) -> None:
    assume(question.nodes <= question.workload.tasks)
    value = Scrambled(seed, scale)
    made = foresighted(question, value, gamma)
    assert made.future_cost is not None
    assert made.cost + made.future_cost == pytest.approx(least(question, value, gamma))
    assert "not proven" not in made.reason


def test_a_search_that_runs_out_of_candidates_says_so() -> None:
    made = plan(
        Assignment.even(32, 4), 5, skewed_workload(32, 3), 0.4, "mtm", value=Scrambled(1, 1e6), most_candidates=10
    )
    assert "10 cheapest candidates, not proven" in made.reason


def test_without_weight_on_the_future_it_costs_what_ssm_costs() -> None:
    workload = skewed_workload(64, 5)
    current = plan(Assignment.even(64, 8), 8, workload).target
    alone = plan(current, 11, workload)
    assert plan(current, 11, workload, strategy="mtm", value=Scrambled(1, 1e6), gamma=0.0).cost == alone.cost


def test_a_dear_boundary_is_avoided() -> None:
    boundary = np.zeros(13)
    boundary[6] = 100.0
    value = AdditiveValue({2: AdditiveTerms(boundary)})
    made = plan(Assignment.even(12, 2), 2, Workload.uniform(12), 0.5, "mtm", value=value)
    assert made.target != made.current
    assert made.cost == 1
    assert made.future_cost == 0


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({}, "value="),
        ({"value": AdditiveValue({}), "gamma": 0.5}, "knows none nodes"),
        ({"value": AdditiveValue({2: AdditiveTerms(np.zeros(5))})}, "4 tasks"),
        ({"value": AdditiveValue({2: AdditiveTerms(np.zeros(9))}), "gamma": 1.5}, "gamma is 1.5"),
        ({"value": AdditiveValue({2: AdditiveTerms(np.zeros(9))}), "gamma": float("nan")}, "gamma is nan"),
        ({"value": AdditiveValue({2: AdditiveTerms(np.zeros(9))}), "allow_idle": True}, "every node at work"),
        ({"value": Scrambled(1, 1.0), "most_candidates": 0}, "most_candidates is 0"),
    ],
)
def test_bad_foresight_is_refused_by_name(options: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        plan(Assignment.even(8, 2), 2, Workload.uniform(8), strategy="mtm", **options)


def test_terms_of_the_wrong_shape_are_refused() -> None:
    with pytest.raises(InvalidInput, match="3 x 3"):
        AdditiveTerms(np.zeros(3), np.zeros((2, 3)))
    with pytest.raises(InvalidInput, match="finite"):
        AdditiveTerms(np.array([0.0, np.nan]))
