"""Plans over records: the compiled loop, the plans of single keys, materialisation and errors."""

from collections import Counter

import numpy as np
import pytest

from migration.errors import InvalidInput, KeysInfeasible, TooManyEntries, UnknownNode, UnknownOption, UnknownStrategy
from migration.keys import KEY_STRATEGIES, KeyLoads
from migration.keys.compact import (
    RECORD_STRATEGIES,
    KeyRecords,
    group_keys,
    materialise,
    merge_records,
    plan_records,
    reference,
)
from migration.keys.compact.materialise import materialise_by_definition
from migration.keys.kernels.rebalance_groups import rebalance_groups
from migration.keys.problem import KeyProblem, NotPlaced
from migration.keys.workloads import KeyWorkload
from tests.migration.keys.compact.instances import random_loads, random_records


@pytest.mark.parametrize("first_seed", range(0, 1_000, 100))
def test_the_compiled_loop_over_groups_equals_the_one_over_single_keys_in_python(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 100):
        rng = np.random.default_rng(seed)
        groups, nodes = int(rng.integers(1, 12)), int(rng.integers(1, 5))
        work, size = rng.integers(0, 9, groups).astype(float), rng.integers(0, 5, groups).astype(float)
        node, count = rng.integers(0, nodes, groups).astype(np.int32), rng.integers(1, 12, groups)
        limit = float((work @ count) / nodes * (1 + rng.choice([0, 0.02, 0.1, 0.4]))) + 1e-9
        beta = [None, 0.5, 1.0, 2.0][int(rng.integers(4))]
        found = rebalance_groups(work, size, node, count, nodes, limit, beta)
        expected = reference.rebalance_groups(work, size, node, count.tolist(), nodes, limit, beta)
        if found is None or expected is None:
            assert (found is None) == (expected is None), seed
            continue
        placed: Counter[tuple[int, int]] = Counter()
        for group, to, keys in zip(*(column.tolist() for column in found[1]), strict=True):
            placed[group, to] += keys
        assert (found[0].tolist(), placed) == expected, seed


@pytest.mark.parametrize("strategy", RECORD_STRATEGIES)
@pytest.mark.parametrize("first_seed", range(0, 600, 200))
def test_plans_over_records_of_exact_values_have_the_loads_of_plans_over_keys(strategy: str, first_seed: int) -> None:
    placed = 0
    for seed in range(first_seed, first_seed + 200):
        rng = np.random.default_rng(seed)
        loads, nodes = random_loads(rng)
        if not loads.total_work:
            continue
        theta, most_entries = float(rng.choice([0, 0.05, 0.3])), int(rng.choice([1, 3, 3_000]))
        try:
            proposal = KEY_STRATEGIES[strategy](KeyProblem.of(loads, nodes, theta, most_entries))
        except NotPlaced:
            with pytest.raises(KeysInfeasible):
                plan_records(group_keys(loads, r=None).records, nodes, theta, strategy, most_entries)
            continue
        entries = int(np.count_nonzero(proposal.destination != loads.home))
        planned = plan_records(group_keys(loads, r=None).records, nodes, theta, strategy, most_entries, relax=True)
        expected = np.bincount(proposal.destination, weights=loads.work, minlength=nodes)
        assert planned.loads_after == tuple(expected), seed
        assert planned.entries == entries, seed
        assert planned.cost == loads.size[proposal.destination != loads.current].sum(), seed
        assert planned.relaxed == (entries > most_entries)
        placed += 1
    assert placed > 60


@pytest.mark.parametrize("strategy", RECORD_STRATEGIES)
@pytest.mark.parametrize("r", [None, 0, 3])
def test_as_many_keys_of_a_record_move_as_planned(strategy: str, r: int | None) -> None:
    for seed in range(60):
        loads, nodes = random_loads(np.random.default_rng(seed))
        keys = group_keys(loads, r)
        if not keys.records.total_work:
            continue
        planned = plan_records(keys.records, nodes, 0.1, strategy, relax=True).records
        destination = materialise(planned, keys)
        assert destination.tolist() == materialise_by_definition(planned, keys), seed
        records = keys.records
        moved = Counter(zip(keys.record_of.tolist(), destination.tolist(), strict=True))
        record, node = (np.array(column) for column in zip(*moved, strict=True))
        again = KeyRecords(
            records.current[record],
            node,
            records.home[record],
            records.work[record],
            records.size[record],
            np.array([*moved.values()]),
        )
        assert again == planned, seed


