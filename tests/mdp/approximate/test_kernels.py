"""The dynamic program for many partitions at once, against trying every target."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdp import reference
from mdp.approximate.foresight import Foresight
from mdp.approximate.sampled_partitions import draw_partitions
from mdp.kernels.paths import Floats
from mdp.lattice import Lattice
from mdp.process import DecisionProcess
from migration.planning.values import AdditiveTerms, AdditiveValue
from tests.mdp.instances import processes, skewed, walk


def random_value(process: DecisionProcess, seed: int) -> AdditiveValue:
    rng, size = np.random.default_rng(seed), process.tasks + 1
    return AdditiveValue(
        {
            nodes: AdditiveTerms(
                rng.normal(0, 2, size), rng.normal(0, 2, (size, size)) if seed % 2 else None, rng.normal()
            )
            for nodes in process.nodes
        },
        process.gamma,
    )


def all_scores(process: DecisionProcess, value: AdditiveValue, now: int, after: int) -> Floats:
    """cost(P, P') + gamma * V(P') for all P and P'."""
    partitions = reference.all_partitions(process)
    future = process.gamma * np.array([value.value(target) for target in partitions[after]])
    return reference.migration_costs(partitions[now], partitions[after], process.workload) + future


@given(processes(), st.integers(0, 1000))
def test_the_best_target_of_every_partition_is_the_best_of_all_targets(process: DecisionProcess, seed: int) -> None:
    value = random_value(process, seed)
    foresight, partitions = Foresight(process, value), reference.all_partitions(process)
    now, after = process.nodes[0], process.nodes[-1]
    rows, least = np.array(partitions[now]), all_scores(process, value, now, after).min(axis=1)
    targets, stays = foresight.targets(rows, after)
    costs = process.workload.total_state - stays
    assert [tuple(target) in partitions[after] for target in targets.tolist()] == [True] * len(rows)
    future = [process.gamma * value.value(target) for target in targets.tolist()]
    assert costs + np.array(future) == pytest.approx(least, abs=1e-9)
    assert foresight.least(rows, after) == pytest.approx(least, abs=1e-9)


@given(processes(), st.integers(0, 1000), st.integers(1, 12))
def test_the_most_promising_targets_are_the_best_of_all_in_order(
    process: DecisionProcess, seed: int, most: int
) -> None:
    value = random_value(process, seed)
    partitions = reference.all_partitions(process)
    now, after = process.nodes[-1], process.nodes[0]
    scores = all_scores(process, value, now, after)
    for place, old in list(enumerate(partitions[now]))[:5]:
        targets, costs = Foresight(process, value).best_candidates(np.array(old), after, most)
        rows = [tuple(target) for target in targets.tolist()]
        assert len(set(rows)) == len(rows) == min(most, len(partitions[after]))
        found = costs + process.gamma * np.array([value.value(row) for row in rows])
        assert found == pytest.approx(np.sort(scores[place])[: len(rows)], abs=1e-9)


@given(processes(), st.integers(0, 1000))
def test_a_backup_is_the_definition_of_the_projected_cost_solved_for_partitions_that_stay(
    process: DecisionProcess, seed: int
) -> None:
    value = random_value(process, seed)
    for now, partitions in reference.all_partitions(process).items():
        chance = {after: process.matrix.probability(now, after) for after in process.nodes}
        moved = sum(
            chance[after] * all_scores(process, value, now, after).min(axis=1)
            for after in process.nodes
            if after != now
        )
        found = Foresight(process, value).backup(np.array(partitions), now)
        assert found == pytest.approx(moved + chance[now] * process.gamma * found, abs=1e-9)


def test_sampled_partitions_are_balanced_and_all_alike() -> None:
    process = DecisionProcess(skewed(12, seed=1), walk(3, 4), tau=0.5)
    lattice = Lattice(4, process.first[4])
    rows = draw_partitions(process, 4, 20_000, np.random.default_rng(3))
    seen = np.bincount([lattice.rank(row) for row in rows.tolist()], minlength=lattice.count)
    expected = len(rows) / lattice.count
    assert 20 < lattice.count < 400
    assert np.abs(seen - expected).max() < 5 * np.sqrt(expected)


def test_partitions_are_sampled_where_no_whole_number_can_count_them() -> None:
    process = DecisionProcess(skewed(256, seed=1), walk(30, 31), tau=0.4)
    assert process.partitions()[31] > 2**63
    rows = draw_partitions(process, 31, 200, np.random.default_rng(3))
    assert (rows[:, 0] == 0).all()
    assert (rows[:, -1] == 256).all()
    assert (process.first[31][rows[:, 1:]] <= rows[:, :-1]).all()
    assert (rows[:, 1:] > rows[:, :-1]).all()
    assert len(np.unique(rows, axis=0)) == 200
