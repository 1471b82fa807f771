"""The oracle itself: against a real assignment problem, and against its own definition."""

import numpy as np
import pytest
from hypothesis import given

from mdp import reference
from mdp.matrix import TransitionMatrix
from mdp.process import DecisionProcess
from migration import Workload
from migration.planning.partitions import count_partitions
from migration.planning.reference import balanced_partitions, migration_cost
from tests.mdp.instances import processes, skewed, walk


@given(processes(most_tasks=7))
def test_costs_of_all_pairs_are_those_of_an_assignment_problem(process: DecisionProcess) -> None:
    partitions = reference.all_partitions(process)
    old, new = partitions[process.nodes[0]][:12], partitions[process.nodes[-1]][:12]
    expected = [[migration_cost(before, after, process.workload) for after in new] for before in old]
    assert reference.migration_costs(old, new, process.workload) == pytest.approx(np.array(expected), abs=1e-9)


@given(processes())
def test_every_balanced_partition_has_a_projected_cost_that_its_definition_gives(process: DecisionProcess) -> None:
    found = reference.projected_costs(process, tolerance=1e-7)
    for nodes, values in found.items():
        assert len(values) == count_partitions(process.first[nodes], nodes)
        for old, value in values.items():
            expected = 0.0
            for after in process.nodes:
                target = reference.best_target(process, found, old, after)
                cost = migration_cost(old, target, process.workload)
                expected += process.matrix.probability(nodes, after) * (cost + process.gamma * found[after][target])
            assert value == pytest.approx(expected, abs=1e-6)


def test_without_relaxing_the_partitions_are_those_within_the_cap() -> None:
    process = DecisionProcess(skewed(10, seed=2), walk(2, 4), tau=0.4)
    for nodes, partitions in reference.all_partitions(process).items():
        assert partitions == list(balanced_partitions(process.workload, nodes, 0.4))


def test_projected_costs_differ_by_no_more_than_it_costs_to_get_from_one_to_the_other() -> None:
    process = DecisionProcess(skewed(12, seed=5), walk(2, 4), tau=0.4)
    for values in reference.projected_costs(process).values():
        costs = reference.migration_costs(list(values), list(values), process.workload)
        column = np.array(list(values.values()))
        assert (np.abs(column[:, None] - column[None, :]) <= costs + 1e-8).all()


def test_nodes_that_never_change_cost_nothing() -> None:
    process = DecisionProcess(Workload.uniform(8), TransitionMatrix([3], [[1.0]]), tau=0.5)
    assert set(reference.projected_costs(process)[3].values()) == {0.0}
