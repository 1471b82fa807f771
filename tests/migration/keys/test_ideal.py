"""The ideal is a bound on balance, and nothing pretends that it is a plan."""

import numpy as np
import pytest

from migration.errors import InvalidInput
from migration.keys import KEY_STRATEGIES, KeyLoads, plan_keys
from migration.keys.problem import KeyProblem, NotPlaced
from migration.keys.strategies.ideal import ideal_loads
from tests.migration.keys.instances import random_problem


def test_every_node_carries_the_mean_and_nothing_is_lost() -> None:
    problem = KeyProblem.of(KeyLoads(range(3), [0, 0, 1], None, [7.0, 2.0, 3.0]), 4, 0.0, 1)
    assert ideal_loads(problem).tolist() == [3.0] * 4


def test_no_strategy_is_more_balanced_than_the_ideal() -> None:
    for seed in range(200):
        problem = random_problem(np.random.default_rng(seed))
        for name, strategy in KEY_STRATEGIES.items():
            try:
                destination = strategy(problem).destination
            except (NotPlaced, InvalidInput):
                continue
            ideal = ideal_loads(problem).max()
            assert problem.loads_of(destination).max() >= ideal * (1 - 1e-12), (seed, name)


@pytest.mark.parametrize("relax", [False, True])
def test_planning_with_it_is_refused_and_says_what_to_use(relax: bool) -> None:
    with pytest.raises(InvalidInput, match=r"a bound, not a plan.*plan with 'knap'"):
        plan_keys(KeyLoads([1, 2], [0, 0], None, [1.0, 1.0]), 2, strategy="ideal", relax=relax)
