"""Exact projections against all-pairs value iteration."""

import numpy as np
import pytest
from hypothesis import given, settings

from mdp import reference
from mdp.errors import InvalidProjection, UnknownPartition
from mdp.exact import ExactProjection, project_exactly
from mdp.exact.guide import EdgeGuide, sum_terms
from mdp.exact.values import ExactValues
from mdp.lattice import Lattice
from mdp.matrix import TransitionMatrix
from mdp.process import DecisionProcess
from mdp.workers import LocalWorkers
from migration import Assignment, Workload, plan
from tests.mdp.instances import edge_numbers, processes, skewed, walk

NEAR = 1e-7  # of all state: ten times below what is asserted


def disagreement(found: ExactProjection) -> float:
    """The largest difference to brute force, as a share of all state."""
    expected = reference.projected_costs(found.process, tolerance=1e-10)
    return max(
        float(np.abs(found.values[nodes] - np.array(list(values.values()))).max()) / found.process.workload.total_state
        for nodes, values in expected.items()
    )


@settings(max_examples=40)
@given(processes())
def test_it_equals_value_iteration_over_all_pairs(process: DecisionProcess) -> None:
    found = project_exactly(process, error=NEAR, workers=LocalWorkers(1))

    assert found.relative_error <= NEAR
    assert disagreement(found) <= 1e-6


@pytest.mark.parametrize("tasks", [16, 20, 24])
@pytest.mark.parametrize("equal", [True, False])
def test_it_equals_value_iteration_on_larger_instances(tasks: int, equal: bool) -> None:
    workload = Workload.uniform(tasks) if equal else skewed(tasks, seed=tasks)
    process = DecisionProcess(workload, walk(3, 6), tau=0.3, relax=True)

    assert disagreement(project_exactly(process, error=NEAR)) <= 1e-6


@settings(max_examples=25)
@given(processes())
def test_the_proven_error_is_never_exceeded(process: DecisionProcess) -> None:
    for error in (0.2, 0.02):
        found = project_exactly(process, error=error, workers=LocalWorkers(1))
        assert found.relative_error <= error
        assert disagreement(found) <= found.relative_error + 1e-9


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.95, 0.99])
def test_it_ends_for_every_discount(gamma: float) -> None:
    process = DecisionProcess(skewed(24, seed=11), walk(4, 7), tau=0.3, gamma=gamma)

    assert project_exactly(process, error=0.01).relative_error <= 0.01


def test_a_start_changes_the_way_and_not_the_values() -> None:
    process = DecisionProcess(skewed(14, seed=3), walk(2, 5), tau=0.4)
    rng = np.random.default_rng(1)
    start = {n: rng.normal(size=Lattice(n, process.first[n]).edges) for n in process.nodes}
    plain, guided = (project_exactly(process, error=NEAR, start=terms) for terms in (None, start))

    for nodes in process.nodes:
        np.testing.assert_allclose(plain.values[nodes], guided.values[nodes], atol=1e-6)


def test_without_a_future_it_is_the_expected_cost_of_the_best_single_step() -> None:
    process = DecisionProcess(skewed(12, seed=2), walk(2, 4), tau=0.4, gamma=0.0)
    found = project_exactly(process, error=NEAR)

    lattice = Lattice(3, process.first[3])
    for rank in range(0, lattice.count, max(lattice.count // 20, 1)):
        current = Assignment(tuple(f"node-{k}" for k in range(3)), lattice.partition(rank))
        expected = sum(
            process.matrix.probability(3, after) * plan(current, after, process.workload, tau=0.4).cost
            for after in (2, 4)
        )
        assert found.values[3][rank] == pytest.approx(expected, abs=1e-6)


def test_a_future_without_choice_is_the_optimal_sequence_with_discount() -> None:
    """Node counts that follow each other for certain: 2 -> 3 -> 4 -> 2 ..., so C solves a deterministic sequence."""
    turns = TransitionMatrix([2, 3, 4], [[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    process = DecisionProcess(Workload.uniform(10), turns, tau=0.5, gamma=0.6)
    found = project_exactly(process, error=NEAR)
    partitions = reference.all_partitions(process)
    costs = {
        (now, after): reference.migration_costs(partitions[now], partitions[after], process.workload)
        for now, after in ((2, 3), (3, 4), (4, 2))
    }
    steps = 40  # 0.6 ** 40 is nothing
    value = np.zeros(len(partitions[{0: 2, 1: 3, 2: 4}[steps % 3]]))
    for step in range(steps - 1, -1, -1):
        now, after = [(2, 3), (3, 4), (4, 2)][step % 3]
        value = (costs[now, after] + process.gamma * value).min(axis=1)

    np.testing.assert_allclose(found.values[2], value, atol=1e-5)


def test_the_number_of_workers_changes_nothing() -> None:
    process = DecisionProcess(skewed(20, seed=5), walk(3, 6), tau=0.3)
    one, two = (project_exactly(process, workers=LocalWorkers(threads)) for threads in (1, 3))

    assert all((one.values[nodes] == two.values[nodes]).all() for nodes in process.nodes)


def test_values_of_partitions_that_were_not_balanced_follow_from_the_definition() -> None:
    process = DecisionProcess(skewed(12, seed=4), walk(2, 4), tau=0.2)
    found = project_exactly(process, error=NEAR)
    lattices = {nodes: Lattice(nodes, process.first[nodes]) for nodes in process.nodes}
    guides = {nodes: EdgeGuide.fit(lattices[nodes], found.values[nodes]) for nodes in process.nodes}
    values = ExactValues(process, found.values, guides)

    for nodes, lattice in lattices.items():
        for rank in range(lattice.count):
            boundaries = lattice.partition(rank)
            assert values.value(boundaries) == found.values[nodes][rank]
            assert values.backup(boundaries) == pytest.approx(values.value(boundaries), abs=1e-5)
    lopsided = (0, 1, 2, 12)
    assert lopsided not in lattices[3]
    assert values.value(lopsided) >= found.values[3].max() - process.workload.total_state
    for wrong in [(0, 12), (0, 3, 11), (0, 1, 2, 3, 4, 12)]:
        with pytest.raises(UnknownPartition, match="no partition"):
            values.value(wrong)


def test_a_guide_is_never_further_above_than_it_says() -> None:
    process = DecisionProcess(skewed(14, seed=6), walk(4, 4), tau=0.3)
    lattice = Lattice(4, process.first[4])
    values = np.random.default_rng(2).random(lattice.count)
    guide = EdgeGuide.fit(lattice, values)
    sums = sum_terms(lattice, guide.term)

    for rank in range(lattice.count):
        slack = guide.above[edge_numbers(lattice, lattice.partition(rank))].min()
        assert sums[rank] - values[rank] <= slack + 1e-9


@pytest.mark.parametrize("error", [0.0, -1.0, 1.0, float("nan")])
def test_an_error_that_cannot_be_is_refused(error: float) -> None:
    with pytest.raises(InvalidProjection, match="error"):
        project_exactly(DecisionProcess(Workload.uniform(6), walk(2, 3)), error=error)
