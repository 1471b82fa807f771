"""Splitting: every row once, in order, with its slot."""

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from elastic.errors import InvalidJob
from elastic.routing import IntervalRouting, slot_of, split, stage_of, task_of_slot
from migration import Assignment

SLOTS = st.sampled_from([0, 1, 2, 255, 256, 65_536, 2**20, 2**20 + 3, 2**40])


def numbered(count: int) -> pa.Table:
    return pa.table({"number": np.arange(count), "text": [f"row {number}" for number in range(count)]})


@given(st.lists(SLOTS))
def test_every_slot_gets_its_rows_in_the_order_that_they_came_in(slots: list[int]) -> None:
    parts = split(numbered(len(slots)), np.array(slots, np.int64))
    expected = {slot: [number for number, other in enumerate(slots) if other == slot] for slot in sorted(set(slots))}
    assert {slot: rows["number"].to_pylist() for slot, rows in parts.slices().items()} == expected
    assert list(parts.slots) == list(expected)
    assert (parts.offsets[0], parts.offsets[-1]) == (0, len(slots))


@given(st.lists(st.integers(0, 11), min_size=1), st.integers(1, 5))
def test_nodes_get_their_slots_and_together_they_get_all_rows_once(tasks: list[int], nodes: int) -> None:
    routing = IntervalRouting(Assignment.even(12, nodes))
    shares = split(numbered(len(tasks)), np.array(tasks, np.int64)).for_node(routing)
    for node, share in shares.items():
        assert {routing.owners(slot) for slot in share.slots} == {(node,)}
        for slot, rows in share.slices().items():
            assert rows["number"].to_pylist() == [number for number, task in enumerate(tasks) if task == slot]
    assert sum(share.table.num_rows for share in shares.values()) == len(tasks)


def test_slices_and_shares_are_views_of_the_one_sorted_table() -> None:
    parts = split(numbered(1_000), np.arange(1_000, dtype=np.int64) % 8)
    whole = parts.table["number"].chunk(0).buffers()[1].address
    for rows in parts.slices().values():
        assert rows["number"].chunk(0).buffers()[1].address == whole
    for share in parts.for_node(IntervalRouting(Assignment.even(8, 3))).values():
        assert share.table["number"].chunk(0).buffers()[1].address == whole


def test_record_batches_and_chunks_are_split_like_tables() -> None:
    table, slots = numbered(100), np.arange(100, dtype=np.int64) % 3
    expected = split(table, slots).slices()
    (batch,) = table.to_batches()
    chunked = pa.concat_tables([table.slice(0, 33), table.slice(33)])
    assert split(batch, slots).slices() == split(chunked, slots).slices() == expected


def test_no_rows_split_into_nothing() -> None:
    parts = split(numbered(0), np.array([], np.int64))
    assert (parts.slices(), parts.for_node(IntervalRouting(Assignment.even(4, 2)))) == ({}, {})
    assert parts.table.schema == numbered(0).schema


def test_one_slot_per_row_is_needed() -> None:
    with pytest.raises(InvalidJob, match="3 slots for 2 rows"):
        split(numbered(2), np.array([1, 2, 3]))


@given(st.integers(0, 2**20), st.integers(0, 2**20 - 1))
def test_a_slot_tells_its_stage_and_its_task(stage: int, task: int) -> None:
    slot = slot_of(stage, task)
    assert (stage_of(slot), task_of_slot(slot)) == (stage, task)
