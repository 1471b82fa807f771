"""Readj: heavy keys are moved and swapped, light ones live at home."""

from collections.abc import Callable

import numpy as np
import pytest

from migration.errors import InvalidInput
from migration.keys import KeyLoads
from migration.keys.problem import KeyProblem, KeyProposal, NotPlaced
from migration.keys.reference.readj import readj as reference_readj
from migration.keys.strategies.readj import readj, sigmas_to_try
from tests.migration.keys.instances import random_problem


def ask(strategy: Callable[..., KeyProposal], problem: KeyProblem, sigma: float | None) -> list[int] | int:
    """The node of every key, or the row that found none."""
    try:
        return [int(node) for node in strategy(problem, sigma).destination]
    except NotPlaced as cause:
        return cause.row


def test_compiled_and_reference_make_the_same_plan() -> None:
    placed = 0
    for seed in range(800):
        rng = np.random.default_rng(seed)
        problem = random_problem(rng, most_keys=25)
        sigma = None if seed % 4 == 0 else float(rng.choice([0, 0.05, 0.5, 1]))
        expected = ask(reference_readj, problem, sigma)
        assert ask(readj, problem, sigma) == expected, seed
        if isinstance(expected, list):
            assert problem.loads_of(np.array(expected)).max() <= problem.cap * (1 + 1e-9), seed
            placed += 1
    assert placed > 120


def test_keys_below_sigma_go_home_and_only_tracked_keys_have_entries() -> None:
    for seed in range(300):
        problem = random_problem(np.random.default_rng(seed))
        try:
            destination = readj(problem, 0.2).destination
        except NotPlaced:
            continue
        away = destination != problem.loads.home
        assert (problem.loads.work[away] >= 0.2 * problem.mean).all(), seed


def test_a_swap_balances_where_no_move_can() -> None:
    # 6 + 5 against 4 + 3, cap 9: moving 5 or 6 only exchanges the roles of both nodes; 5 for 3 gives 9 and 9.
    loads = KeyLoads(range(4), [0, 0, 1, 1], None, [6.0, 5.0, 4.0, 3.0])
    assert sorted(readj(KeyProblem.of(loads, 2, 0.0, 4), 0.0).destination[[1, 3]].tolist()) == [0, 1]
    assert KeyProblem.of(loads, 2, 0.0, 4).loads_of(
        readj(KeyProblem.of(loads, 2, 0.0, 4), 0.0).destination
    ).tolist() == [9, 9]


def test_a_large_sigma_tracks_too_few_keys() -> None:
    loads = KeyLoads(range(4), [0, 0, 1, 1], None, [6.0, 5.0, 4.0, 3.0])
    with pytest.raises(NotPlaced):
        readj(KeyProblem.of(loads, 2, 0.0, 4), 0.6)


def test_the_search_is_as_cheap_as_every_sigma_it_tries() -> None:
    for seed in range(200):
        problem = random_problem(np.random.default_rng(seed)).with_most_entries(10_000)
        if problem.is_balanced:
            continue
        costs = []
        for sigma in sigmas_to_try(problem):
            try:
                destination = readj(problem, sigma).destination
            except NotPlaced:
                continue
            costs.append(float(problem.loads.size[destination != problem.loads.current].sum()))
        if not costs:
            with pytest.raises(NotPlaced):
                readj(problem)
            continue
        best = readj(problem).destination
        assert float(problem.loads.size[best != problem.loads.current].sum()) == min(costs), seed


@pytest.mark.parametrize("sigma", [-0.1, float("nan"), float("inf"), True, "half"])
def test_a_sigma_that_is_no_share_is_refused(sigma: float) -> None:
    problem = KeyProblem.of(KeyLoads([1], [0], None, [1.0]), 1, 0.0, 1)
    with pytest.raises(InvalidInput, match="sigma"):
        readj(problem, sigma)
