"""The judge is judged: it finds nothing wrong with a right outcome, and notices any single mistake in one."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chaos.oracle import (
    _FACTOR,
    Stream,
    content_hash,
    extend_content,
    mix_values,
    wrong_outputs,
    wrong_state,
    wrong_tasks,
)

STREAM = Stream(rows=40, keys=17, seed=5)
LAST = 3


def right_outputs() -> pa.Table:
    tables = [
        pa.table(
            {
                "key": output.key,
                "increment": output.increment,
                "count": output.count,
                "content": output.content,
                "_batch": np.full(len(output.key), output.batch),
                "_task": (output.key % 4).astype(np.int32),
            }
        )
        for output in STREAM.outputs(LAST)
    ]
    return pa.concat_tables(tables)


OUTPUTS, STATE = right_outputs(), STREAM.state(LAST)


def with_value(rows: pa.Table, name: str, row: int, value: int) -> pa.Table:
    column = rows[name].to_numpy().copy()
    column[row] = value
    return rows.set_column(rows.column_names.index(name), name, pa.array(column, rows[name].type))


def values_of_a_key() -> tuple[Any, int]:
    """All values of one key, in order, and its row in the state."""
    values = np.concatenate([STREAM.values_of(batch) for batch in range(LAST + 1)])
    keys = STREAM.key_of(values)
    return values[keys == keys[0]], STATE["key"].to_numpy().tolist().index(keys[0])


def with_content(row: int, values: Any) -> pa.Table:
    """The state as if the key in that row had met these values."""
    content = np.zeros(1, np.uint64)
    extend_content(content, np.zeros(len(values), np.int64), values)
    return with_value(STATE, "content", row, int(content.view(np.int64)[0]))


def test_a_right_outcome_is_right_in_any_order() -> None:
    shuffled = np.random.default_rng(1).permutation(OUTPUTS.num_rows)
    assert wrong_outputs(STREAM, LAST, OUTPUTS.take(shuffled)) == []
    assert wrong_state(STREAM, LAST, STATE.take(np.arange(STATE.num_rows)[::-1])) == []


def test_the_state_is_what_counting_row_by_row_gives() -> None:
    counted: dict[int, tuple[int, int]] = {}
    for value in np.concatenate([STREAM.values_of(batch) for batch in range(LAST + 1)]):
        key = int(STREAM.key_of(np.array([value]))[0])
        count, content = counted.get(key, (0, 0))
        counted[key] = count + 1, (content * int(_FACTOR) + int(mix_values(np.array([value]))[0])) % 2**64
    found = {row["key"]: (row["count"], row["content"] % 2**64) for row in STATE.to_pylist()}
    assert found == counted


@given(value=st.integers(0, 10**9))
def test_spark_is_given_the_same_keys(value: int) -> None:
    key = eval(STREAM.key_expression(), {"value": value})  # noqa: S307 - the expression means the same in Python
    assert key == STREAM.key_of(np.array([value]))[0]


@given(row=st.integers(0, OUTPUTS.num_rows - 1))
def test_a_lost_and_a_doubled_result_are_noticed(row: int) -> None:
    lost = pa.concat_tables([OUTPUTS.slice(0, row), OUTPUTS.slice(row + 1)])
    assert wrong_outputs(STREAM, LAST, lost)
    assert wrong_outputs(STREAM, LAST, pa.concat_tables([OUTPUTS, OUTPUTS.slice(row, 1)]))


@given(row=st.integers(0, OUTPUTS.num_rows - 1), name=st.sampled_from(OUTPUTS.column_names), by=st.integers(1, 9))
def test_a_wrong_value_in_a_result_is_noticed(row: int, name: str, by: int) -> None:
    changed = with_value(OUTPUTS, name, row, OUTPUTS[name][row].as_py() ^ by)
    assert wrong_outputs(STREAM, LAST, changed) + wrong_tasks(changed)


@given(row=st.integers(0, STATE.num_rows - 1), name=st.sampled_from(STATE.column_names), by=st.integers(1, 9))
def test_a_wrong_value_in_the_state_is_noticed_and_changes_the_hash(row: int, name: str, by: int) -> None:
    changed = with_value(STATE, name, row, STATE[name][row].as_py() ^ by)
    assert wrong_state(STREAM, LAST, changed)
    assert content_hash(changed) != content_hash(STATE)


def test_one_row_lost_and_another_of_its_key_doubled_are_noticed() -> None:
    mine, row = values_of_a_key()
    assert wrong_state(STREAM, LAST, with_content(row, np.concatenate([mine[1:2], mine[1:]])))


def test_two_rows_in_another_order_are_noticed() -> None:
    mine, row = values_of_a_key()
    assert wrong_state(STREAM, LAST, with_content(row, mine)) == []
    assert wrong_state(STREAM, LAST, with_content(row, np.concatenate([mine[1::-1], mine[2:]])))


@pytest.mark.parametrize("batch", [-1, LAST + 1])
def test_results_of_batches_that_do_not_count_are_noticed(batch: int) -> None:
    extra = with_value(OUTPUTS.slice(0, 1), "_batch", 0, batch)
    assert wrong_outputs(STREAM, LAST, pa.concat_tables([OUTPUTS, extra]))
