"""Counting, enumerating and ranking balanced partitions, against brute force."""

from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from migration import Workload
from migration.planning import balance, reference
from migration.planning.partitions import all_partitions, count_partitions
from migration.planning.search import rank_partitions
from tests.migration.instances import Question, questions, taus, workloads


@given(st.data())
def test_partitions_are_counted_and_listed_without_a_miss(data: st.DataObject) -> None:
    tasks = data.draw(st.integers(1, 9))
    workload, tau = data.draw(workloads(tasks)), data.draw(taus)
    nodes = data.draw(st.integers(1, tasks))
    first = balance.earliest_starts(workload, balance.cap(workload, nodes, tau))
    expected = list(reference.balanced_partitions(workload, nodes, tau))
    assert count_partitions(first, nodes) == len(expected)
    assert [tuple(row) for row in all_partitions(first, nodes).tolist()] == expected


def test_the_number_of_partitions_of_equal_work_is_the_known_one() -> None:
    workload = Workload.uniform(64)
    counts = [
        count_partitions(balance.earliest_starts(workload, balance.cap(workload, nodes, 0.2)), nodes)
        for nodes in range(8, 17)
    ]
    assert sum(counts) == pytest.approx(4.0e6, rel=0.02)
    assert counts[7] / sum(counts) == pytest.approx(0.97, abs=0.01)


@given(questions(), st.integers(0, 10_000))
def test_partitions_come_out_in_order_of_gain_each_once(question: Question, seed: int) -> None:
    workload, nodes = question.workload, min(question.nodes, question.workload.tasks)
    rng = np.random.default_rng(seed)
    boundary = rng.integers(-3, 4, workload.tasks + 1).astype(float)
    boundary[[0, -1]] = 0
    interval = rng.integers(-3, 4, (workload.tasks + 1, workload.tasks + 1)).astype(float)
    first = balance.earliest_starts(workload, balance.cap(workload, nodes, question.tau))
    old = np.unique(question.current.boundaries)
    ranked = list(rank_partitions(workload.state_prefix, first, old, nodes, boundary, interval))
    expected = {
        boundaries: workload.total_state
        - reference.migration_cost(old.tolist(), boundaries, workload)
        - sum(boundary[x] for x in boundaries)
        - sum(interval[start, stop] for start, stop in pairwise(boundaries))
        for boundaries in reference.balanced_partitions(workload, nodes, question.tau)
    }
    assert {entry.boundaries for entry in ranked} == set(expected)
    assert len(ranked) == len(expected)
    assert [entry.gain for entry in ranked] == pytest.approx(sorted(expected.values(), reverse=True), abs=1e-9)
    assert all(entry.gain == pytest.approx(expected[entry.boundaries], abs=1e-9) for entry in ranked)
