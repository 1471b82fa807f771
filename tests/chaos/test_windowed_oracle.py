"""The windowed operator does what its oracle says, however nodes come and go, and the oracle notices any mistake."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.operators.testing import Crash, OperatorTester, Scale
from tests.chaos.deaths import Deaths
from tests.chaos.windowed_oracle import ECHO, TOTAL, WindowedStream, expected_rows, wrong_outputs, wrong_state
from tests.chaos.windowing import Windowing

STREAM = WindowedStream(rows=300, keys=17, seed=5)
LAST = 7
SCHEMA = pa.schema({"key": pa.int64(), "value": pa.int64(), "ts": pa.timestamp("us", "UTC"), "hops": pa.int64()})
STATE, RESULTS = expected_rows(STREAM, LAST)


def with_places(results: pa.Table) -> pa.Table:
    """Results as a sink has them, with batch and task."""
    tasks = (results["key"].to_numpy() % 4).astype(np.int32)
    return results.append_column("_batch", pa.array(np.zeros(len(tasks), np.int64))).append_column(
        "_task", pa.array(tasks)
    )


def source_rows(batch: int) -> pa.Table:
    values = STREAM.values_of(batch)
    times = pa.array(STREAM.time_of(values) * 1_000).cast(SCHEMA.field("ts").type)
    return pa.table([STREAM.key_of(values), values, times, np.zeros(len(values), np.int64)], schema=SCHEMA)


def with_change(rows: pa.Table, name: str, row: int, by: int) -> pa.Table:
    column = rows[name].to_numpy().copy()
    column[row] ^= by
    return rows.set_column(rows.column_names.index(name), name, pa.array(column))


def play(story: list[Any]) -> tuple[pa.Table, pa.Table]:
    operator = Windowing(STREAM, Deaths(""))
    tester = OperatorTester(operator, key="key", schema=SCHEMA, tasks=8, watermark=("ts", STREAM.delay_ms))
    results = pa.Table.from_pylist(tester.run(story), RESULTS.schema)
    state = [row for key in range(STREAM.keys) for row in tester.state(key)]
    return pa.Table.from_pylist(state, STATE.schema), results


@pytest.mark.parametrize("faults", [[], [Scale(3), Crash("node-1")], [Crash("node-1"), Scale(1)]])
def test_the_operator_ends_with_the_state_and_the_results_of_the_oracle(faults: list[Any]) -> None:
    rows = [source_rows(batch) for batch in range(LAST + 1)]
    state, results = play([*rows[:3], *faults[:1], *rows[3:5], *faults[1:], *rows[5:]])
    assert wrong_state(STREAM, LAST, state) == []
    assert wrong_outputs(STREAM, LAST, with_places(results)) == []


def test_the_stream_has_open_and_closed_windows_late_rows_and_two_later_rounds() -> None:
    windows, totals = STATE["window"].to_numpy(), STATE["window"].to_numpy() == TOTAL
    closed = RESULTS["window"].to_numpy()
    assert 0 < windows.max() > closed.max() > 0
    assert STATE["late"].to_numpy()[totals].sum() == sum(STREAM.is_late(np.arange((LAST + 1) * STREAM.rows))) > 0
    assert set(RESULTS["count"].to_numpy()[closed == ECHO]) == {1, 2}


@given(value=st.integers(0, 10**9))
def test_spark_is_given_the_same_event_times(value: int) -> None:
    names = {"value": value, "IF": lambda condition, then, otherwise: then if condition else otherwise}
    assert eval(STREAM.time_expression(), names) == STREAM.time_of(np.array([value]))[0]  # noqa: S307


def test_rows_in_another_order_are_noticed() -> None:
    batches = [source_rows(batch) for batch in range(LAST + 1)]
    batches[0] = batches[0].take(np.arange(STREAM.rows)[::-1])
    assert wrong_state(STREAM, LAST, play(batches)[0])


@given(row=st.integers(0, RESULTS.num_rows - 1), name=st.sampled_from(RESULTS.column_names), by=st.integers(1, 9))
def test_a_lost_a_doubled_and_a_wrong_result_are_noticed(row: int, name: str, by: int) -> None:
    lost = pa.concat_tables([RESULTS.slice(0, row), RESULTS.slice(row + 1)])
    doubled = pa.concat_tables([RESULTS, RESULTS.slice(row, 1)])
    changed = with_change(RESULTS, name, row, by)
    assert all(wrong_outputs(STREAM, LAST, with_places(rows)) for rows in (lost, doubled, changed))


@given(row=st.integers(0, STATE.num_rows - 1), name=st.sampled_from(STATE.column_names), by=st.integers(1, 9))
def test_a_wrong_value_in_the_state_is_noticed(row: int, name: str, by: int) -> None:
    assert wrong_state(STREAM, LAST, with_change(STATE, name, row, by))
