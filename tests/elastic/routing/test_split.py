"""Splitting keeps every row once, in order, with its unit."""

from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from elastic.errors import InvalidJob
from elastic.routing import Routing, split
from elastic.routing.unit_numbers import to_ranges
from migration import Assignment
from storage.state import UnitId

UNIT_NUMBERS = st.sampled_from(
    [0, 1, 2, 255, 256, 65_536, 2**19, 2**19 + 2, 2**20, 2**20 + 3, 2**20 + 2**19 + 7, 2**40]
)


def numbered(count: int) -> pa.Table:
    return pa.table({"number": np.arange(count), "text": [f"row {number}" for number in range(count)]})


@given(st.lists(UNIT_NUMBERS))
def test_every_unit_gets_its_rows_in_their_original_order(units: list[int]) -> None:
    parts = split(numbered(len(units)), np.array(units, np.int64))
    expected = {unit: [number for number, other in enumerate(units) if other == unit] for unit in sorted(set(units))}
    assert {unit: rows["number"].to_pylist() for unit, rows in parts.slices().items()} == expected
    assert list(parts.unit_numbers) == list(expected)
    assert (parts.offsets[0], parts.offsets[-1]) == (0, len(units))


@given(st.lists(st.integers(0, 11), min_size=1), st.integers(1, 5))
def test_nodes_get_their_units_and_together_they_get_all_rows_once(tasks: list[int], nodes: int) -> None:
    routing = Routing.by_hash(Assignment.even(12, nodes))
    shares = split(numbered(len(tasks)), np.array(tasks, np.int64)).for_node(routing)
    for node, share in shares.items():
        assert {routing.owners(UnitId.from_number(number)) for number in share.unit_numbers} == {(node,)}
        for unit, rows in share.slices().items():
            assert rows["number"].to_pylist() == [number for number, task in enumerate(tasks) if task == unit]
    assert sum(share.table.num_rows for share in shares.values()) == len(tasks)


def test_slices_and_shares_are_views_of_the_one_sorted_table() -> None:
    parts = split(numbered(1_000), np.arange(1_000, dtype=np.int64) % 8)
    whole = parts.table["number"].chunk(0).buffers()[1].address
    for rows in parts.slices().values():
        assert rows["number"].chunk(0).buffers()[1].address == whole
    for share in parts.for_node(Routing.by_hash(Assignment.even(8, 3))).values():
        assert share.table["number"].chunk(0).buffers()[1].address == whole


def test_record_batches_and_chunks_are_split_like_tables() -> None:
    table, units = numbered(100), np.arange(100, dtype=np.int64) % 3
    expected = split(table, units).slices()
    (batch,) = table.to_batches()
    chunked = pa.concat_tables([table.slice(0, 33), table.slice(33)])
    assert split(batch, units).slices() == split(chunked, units).slices() == expected


def test_no_rows_split_into_nothing() -> None:
    parts = split(numbered(0), np.array([], np.int64))
    assert (parts.slices(), parts.for_node(Routing.by_hash(Assignment.even(4, 2)))) == ({}, {})
    assert parts.table.schema == numbered(0).schema


def test_rows_and_unit_numbers_must_be_equally_many() -> None:
    with pytest.raises(InvalidJob, match="2 rows by 3 unit numbers"):
        split(numbered(2), np.array([1, 2, 3]))


@given(st.sets(st.integers(0, 40)))
def test_unit_numbers_are_compressed_to_the_fewest_ranges(numbers: set[int]) -> None:
    ranges = to_ranges(sorted(numbers))
    assert [number for first, stop in ranges for number in range(first, stop)] == sorted(numbers)
    assert all(stop < first for (_, stop), (first, _) in pairwise(ranges))
