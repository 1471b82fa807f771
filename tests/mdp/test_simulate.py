"""Walking a policy along node counts."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from mdp.approximate import Foresight
from mdp.kernels.paths import Ints
from mdp.lattice import Lattice
from mdp.matrix import TransitionMatrix
from mdp.process import DecisionProcess
from mdp.simulate import Comparison, Policy, compare, draw_node_counts, rightmost_partition, simulate
from mdp.workers import LocalWorkers
from migration import Assignment, plan
from tests.mdp.instances import processes, skewed, walk


def test_node_counts_follow_the_matrix() -> None:
    matrix = TransitionMatrix([2, 3, 5], [[0.0, 1.0, 0.0], [0.25, 0.0, 0.75], [0.0, 1.0, 0.0]])
    counts = draw_node_counts(matrix, 8_000, np.random.default_rng(1))
    steps = list(pairwise(counts))
    assert len(counts) == 8_001
    assert set(steps) <= {(2, 3), (3, 2), (3, 5), (5, 3)}
    assert steps.count((3, 5)) / (steps.count((3, 5)) + steps.count((3, 2))) == pytest.approx(0.75, abs=0.03)


@given(processes())
def test_a_walk_starts_balanced(process: DecisionProcess) -> None:
    for nodes in process.nodes:
        assert rightmost_partition(process, nodes).tolist() in Lattice(nodes, process.first[nodes])


def test_the_policy_of_ssm_costs_what_its_plans_cost() -> None:
    process = DecisionProcess(skewed(32, seed=3), walk(3, 6), tau=0.3)
    counts = draw_node_counts(process.matrix, 30, np.random.default_rng(7))
    current, costs = Assignment.even(32, counts[0]), []
    current = Assignment(current.nodes, rightmost_partition(process, counts[0]).tolist())
    for nodes in counts[1:]:
        made = plan(current, nodes, process.workload, 0.3)
        costs.append(made.cost)
        assert isinstance(made.target, Assignment)
        current = made.target
    assert simulate(process, Foresight(process), counts) == pytest.approx(costs)


def test_policies_are_compared_on_the_same_sequences_with_any_workers() -> None:
    process = DecisionProcess(skewed(24, seed=3), walk(3, 6), tau=0.3)

    def always_rightmost(_boundaries: Ints, nodes: int) -> Ints:
        return rightmost_partition(process, nodes)

    policies: dict[str, Policy] = {"ssm": Foresight(process), "rightmost": always_rightmost}
    found = compare(process, policies, sequences=6, migrations=20, seed=4, workers=LocalWorkers(1))
    again = compare(process, policies, sequences=6, migrations=20, seed=4, workers=LocalWorkers(3))
    assert all((found.moved[name] == again.moved[name]).all() for name in policies)
    assert found.gain("ssm") == 0
    assert found.gain("rightmost") < 0 < found.gain("ssm", over="rightmost")
    assert 0 < found.mean("ssm") < found.mean("rightmost") < 1


def test_a_difference_on_the_same_sequences_is_more_precise_than_the_means() -> None:
    common = np.array([0.05, 0.10, 0.15, 0.20])
    found = Comparison({"ssm": common, "better": common - 0.01})
    assert found.gain("better") == pytest.approx(0.08)
    assert found.gain_standard_error("better") == pytest.approx(0.0, abs=1e-12)
    assert found.standard_error("better") == pytest.approx(0.0323, abs=1e-4)
