"""Identifiers of units, as values and in the keys of objects."""

import json
import pickle
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from storage.errors import InvalidStorageInput
from storage.state import TASKS_PER_STAGE, UnitId
from storage.stores.keys import check_key

unit_ids = st.builds(UnitId, st.integers(0, 50), st.integers(0, TASKS_PER_STAGE - 1), st.booleans())


def test_stored_names_hold_the_number_of_a_unit() -> None:
    assert UnitId(0, 17).segment == "task-00017"
    assert UnitId(2, 17).segment == "task-2097169"
    assert UnitId(2, 17).to_json() == [2 * 2**20 + 17]
    assert UnitId(2, 17, guests=True).to_json() == [2 * 2**20 + 2**19 + 17]


def test_a_unit_reads_as_a_task_and_the_stage_only_where_it_is_not_the_first() -> None:
    assert str(UnitId(0, 7)) == "task 7"
    assert str(UnitId(1, 7)) == "task 7 of stage 1"
    assert str(UnitId(1, 7, guests=True)) == "guests of task 7 of stage 1"


@given(unit_ids)
def test_number_json_and_pickle_identify_a_unit(unit: UnitId) -> None:
    assert UnitId.from_number(unit.number) == unit
    assert UnitId.from_json(json.loads(json.dumps(unit.to_json()))) == unit
    assert pickle.loads(pickle.dumps(unit)) == unit  # noqa: S301 # our own bytes


@given(unit_ids, unit_ids)
def test_units_sort_as_their_numbers_do(one: UnitId, other: UnitId) -> None:
    assert (one < other) == (one.number < other.number)
    assert (one == other) == (one.number == other.number) == (one.segment == other.segment)


@given(unit_ids)
def test_every_segment_can_be_part_of_a_key(unit: UnitId) -> None:
    check_key(f"folder/{unit.segment}.state")


def test_numpy_integers_become_python_integers() -> None:
    for unit in (UnitId(np.int64(1), np.uint8(7)), UnitId.from_number(np.int64(2**20 + 7))):
        assert unit == UnitId(1, 7)
        assert [type(part) for part in unit] == [int, bool, int]


@pytest.mark.parametrize("value", [1.0, "1", True, None, np.float64(1), np.bool_(True)])
def test_a_value_that_is_no_integer_is_refused(value: Any) -> None:
    with pytest.raises(InvalidStorageInput, match="Give an integer from 0 on"):
        UnitId(value, 0)
    with pytest.raises(InvalidStorageInput, match="Give an integer from 0 on"):
        UnitId(0, value)
    with pytest.raises(InvalidStorageInput, match="Give an integer from 0 on"):
        UnitId.from_number(value)


@pytest.mark.parametrize(("stage", "task"), [(-1, 0), (0, -1), (0, TASKS_PER_STAGE), (1, TASKS_PER_STAGE)])
def test_a_stage_or_task_out_of_range_is_refused(stage: int, task: int) -> None:
    with pytest.raises(InvalidStorageInput, match="Count stages from 0"):
        UnitId(stage, task)


@pytest.mark.parametrize("number", [-1, -TASKS_PER_STAGE])
def test_a_negative_number_names_no_unit(number: int) -> None:
    with pytest.raises(InvalidStorageInput, match="Count stages from 0"):
        UnitId.from_number(number)
