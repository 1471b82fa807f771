"""The decision process with only some partitions as targets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdp import reference
from mdp.approximate.foresight import Foresight
from mdp.approximate.sampled_partitions import (
    MAX_PAIRS,
    SampledPartitions,
    choose_partitions,
    draw_other_partitions,
    draw_partitions,
    max_sampled_partitions,
)
from mdp.kernels.paths import Ints
from mdp.matrix import TransitionMatrix
from mdp.process import DecisionProcess
from mdp.workers import LocalWorkers
from tests.mdp.instances import processes, skewed, walk


@given(processes())
def test_with_all_partitions_sampled_the_values_are_exact(process: DecisionProcess) -> None:
    exact = reference.projected_costs(process)
    sampled = SampledPartitions.solve(process, {nodes: np.array(list(values)) for nodes, values in exact.items()})
    for nodes, values in exact.items():
        assert sampled.values[nodes] == pytest.approx(np.array(list(values.values())), abs=1e-6)
        assert sampled.expected(sampled.rows[nodes], nodes) == pytest.approx(sampled.values[nodes], abs=1e-6)


@given(processes(), st.integers(0, 1000))
def test_with_some_partitions_sampled_no_value_is_below_the_exact_one(process: DecisionProcess, seed: int) -> None:
    exact, rng = reference.projected_costs(process), np.random.default_rng(seed)
    some = {nodes: rng.permutation(np.array(list(values)))[:3] for nodes, values in exact.items()}
    sampled = SampledPartitions.solve(process, some)
    for nodes, values in exact.items():
        least = np.array([values[tuple(row)] for row in some[nodes].tolist()])
        assert (sampled.values[nodes] >= least - 1e-6).all()
        everything = np.array(list(values))
        assert (sampled.expected(everything, nodes) >= np.array(list(values.values())) - 1e-6).all()


def partitions_for(process: DecisionProcess, visited: dict[int, list[Ints]], most: int) -> dict[int, Ints]:
    return choose_partitions(Foresight(process), visited, most, np.random.default_rng(1), LocalWorkers(1))


def test_few_partitions_are_all_sampled_and_of_many_the_most_visited_come_first() -> None:
    process, rng = DecisionProcess(skewed(24, seed=1), walk(2, 5), tau=0.3), np.random.default_rng(1)
    visited = {nodes: list(draw_partitions(process, nodes, 40, rng)) for nodes in process.nodes}
    often = visited[5][7]
    visited[5] += [often] * 100
    found, counts = partitions_for(process, visited, 100), process.partitions()
    assert counts[2] < 100 < counts[5]
    for nodes, rows in found.items():
        assert len(np.unique(rows, axis=0)) == len(rows) <= 100
        if counts[nodes] <= 100:
            assert [tuple(row) for row in rows.tolist()] == reference.all_partitions(process)[nodes]
    assert found[5][0].tolist() == often.tolist()
    distinct = {tuple(row.tolist()) for row in visited[5]}
    assert {tuple(row) for row in found[5][: len(distinct)].tolist()} == distinct
    others = draw_other_partitions(SampledPartitions.solve(process, found), 70, rng)
    assert {nodes: len(rows) for nodes, rows in others.items()} == {
        nodes: 0 if count <= 100 else 70 for nodes, count in counts.items()
    }


def test_targets_that_are_nearly_chosen_are_sampled_too() -> None:
    process = DecisionProcess(skewed(24, seed=1), walk(4, 5), tau=0.4)
    only = Foresight(process)(np.array([0, 24]), 4)
    found = partitions_for(process, {4: [only], 5: []}, 100)
    targets, _ = Foresight(process).best_candidates(only, 5, 6)
    assert {tuple(row) for row in targets.tolist()} <= {tuple(row) for row in found[5].tolist()}


def test_partitions_are_sampled_even_where_no_policy_passes() -> None:
    matrix = TransitionMatrix([4, 5], [[1.0, 0.0], [1.0, 0.0]])
    process = DecisionProcess(skewed(24, seed=1), matrix, tau=0.4)
    found = partitions_for(process, {4: [], 5: []}, 100)
    assert all(len(rows) > 10 for rows in found.values())


def test_the_costs_of_all_pairs_of_sampled_partitions_fit_into_memory() -> None:
    for high in (5, 16, 60):
        process = DecisionProcess(skewed(64, seed=1), walk(2, high), tau=0.4, relax=True)
        pairs = sum(len(process.successors(nodes)) for nodes in process.nodes)
        assert 40 < max_sampled_partitions(process) <= (MAX_PAIRS / pairs) ** 0.5
