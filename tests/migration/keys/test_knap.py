"""Knap against its reference, the bound and Mixed."""

from collections.abc import Callable

import numpy as np
import pytest

from migration.keys import KeyLoads
from migration.keys.bound import lower_bound
from migration.keys.problem import KeyProblem, KeyProposal, NotPlaced
from migration.keys.reference.knap import knap as reference_knap
from migration.keys.strategies.knap import knap
from migration.keys.strategies.llfd import llfd
from migration.keys.strategies.min_table import min_table
from migration.keys.strategies.mixed import mixed
from tests.migration.keys.drifting import DriftingLoads
from tests.migration.keys.instances import random_problem


def ask(strategy: Callable[[KeyProblem], KeyProposal], problem: KeyProblem) -> list[int] | int:
    """The node of every key, or the row that found none."""
    try:
        return [int(node) for node in strategy(problem).destination]
    except NotPlaced as cause:
        return cause.row


def entries(problem: KeyProblem, destination: np.ndarray[tuple[int], np.dtype[np.int32]]) -> int:
    return int(np.count_nonzero(destination != problem.loads.home))


def cost(problem: KeyProblem, destination: np.ndarray[tuple[int], np.dtype[np.int32]]) -> float:
    return float(problem.loads.size[destination != problem.loads.current].sum())


def test_compiled_and_reference_make_the_same_plan() -> None:
    placed = 0
    for seed in range(500):
        problem = random_problem(np.random.default_rng(seed), most_keys=25)
        expected = ask(reference_knap, problem)
        assert ask(knap, problem) == expected, seed
        placed += isinstance(expected, list)
    assert placed > 150


def test_no_plan_exceeds_the_cap() -> None:
    for seed in range(600):
        problem = random_problem(np.random.default_rng(seed))
        try:
            destination = knap(problem).destination
        except NotPlaced:
            continue
        assert problem.loads_of(destination).max() <= problem.cap * (1 + 1e-9), seed


def test_it_succeeds_wherever_llfd_or_min_table_does() -> None:
    for seed in range(600):
        problem = random_problem(np.random.default_rng(seed))
        for other in (llfd, min_table):
            try:
                other(problem)
            except NotPlaced:
                continue
            knap(problem)


def test_balanced_loads_with_a_table_that_fits_stay_as_they_are() -> None:
    loads = KeyLoads(range(4), [0, 0, 1, 1], [1, 0, 0, 1], [1.0] * 4, [0.0] * 4)
    assert knap(KeyProblem.of(loads, 2, 0.0, 2)).destination.tolist() == [1, 0, 0, 1]


def test_balanced_loads_with_too_large_a_table_send_the_smallest_states_home() -> None:
    loads = KeyLoads(range(6), [0, 0, 1, 1, 0, 1], [1, 1, 0, 0, 0, 1], [1.0] * 6, [9.0, 1.0, 2.0, 8.0, 5.0, 5.0])
    assert knap(KeyProblem.of(loads, 2, 0.0, 2)).destination.tolist() == [1, 0, 1, 0, 0, 1]


def test_one_fitting_key_beats_a_cheaper_start_that_overshoots() -> None:
    # The excess of node 0 is 4. By state per work keys 0 and 1 go first (cost 3.6 + 2.8); key 2 alone costs 5.
    loads = KeyLoads(range(5), [0, 0, 0, 0, 1], None, [3.0, 2.0, 4.0, 5.0, 6.0], [3.6, 2.8, 5.0, 90.0, 1.0])
    destination = knap(KeyProblem.of(loads, 2, 0.0, 5)).destination
    assert destination.tolist() == [0, 0, 1, 0, 1]


def test_a_key_that_must_leave_goes_home_if_it_fits_there() -> None:
    loads = KeyLoads(range(5), [2, 0, 0, 1, 2], [0, 0, 0, 1, 2], [3.0, 3.0, 3.0, 3.0, 4.0], [1.0, 9.0, 9.0, 1.0, 1.0])
    destination = knap(KeyProblem.of(loads, 3, 0.5, 5)).destination
    assert destination.tolist() == [2, 0, 0, 1, 2]


def test_the_price_of_entries_keeps_a_full_table_within_its_limit() -> None:
    drifting = DriftingLoads(3_000, 8, seed=5)
    for _ in range(12):
        drifting.step()
        problem = KeyProblem.of(drifting.loads(), 8, 0.05, 150)
        drifting.current = knap(problem).destination
        assert entries(problem, drifting.current) <= 150
        assert problem.loads_of(drifting.current).max() <= problem.cap * (1 + 1e-9)


@pytest.mark.parametrize(
    ("fluctuation", "theta", "most_entries"), [(0.5, 0.02, 10_000), (1.0, 0.08, 10_000), (1.0, 0.08, 1_000)]
)
def test_on_the_papers_workload_it_is_near_the_bound_and_never_dearer_than_mixed(
    fluctuation: float, theta: float, most_entries: int
) -> None:
    to_bound, to_mixed = [], []
    for seed in range(4):
        drifting = DriftingLoads(10_000, 15, seed, fluctuation=fluctuation)
        for step in range(10):
            drifting.step()
            problem = KeyProblem.of(drifting.loads(), 15, theta, most_entries)
            destination = knap(problem).destination
            assert entries(problem, destination) <= most_entries
            bound, spent = lower_bound(problem), cost(problem, destination)
            if step >= 4 and bound:
                to_bound.append(spent / bound)
                theirs = mixed(problem).destination
                if entries(problem, theirs) <= most_entries:
                    assert spent <= max(cost(problem, theirs), 1.1 * bound)
                    to_mixed.append(spent / cost(problem, theirs))
            drifting.current = destination
    assert np.median(to_bound) <= 1.15
    assert np.median(to_mixed) <= 1
