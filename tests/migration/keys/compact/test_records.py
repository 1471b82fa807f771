"""Records of keys: counting, merging, and their bytes."""

import pickle
from contextlib import suppress

import numpy as np
import pytest

from migration.errors import InvalidWorkload
from migration.keys import KeyLoads
from migration.keys.compact import KeyRecords, decode_records, encode_records, group_keys, merge_records
from migration.keys.compact.encoding import raw_bytes
from migration.keys.compact.grouping import group_keys_by_definition
from migration.keys.workloads import KeyWorkload
from tests.migration.keys.compact.instances import random_loads, random_records


@pytest.mark.parametrize("seed", range(100))
def test_records_count_the_keys_of_every_kind(seed: int) -> None:
    loads, _ = random_loads(np.random.default_rng(seed))
    keys = group_keys(loads, r=None)
    records = keys.records
    kinds = zip(
        *(column.tolist() for column in (records.current, records.home, records.work, records.size)), strict=True
    )
    assert dict(zip(kinds, records.count.tolist(), strict=True)) == group_keys_by_definition(
        loads, loads.work, loads.size
    )
    for column in ("current", "home", "work", "size"):
        assert getattr(records, column)[keys.record_of].tolist() == getattr(loads, column).tolist()


def test_records_of_discretised_keys_keep_the_loads_of_nodes() -> None:
    loads = KeyWorkload.zipf(keys=20_000, nodes=10, seed=3).loads()
    records = group_keys(loads, r=3).records
    assert len(records) < loads.keys / 20
    assert records.keys == loads.keys
    exact = np.bincount(loads.current, weights=loads.work)
    assert np.abs(records.loads(10) / exact - 1).max() < 1e-3


def test_many_distinct_values_are_counted_too() -> None:
    rng = np.random.default_rng(5)
    loads = KeyLoads(np.arange(500), np.zeros(500, int), np.full(500, 1_500_000_000), rng.random(500), rng.random(500))
    assert len(group_keys(loads, r=None).records) == 500


@pytest.mark.parametrize("seed", range(50))
def test_merging_is_associative_and_commutative(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, two, three = (random_records(rng) for _ in range(3))
    merged = merge_records(one, two, three)
    assert merged == merge_records(merge_records(one, two), three) == merge_records(one, merge_records(three, two))
    assert merged.keys == one.keys + two.keys + three.keys
    assert hash(merged) == hash(merge_records(three, one, two))


def test_reports_of_all_nodes_merge_to_the_records_of_all_keys() -> None:
    workload = KeyWorkload.zipf(keys=5_000, nodes=4)
    loads = workload.loads()
    reports = []
    for node in range(4):
        mine = loads.current == node
        part = KeyLoads(*(column[mine] for column in (loads.hashes, loads.home, loads.current, loads.work, loads.size)))
        reports.append(group_keys(part, r=0, work_unit=1.0, size_unit=1.0).records)
    assert merge_records(*reports) == group_keys(loads, r=0, work_unit=1.0, size_unit=1.0).records


def test_nothing_merges_to_nothing() -> None:
    assert len(merge_records()) == 0
    assert merge_records(KeyRecords.empty(), KeyRecords.empty()) == KeyRecords.empty()
    assert decode_records(encode_records(KeyRecords.empty())) == KeyRecords.empty()


@pytest.mark.parametrize("seed", range(50))
def test_bytes_and_pickles_restore_records_exactly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    records = random_records(rng, 300)
    assert decode_records(encode_records(records)) == records
    assert pickle.loads(pickle.dumps(records)) == records  # noqa: S301
    fractions = group_keys(
        KeyLoads(np.arange(50), rng.integers(0, 70_000, 50), rng.integers(0, 300, 50), rng.random(50), rng.random(50)),
        r=None,
    ).records
    assert decode_records(encode_records(fractions)) == fractions


def test_a_report_of_records_is_far_smaller_than_one_of_keys() -> None:
    loads = KeyWorkload.zipf(keys=100_000).loads()
    assert 50 * len(encode_records(group_keys(loads, r=3).records)) < raw_bytes(100_000)


def test_bytes_that_are_no_records_are_refused() -> None:
    good = encode_records(random_records(np.random.default_rng(1)))
    flipped = bytearray(good)
    flipped[0] ^= 1
    for wrong in (b"", b"KRC1", good[:-1], good + b"x", bytes(flipped)):
        with pytest.raises(InvalidWorkload, match="Encode them with"):
            decode_records(wrong)


@pytest.mark.parametrize("seed", range(20))
def test_damaged_bytes_are_refused_or_give_valid_records(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = bytearray(encode_records(random_records(rng)))
    data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    with suppress(InvalidWorkload):
        assert decode_records(bytes(data)).count.min() >= 1


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (([0], [0], [-1], [1.0], [1.0], [1]), "negative node index"),
        (([0], [0], [0], [np.nan], [1.0], [1]), "finite number"),
        (([0], [0], [0], [1.0], [-1.0], [1]), "finite number"),
        (([0], [0], [0], [1.0], [1.0], [0]), "stands for 0 keys"),
        (([0, 1], [0], [0], [1.0], [1.0], [1]), "differ in length"),
    ],
)
def test_impossible_records_are_refused(columns: tuple[list[float], ...], says: str) -> None:
    with pytest.raises(InvalidWorkload, match=says):
        KeyRecords(*(np.array(column) for column in columns))
