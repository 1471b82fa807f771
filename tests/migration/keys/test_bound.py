"""No plan costs less than the lower bound: against brute force, and against every strategy."""

import math
from itertools import pairwise

import numpy as np
import pytest

from migration.errors import InvalidInput
from migration.keys import KEY_STRATEGIES, KeyLoads
from migration.keys.bound import find_core, lower_bound, search_prices
from migration.keys.kernels.prices import value_prices
from migration.keys.problem import KeyProblem, NotPlaced
from migration.keys.reference import prices
from migration.keys.reference.brute_force import cheapest_cost, cheapest_plan
from tests.migration.keys.drifting import DriftingLoads
from tests.migration.keys.instances import random_problem


def at_most(value: float, other: float) -> bool:
    return value <= other * (1 + 1e-9) + 1e-9


def test_no_plan_at_all_is_cheaper_than_the_bound() -> None:
    solvable = 0
    for seed in range(1_000):
        problem = random_problem(np.random.default_rng(seed), most_keys=6, most_nodes=3)
        optimum = cheapest_cost(problem)
        if optimum is not None:
            solvable += 1
            assert at_most(lower_bound(problem), optimum), seed
    assert solvable > 400


def test_no_strategy_is_cheaper_than_the_optimum_and_knap_is_mostly_as_cheap() -> None:
    ratios = []
    for seed in range(500):
        problem = random_problem(np.random.default_rng(seed), most_keys=6, most_nodes=3)
        optimum = cheapest_cost(problem)
        for name, strategy in KEY_STRATEGIES.items():
            try:
                destination = strategy(problem).destination
            except (NotPlaced, InvalidInput):
                continue
            if np.count_nonzero(destination != problem.loads.home) > problem.most_entries:
                continue
            assert optimum is not None, (seed, name)
            cost = float(problem.loads.size[destination != problem.loads.current].sum())
            assert at_most(optimum, cost), (seed, name)
            if name == "knap" and optimum > 0:
                ratios.append(cost / optimum)
    assert np.mean(np.array(ratios) < 1 + 1e-9) > 0.85
    assert np.quantile(ratios, 0.95) < 1.7


def test_any_prices_prove_a_bound_even_bad_ones() -> None:
    for seed in range(500):
        rng = np.random.default_rng(seed)
        problem = random_problem(rng, most_keys=6, most_nodes=3)
        optimum, loads = cheapest_cost(problem), problem.loads
        if optimum is None:
            continue
        nodes = rng.choice([0.0, 0.5, 2.0], problem.node_count)
        nodes -= nodes.min()
        columns = (loads.home, loads.current, loads.work, loads.size, problem.limit, problem.most_entries)
        bound, _ = value_prices(*columns, float(rng.choice([0.0, 0.3, 5.0])), nodes)
        assert at_most(bound + float(problem.pinned_loads @ nodes), optimum), seed


def test_pinned_work_is_like_keys_that_cannot_move() -> None:
    solvable = moving = 0
    for seed in range(1_000):
        problem = random_problem(np.random.default_rng(seed), most_keys=6, most_nodes=3)
        if not any(problem.pinned):
            continue
        loads, nodes = problem.loads, range(problem.node_count)
        as_keys = KeyLoads(
            range(problem.node_count + loads.keys),
            [*nodes, *loads.home],
            [*nodes, *loads.current],
            [*problem.pinned, *loads.work],
            [*(0.0 for _ in nodes), *loads.size],
        )
        keys_alone = KeyProblem.of(as_keys, problem.nodes, problem.theta, problem.most_entries)
        assert keys_alone.cap == pytest.approx(problem.cap)
        assert keys_alone.node_loads.tolist() == problem.node_loads.tolist()
        expected, found = cheapest_plan(keys_alone, unmovable=nodes), cheapest_plan(problem)
        if expected is None or found is None:
            assert expected is found, seed
            continue
        solvable += 1
        moving += found[0] > 0
        assert found == (expected[0], expected[1][problem.node_count :]), seed
    assert solvable > 150
    assert moving > 30


def test_compiled_prices_and_their_reference_agree_to_the_last_bit() -> None:
    for seed in range(600):
        problem = random_problem(np.random.default_rng(seed), most_keys=25)
        compiled, reference = search_prices(problem, find_core(problem)), prices.find_prices(problem)
        assert compiled.entry == reference.entry, seed
        assert compiled.nodes.tolist() == reference.nodes, seed
        assert compiled.bound == reference.bound, seed


def test_balanced_loads_have_the_bound_zero() -> None:
    problem = KeyProblem.of(KeyLoads(range(4), [0, 0, 1, 1], None, [1.0] * 4), 2, 0.0, 1)
    assert lower_bound(problem) == 0


def test_a_single_key_that_must_leave_counts_in_full() -> None:
    # Node 0 carries 5 + 3 and may carry 6: any key relieves it, and the cheapest one is moved as a whole.
    loads = KeyLoads(range(3), [0, 0, 1], None, [5.0, 3.0, 4.0], [50.0, 9.0, 1.0])
    assert lower_bound(KeyProblem.of(loads, 2, 0.0, 3)) == pytest.approx(9.0)


def test_pinned_work_raises_what_a_node_has_to_give_away() -> None:
    # 12 of keys and 6 pinned: each node may carry 9, and node 0 carries 5 + 3 + 2, so a key has to leave.
    loads = KeyLoads(range(3), [0, 0, 1], None, [5.0, 3.0, 4.0], [50.0, 9.0, 1.0])
    assert lower_bound(KeyProblem.of(loads, 2, 0.0, 3, [2.0, 4.0])) == pytest.approx(9.0)
    assert lower_bound(KeyProblem.of(loads, 2, 0.0, 3, [1.0, 5.0])) == 0


def test_no_plan_exists_below_the_least_theta() -> None:
    for seed in range(300):
        problem = random_problem(np.random.default_rng(seed), most_keys=5, most_nodes=3).with_most_entries(10)
        if problem.least_theta > 1e-6:
            assert cheapest_cost(problem.with_theta(problem.least_theta - 1e-6)) is None, seed


def test_the_least_theta_is_that_of_the_heaviest_key_or_of_pinned_work() -> None:
    loads = KeyLoads([1, 2], [0, 0], None, [5.0, 1.0])
    pinned_and_least = {None: 5 / 3 - 1, (6.0, 0.0): 0.0, (7.5, 0.5): 7.5 / 7 - 1, (3.0, 3.0): 8 / 6 - 1}
    for pinned, least in pinned_and_least.items():
        assert KeyProblem.of(loads, 2, 0.0, 1, pinned).least_theta == pytest.approx(least), pinned


def test_a_smaller_table_never_lowers_the_bound() -> None:
    drifting = DriftingLoads(3_000, 8, seed=3)
    drifting.step()
    bounds = [lower_bound(KeyProblem.of(drifting.loads(), 8, 0.05, entries)) for entries in (3_000, 300, 30, 10)]
    assert all(at_most(larger, smaller) for larger, smaller in pairwise(bounds))
    assert bounds[-1] > 1.05 * bounds[0]
    assert math.isfinite(bounds[-1])
