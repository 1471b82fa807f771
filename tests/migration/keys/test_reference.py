"""Every compiled strategy equals its plain Python reference to the last bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migration.keys import KEY_STRATEGIES, KeyLoads
from migration.keys.kernels import order
from migration.keys.problem import KeyProblem, KeyProposal, NotPlaced
from migration.keys.reference import REFERENCES
from tests.migration.keys.instances import random_problem, zipf_loads

TAKES_BETA = ("min-mig", "mixed", "mixed-bf")
BETAS = (0.0, 0.5, 1.0, 1.3, 1.5, 2.0)


def outcome(strategy: Callable[..., KeyProposal], problem: KeyProblem, options: dict[str, Any]) -> list[int] | int:
    """The destination of every key, or the row that was not placed."""
    try:
        return [int(node) for node in strategy(problem, **options).destination]
    except NotPlaced as cause:
        return cause.row


@pytest.mark.parametrize("name", REFERENCES)
@given(seed=st.integers(0, 2**32))
def test_a_compiled_strategy_equals_its_reference(name: str, seed: int) -> None:
    # One example is a handful of instances: most of its time would go to hypothesis otherwise.
    for offset in range(8):
        rng = np.random.default_rng([seed, offset])
        problem = random_problem(rng)
        options = {"beta": float(rng.choice(BETAS))} if name in TAKES_BETA else {}
        expected = outcome(REFERENCES[name], problem, options)
        assert outcome(KEY_STRATEGIES[name], problem, options) == expected, f"seed {seed}, {offset}"


@pytest.mark.parametrize("theta", [0.0, 0.001, 0.05])
@pytest.mark.parametrize("name", ["llfd", "min-table", "min-mig", "mixed"])
def test_a_strategy_equals_its_reference_when_nodes_use_up_their_chunks(name: str, theta: float) -> None:
    """A node's order begins as a chunk and goes on as a heap; here nodes hold many times a chunk."""
    keys = 12 * order.CHUNK
    rng = np.random.default_rng(3)
    work = rng.integers(1, 40, keys).astype(float)
    size = rng.integers(0, 5, keys).astype(float)
    home = np.minimum(rng.integers(0, 6, keys), 2)  # node 2 holds four sixths
    loads = KeyLoads(range(keys), home, home, work, size)
    for pinned in (None, [0.3 * loads.total_work, 0.0, 0.1 * loads.total_work]):
        problem = KeyProblem.of(loads, 3, theta, 50, pinned)
        assert outcome(KEY_STRATEGIES[name], problem, {}) == outcome(REFERENCES[name], problem, {})


@pytest.mark.parametrize("name", ["llfd", "min-table", "min-mig", "mixed"])
def test_a_strategy_equals_its_reference_on_zipf_loads(name: str) -> None:
    for theta in (0.0, 0.02, 0.08):
        loads = zipf_loads(1_500, 15, away=0.1)
        for pinned in (None, np.random.default_rng(1).uniform(0, loads.total_work / 30, 15)):
            problem = KeyProblem.of(loads, 15, theta, 60, pinned)
            assert outcome(KEY_STRATEGIES[name], problem, {}) == outcome(REFERENCES[name], problem, {})
