"""Units: tasks and sets of keys, as values and in the names of objects."""

import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from storage.errors import InvalidStorageInput
from storage.state import Unit
from storage.stores.keys import checked_key

units = st.builds(Unit, st.integers(0, 10**6), st.text(max_size=8))


def test_a_task_and_a_set_of_its_keys_have_readable_segments() -> None:
    assert Unit.of_task(17).segment == "task-00017"
    assert Unit.of_keys(17, name="hot").segment == "task-00017-keys-hot"


def test_units_sort_by_task_and_the_task_comes_before_its_sets() -> None:
    mixed = [Unit.of_task(10), Unit.of_keys(2, "b"), Unit.of_task(2), Unit.of_keys(2, "a")]
    assert sorted(mixed) == [Unit.of_task(2), Unit.of_keys(2, "a"), Unit.of_keys(2, "b"), Unit.of_task(10)]


@given(units)
def test_a_unit_survives_json(unit: Unit) -> None:
    assert Unit.from_json(json.loads(json.dumps(unit.to_json()))) == unit


@given(units)
def test_every_segment_can_be_part_of_a_key(unit: Unit) -> None:
    checked_key(f"folder/{unit.segment}.state")


@given(units, units)
def test_different_units_have_different_segments(one: Unit, other: Unit) -> None:
    assert (one == other) == (one.segment == other.segment)


@pytest.mark.parametrize("task", [-1, 1.0, "1", True, None])
def test_what_is_no_number_of_a_task_is_refused(task: object) -> None:
    with pytest.raises(InvalidStorageInput, match="whole number from 0 on"):
        Unit.of_task(task)  # type: ignore[arg-type]


def test_a_set_of_keys_needs_a_name() -> None:
    with pytest.raises(InvalidStorageInput, match="Name it"):
        Unit.of_keys(3, "")
