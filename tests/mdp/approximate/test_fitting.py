"""Ridge regression of values by terms."""

import numpy as np
import pytest

from mdp.approximate.fitting import TERMS, Fit
from mdp.approximate.sampled_partitions import draw_partitions
from mdp.process import DecisionProcess
from tests.mdp.instances import skewed, walk

PROCESS = DecisionProcess(skewed(24, seed=1), walk(3, 5), tau=0.4)


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("count", [12, 400])  # fewer partitions than terms, and more
def test_the_normal_equations_hold(terms: str, count: int) -> None:
    rng = np.random.default_rng(5)
    rows, values = draw_partitions(PROCESS, 5, count, rng), rng.normal(7, 1, count)
    fit = Fit(rows, 24, terms, ridge=0.3)
    constant, weights = fit.solve(values)
    error = values - constant - fit.design @ weights
    assert constant == pytest.approx(values.mean())
    assert fit.design.T @ error == pytest.approx(0.3 * weights, abs=1e-9)


@pytest.mark.parametrize("terms", TERMS)
def test_terms_say_what_the_fit_says(terms: str) -> None:
    rng = np.random.default_rng(5)
    rows, values = draw_partitions(PROCESS, 4, 50, rng), rng.normal(7, 1, 50)
    fit = Fit(rows, 24, terms, ridge=0.3)
    constant, weights = fit.solve(values)
    found = fit.as_terms(constant, weights)
    others = np.concatenate((rows, draw_partitions(PROCESS, 4, 50, rng)))
    expected = constant + fit.encode(others) @ weights
    assert [found.value(row) for row in others.tolist()] == pytest.approx(expected)
    assert (found.interval is None) == (terms == "boundary")


def test_an_additive_function_is_found_again() -> None:
    rng = np.random.default_rng(5)
    rows, worth = draw_partitions(PROCESS, 5, 500, rng), rng.normal(0, 1, 25)
    values = 3 + worth[rows[:, 1:-1]].sum(axis=1)
    fit = Fit(rows, 24, "boundary", ridge=1e-9)
    found = fit.as_terms(*fit.solve(values))
    assert [found.value(row) for row in rows.tolist()] == pytest.approx(values)


def test_one_node_has_one_value_and_no_terms() -> None:
    fit = Fit(np.array([[0, 24]]), 24, "boundary", ridge=0.1)
    assert fit.as_terms(*fit.solve(np.array([4.5]))).value((0, 24)) == 4.5
