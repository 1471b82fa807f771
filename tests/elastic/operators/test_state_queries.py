"""State can be queried as a table and by key."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from elastic.errors import InvalidJob
from elastic.operators import KeyedColumns, KeyedOperator, Operator
from elastic.operators.calls import UnitState
from elastic.operators.stage_runner import StageRunner

SCHEMA = pa.schema([("k", pa.string()), ("d", pa.int32())])


class Point(NamedTuple):
    """A value with fields."""

    x: int
    y: float


def runner(kind: type[Operator] = Operator, key: tuple[str, ...] = ("k",)) -> StageRunner:
    return StageRunner(kind(), key=key, input_schema=SCHEMA, name="sample")


def rows(value: Any, kind: type[Operator] = Operator, key: tuple[str, ...] = ("k",)) -> list[dict[str, Any]]:
    table = runner(kind, key).state_rows(UnitState(value))
    listed: list[dict[str, Any]] = table.to_pylist()
    return listed


def test_a_state_is_a_table() -> None:
    keyed = KeyedColumns("k string", {"n": "int64"})
    keyed.rows_for(["a"])
    table = pa.table({"k": ["a"], "n": [0]})
    for value in (table, table.to_batches()[0], keyed, {"k": np.array(["a"]), "n": np.array([0])}):
        assert rows(value) == [{"k": "a", "n": 0}]
    assert rows({"a": 1}) == [{"k": "a", "value": 1}]
    assert rows(None) == []
    assert rows(np.array([1, 2])) == [{"value": 1}, {"value": 2}]
    assert rows(7) == [{"value": "7"}]


def test_the_states_of_keys_are_rows_with_the_key_columns() -> None:
    assert rows({"a": 1, None: 2}, KeyedOperator) == [{"k": "a", "value": 1}, {"k": None, "value": 2}]
    two = ("k", "d")
    assert rows({("a", 1): Point(2, 0.5)}, KeyedOperator, two) == [{"k": "a", "d": 1, "x": 2, "y": 0.5}]
    assert rows({"a": {"n": 1}, "b": {"m": 2}}, KeyedOperator) == [
        {"k": "a", "n": 1, "m": None},
        {"k": "b", "n": None, "m": 2},
    ]
    assert rows({"a": {"k": 1}}, KeyedOperator) == [{"k": "a", "value": {"k": 1}}]
    assert rows({"a": 1, "b": "x"}, KeyedOperator) == [{"k": "a", "value": "1"}, {"k": "b", "value": "'x'"}]
    assert rows({}, KeyedOperator) == []
    assert runner(KeyedOperator, two).state_rows(UnitState({("a", 1): 1})).schema.types[1] == pa.int32()


def test_a_single_key_can_be_looked_up() -> None:
    table = pa.table({"k": ["a", "b", None, "a"], "n": [1, 2, 3, 4]})
    made = runner()
    assert made.lookup(UnitState(table), "a") == [{"k": "a", "n": 1}, {"k": "a", "n": 4}]
    assert made.lookup(UnitState(table), None) == [{"k": None, "n": 3}]
    assert made.lookup(UnitState(table), "z") is None
    assert made.lookup(UnitState({"a": 5}), ("a",)) == 5
    assert made.lookup(UnitState(None), "a") is None
    assert runner(KeyedOperator, ("k", "d")).lookup(UnitState({("a", 1): 5}), ("a", 1)) == 5
    with pytest.raises(InvalidJob, match=r"lookup\(\)"):
        made.lookup(UnitState(7), "a")
