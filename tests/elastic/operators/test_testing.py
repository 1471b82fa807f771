"""The tester: scaling and crashes do not change the output of deterministic operators."""

import itertools
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from elastic.errors import InvalidJob, OperatorFailed
from elastic.operators import Context, CountByKey, KeyedOperator, Operator, State, ToSelf, ValueState
from elastic.operators.testing import Crash, InputBatch, NotReplayable, OperatorTester, Scale
from migration import UnknownNode
from tests.elastic.operators.samples import INPUT, PIPELINES, Windows, batches


def new_tester(name: str, **options: Any) -> OperatorTester:
    return OperatorTester(PIPELINES[name], key="key", schema=INPUT, tasks=6, watermark=("n", 5), **options)


@pytest.mark.parametrize("name", PIPELINES)
@settings(max_examples=settings().max_examples // 3)
@given(data=st.data())
def test_scaling_and_crashing_change_nothing(name: str, data: st.DataObject) -> None:
    scenario = [*data.draw(batches), [], [], []]
    undisturbed, disturbed = new_tester(name), new_tester(name, snapshot_every=data.draw(st.integers(1, 4)))
    expected = undisturbed.run(scenario)
    nodes = 2
    lived: list[Any] = []
    for batch in scenario:
        if data.draw(st.booleans()):
            nodes = data.draw(st.integers(1, 6))
            lived.append(Scale(nodes))
        lived.append(batch)
    got = disturbed.run(lived[:3])
    for item in lived[3:]:
        if data.draw(st.booleans()):
            disturbed.run([Crash(data.draw(st.sampled_from(disturbed.assignment.nodes)))])
        got += disturbed.run([item])
    assert got == expected
    assert disturbed.results == undisturbed.results
    if name not in ("stateless first", "windows"):
        keys = ("odd", "even") if name == "two stages" else "abcdefg"
        assert [disturbed.state(key) for key in keys] == [undisturbed.state(key) for key in keys]


@settings(max_examples=settings().max_examples // 3)
@given(batches)
def test_counts_are_those_of_a_counter(scenario: list[list[dict[str, Any]]]) -> None:
    made = new_tester("count")
    emitted = made.run(scenario)
    every = [row["key"] for batch in scenario for row in batch]
    assert {key: made.state(key) for key in "abcdefg"} == {key: every.count(key) for key in "abcdefg"}
    assert {row["key"]: row["count"] for row in emitted} == {key: every.count(key) for key in every}


@settings(max_examples=settings().max_examples // 3)
@given(st.lists(st.integers(1, 5_000), min_size=1, max_size=5))
def test_rows_to_self_run_until_there_are_none(numbers: list[int]) -> None:
    made = new_tester("feedback")
    made.run([[{"key": f"{number}", "n": number} for number in set(numbers)]])
    assert {number: made.state(f"{number}")["steps"] for number in numbers} == {
        number: number.bit_length() for number in numbers
    }


def test_windows_are_emitted_when_the_watermark_passes_them() -> None:
    made = OperatorTester(Windows(), key="key", schema=INPUT, tasks=1, watermark=("n", 5))
    rows = [[{"key": "a", "n": n} for n in numbers] for numbers in ([3, 8, 14], [9, 26], [7, 35])]
    # The watermark after each batch is 9, 21 and 30: 9 comes late to its own, 7 to a window that is gone.
    assert made.run(rows[:1]) == []
    assert made.run(rows[1:2]) == [{"window_end": 10, "total": 11}, {"window_end": 20, "total": 14}]
    assert made.run(rows[2:]) == [{"window_end": 30, "total": 26}]


def test_batches_are_a_second_apart_by_default() -> None:
    class Clock(Operator):
        output_schema = "now long, watermark long"

        def handle_batch(self, _rows: Any, _state: State, context: Context) -> tuple[int, int | None]:
            return context.timestamp_ms, context.watermark_ms

    made = OperatorTester(Clock(), key="k")
    row = [{"k": 1}]
    out = made.run([row, row, InputBatch(row, timestamp_ms=9_000, next_watermark_ms=4), row])
    assert [(each["now"], each["watermark"]) for each in out] == [(0, None), (1_000, None), (9_000, None), (10_000, 4)]
    with pytest.raises(InvalidJob, match="earlier than its predecessor"):
        made.run([InputBatch(row, timestamp_ms=5)])


def test_an_operator_that_reads_a_clock_is_not_replayable() -> None:
    clock = itertools.count()

    class Impure(KeyedOperator):
        output_schema = "n long"

        def handle_key(self, _key: Any, _rows: Any, _state: ValueState, _context: Context) -> tuple[int]:
            return (next(clock),)

    with pytest.raises(NotReplayable, match="not deterministic: in batch 0") as caught:
        OperatorTester(Impure(), key="k", tasks=1, nodes=1).run([[{"k": 1}], Crash("node-1")])
    assert (caught.value.batch, caught.value.task) == (0, 0)


def test_an_operator_that_never_terminates_is_stopped() -> None:
    class Echo(Operator):
        emits = frozenset({"self"})

        def handle_batch(self, rows: Any, _state: State, _context: Context) -> ToSelf:
            return ToSelf(rows)

    with pytest.raises(InvalidJob, match="after 50 rounds"):
        OperatorTester(Echo(), key="k", max_rounds=50).run([[{"k": 1}]])


def test_scaling_moves_states_and_keeps_the_rest_where_it_is() -> None:
    made = OperatorTester(CountByKey(), key="k", tasks=32, nodes=4)
    made.run([[{"k": number} for number in range(500)], Scale(5)])
    (plan,) = made.plans
    assert made.assignment == plan.target
    assert 0 < plan.cost_share < 1
    assert all(made.state(number) == 1 for number in range(500))


def test_invalid_scenarios_are_refused() -> None:
    made = OperatorTester(CountByKey(), key="k")
    with pytest.raises(InvalidJob, match="has not run yet"):
        made.state(1)
    with pytest.raises(InvalidJob, match="Give the tester a schema"):
        made.run([[]])
    made.run([[{"k": 1}]])
    with pytest.raises(UnknownNode, match="node-9"):
        made.run([Crash("node-9")])


def test_tables_and_dataframes_are_batches_too() -> None:
    import pandas as pd
    import pyarrow as pa

    for batch in (pa.table({"k": [1, 1]}), pd.DataFrame({"k": [1, 1]}), pa.record_batch({"k": [1, 1]})):
        made = OperatorTester(CountByKey(), key="k")
        assert made.run([batch]) == [{"k": 1, "count": 2}]
        made.close()


def test_rows_of_several_key_columns_find_their_state() -> None:
    made = OperatorTester(CountByKey(), key=["a", "b"])
    made.run([[{"a": "x", "b": 1}, {"a": "x", "b": None}, {"a": "x", "b": 1}]])
    assert (made.state(("x", 1)), made.state(("x", None)), made.state(("x", 2))) == (2, 1, 0)


def test_an_operator_failure_has_the_traceback_of_the_operator() -> None:
    class Fragile(Operator):
        def handle_batch(self, rows: Any, _state: State, _context: Context) -> None:
            raise ZeroDivisionError(rows.num_rows)

    with pytest.raises(OperatorFailed, match="ZeroDivisionError: 1") as caught:
        OperatorTester(Fragile(), key="k").run([[{"k": "first"}]])
    assert "in handle_batch" in caught.value.cause_text
    assert "execution.py" not in caught.value.cause_text
    assert caught.value.row == '{"k": "first"}'
