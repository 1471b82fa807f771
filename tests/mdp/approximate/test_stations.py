"""The decision process with only some partitions as targets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdp import reference
from mdp.approximate.foresight import Foresight
from mdp.approximate.samples import MOST_PAIRS, most_stations, others_than, stations_of, uniform_partitions
from mdp.approximate.stations import Stations
from mdp.kernels.paths import Ints
from mdp.matrix import TransitionMatrix
from mdp.process import DecisionProcess
from mdp.workers import Here
from tests.mdp.instances import processes, skewed, walk


@given(processes())
def test_with_all_partitions_as_stations_values_are_exact(process: DecisionProcess) -> None:
    exact = reference.projected_costs(process)
    stations = Stations.of(process, {nodes: np.array(list(values)) for nodes, values in exact.items()})
    for nodes, values in exact.items():
        assert stations.values[nodes] == pytest.approx(np.array(list(values.values())), abs=1e-6)
        assert stations.expected(stations.rows[nodes], nodes) == pytest.approx(stations.values[nodes], abs=1e-6)


@given(processes(), st.integers(0, 1000))
def test_with_some_partitions_as_stations_no_value_is_below_the_exact_one(process: DecisionProcess, seed: int) -> None:
    exact, rng = reference.projected_costs(process), np.random.default_rng(seed)
    some = {nodes: rng.permutation(np.array(list(values)))[:3] for nodes, values in exact.items()}
    stations = Stations.of(process, some)
    for nodes, values in exact.items():
        least = np.array([values[tuple(row)] for row in some[nodes].tolist()])
        assert (stations.values[nodes] >= least - 1e-6).all()
        everything = np.array(list(values))
        assert (stations.expected(everything, nodes) >= np.array(list(values.values())) - 1e-6).all()


def stations_for(process: DecisionProcess, visited: dict[int, list[Ints]], most: int) -> dict[int, Ints]:
    return stations_of(Foresight(process), visited, most, np.random.default_rng(1), Here(1))


def test_stations_are_all_partitions_if_these_are_few_else_first_the_most_visited_ones() -> None:
    process, rng = DecisionProcess(skewed(24, seed=1), walk(2, 5), tau=0.3), np.random.default_rng(1)
    visited = {nodes: list(uniform_partitions(process, nodes, 40, rng)) for nodes in process.nodes}
    often = visited[5][7]
    visited[5] += [often] * 100
    found, counts = stations_for(process, visited, 100), process.partitions()
    assert counts[2] < 100 < counts[5]
    for nodes, rows in found.items():
        assert len(np.unique(rows, axis=0)) == len(rows) <= 100
        if counts[nodes] <= 100:
            assert [tuple(row) for row in rows.tolist()] == reference.all_partitions(process)[nodes]
    assert found[5][0].tolist() == often.tolist()
    distinct = {tuple(row.tolist()) for row in visited[5]}
    assert {tuple(row) for row in found[5][: len(distinct)].tolist()} == distinct
    others = others_than(Stations.of(process, found), 70, rng)
    assert {nodes: len(rows) for nodes, rows in others.items()} == {
        nodes: 0 if count <= 100 else 70 for nodes, count in counts.items()
    }


def test_targets_that_are_nearly_chosen_become_stations_too() -> None:
    process = DecisionProcess(skewed(24, seed=1), walk(4, 5), tau=0.4)
    only = Foresight(process)(np.array([0, 24]), 4)
    found = stations_for(process, {4: [only], 5: []}, 100)
    targets, _ = Foresight(process).promising(only, 5, 6)
    assert {tuple(row) for row in targets.tolist()} <= {tuple(row) for row in found[5].tolist()}


def test_where_nobody_passes_there_are_stations_all_the_same() -> None:
    matrix = TransitionMatrix([4, 5], [[1.0, 0.0], [1.0, 0.0]])
    process = DecisionProcess(skewed(24, seed=1), matrix, tau=0.4)
    found = stations_for(process, {4: [], 5: []}, 100)
    assert all(len(rows) > 10 for rows in found.values())


def test_the_costs_of_all_pairs_of_stations_fit_into_memory() -> None:
    for high in (5, 16, 60):
        process = DecisionProcess(skewed(64, seed=1), walk(2, high), tau=0.4, relax=True)
        pairs = sum(len(process.successors(nodes)) for nodes in process.nodes)
        assert 40 < most_stations(process) <= (MOST_PAIRS / pairs) ** 0.5