@pytest.mark.parametrize("strategy", RECORD_STRATEGIES)
def test_nodes_report_and_the_driver_plans_for_all_of_them(strategy: str) -> None:
    nodes = 8
    workload = KeyWorkload.zipf(keys=20_000, nodes=nodes, seed=2)
    loads = workload.loads()
    parts = []
    for node in range(nodes):
        rows = np.flatnonzero(loads.current == node)
        columns = (loads.hashes, loads.home, loads.current, loads.work, loads.size)
        parts.append((rows, group_keys(KeyLoads(*(column[rows] for column in columns)))))
    planned = plan_records(merge_records(*(part.records for _, part in parts)), nodes, strategy=strategy)
    destination = np.empty(loads.keys, np.int32)
    for rows, part in parts:
        destination[rows] = materialise(planned.records, part)
    actual = np.bincount(destination, weights=loads.work, minlength=nodes)
    assert np.abs(actual / planned.loads_after - 1).max() < 5e-3
    assert max(planned.loads_after) <= planned.cap * (1 + 1e-9)
    assert planned.entries == np.count_nonzero(destination != loads.home)
    assert planned.loads_before != planned.loads_after


def test_a_plan_for_other_keys_is_refused() -> None:
    keys = group_keys(KeyLoads(range(4), [0, 0, 0, 0], None, [1, 1, 1, 1]), r=None)
    planned = plan_records(keys.records, 2, 0.0)
    fewer = group_keys(KeyLoads([0], [0], None, [1]), r=None)
    with pytest.raises(InvalidInput, match="moves 2 keys of a record that stands for 1"):
        materialise(planned.records, fewer)


def test_a_table_that_is_too_small_is_refused_or_relaxed() -> None:
    records = group_keys(KeyLoads(range(10), [0] * 10, None, [1.0] * 10), r=None).records
    with pytest.raises(TooManyEntries) as raised:
        plan_records(records, 2, 0.0, most_entries=3)
    assert raised.value.fewest_entries == 5
    assert "most_entries relaxed from 3 to 5" in plan_records(records, 2, 0.0, most_entries=3, relax=True).reason


@pytest.mark.parametrize("strategy", RECORD_STRATEGIES)
def test_an_infeasible_theta_names_one_that_works(strategy: str) -> None:
    records = group_keys(KeyLoads(range(3), [0, 1, 1], None, [10.0, 1.0, 1.0]), r=None).records
    with pytest.raises(KeysInfeasible) as raised:
        plan_records(records, 2, 0.1, strategy)
    assert raised.value.smallest_theta == pytest.approx(10 / 6 - 1)
    relaxed = plan_records(records, 2, 0.1, strategy, relax=True)
    assert relaxed.relaxed
    assert max(relaxed.loads_after) == 10
    assert plan_records(records, 2, raised.value.smallest_theta, strategy).relaxed is False


def test_the_smallest_theta_is_found_where_the_heaviest_key_does_not_decide() -> None:
    records = group_keys(KeyLoads(range(3), [0, 0, 0], None, [1.0, 1.0, 1.0]), r=None).records
    with pytest.raises(KeysInfeasible) as raised:
        plan_records(records, 2, 0.0, "min-mig")
    assert raised.value.smallest_theta == pytest.approx(1 / 3, abs=2e-4)
    assert max(plan_records(records, 2, raised.value.smallest_theta, "min-mig").loads_after) == 2


def test_wrong_arguments_are_refused() -> None:
    records = random_records(np.random.default_rng(7))
    moved = KeyRecords(*(np.array([value]) for value in (0, 1, 0, 1.0, 1.0, 1)))
    with pytest.raises(UnknownNode):
        plan_records(KeyRecords(*(np.array([value]) for value in (3, 3, 0, 1.0, 1.0, 1))), 2)
    with pytest.raises(UnknownStrategy):
        plan_records(records, 9, strategy="knapsack")
    with pytest.raises(UnknownOption):
        plan_records(records, 9, strategy="min-table", beta=1.0)
    for wrong in (KeyRecords.empty(), moved):
        with pytest.raises(InvalidInput):
            plan_records(wrong, 9)
    with pytest.raises(InvalidInput, match="theta"):
        plan_records(records, 9, theta=-1)
