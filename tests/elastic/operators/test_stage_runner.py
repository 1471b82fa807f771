"""Single steps: what the runner calls, where rows go, what it refuses."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import hypothesis.strategies as st
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given

from elastic.errors import InvalidJob, InvalidOutput, MissingPackage, OperatorFailed, UnknownColumn
from elastic.operators import (
    Context,
    KeyedOperator,
    Operator,
    Stage,
    State,
    Timer,
    ToNext,
    ToSelf,
    ToSink,
    ValueState,
    stateless,
    to_schema,
)
from elastic.operators.context import Moment
from elastic.operators.stage_runner import StageRunner, StepOutput
from elastic.operators.stages import build_runners, build_stages
from storage.state import UnitId

SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64())])
ROWS = pa.table({"k": ["b", "a", "b"], "n": [1, 2, 3]}, schema=SCHEMA)


def at(batch: int = 0, round_: int = 0, now: int = 0, watermark: int | None = None) -> Moment:
    return Moment(UnitId(0, 5), batch, round_, now, None, watermark)


def runner(operator: Operator, **options: Any) -> StageRunner:
    return StageRunner(operator, **{"key": ("k",), "input_schema": SCHEMA, "name": "sample", **options})


def once(operator: Operator, rows: pa.Table = ROWS, **options: Any) -> StepOutput:
    made = runner(operator, **options)
    return made.step(made.new_state(), [rows], at())


class Emitting(Operator):
    """Emits the given items."""

    output_schema = "k string, n long"

    def __init__(self, *items: Any) -> None:
        self._items = items

    def handle_batch(self, _rows: Any, _state: State, _context: Context) -> Iterator[Any]:
        yield from self._items


ONE = [{"k": "x", "n": 7}]


@pytest.mark.parametrize(
    "item",
    [
        pa.table({"k": ["x"], "n": [7]}),
        pa.table({"n": pa.array([7], pa.int8()), "k": ["x"]}),
        pa.record_batch({"k": ["x"], "n": [7]}),
        pd.DataFrame({"k": ["x"], "n": [7]}),
        ONE,
        ONE[0],
        [("x", 7)],
        ("x", 7),
    ],
    ids=lambda item: type(item).__name__,
)
def test_rows_may_be_emitted_in_many_formats(item: Any) -> None:
    for sent in (item, ToSink(item)):
        sink = once(Emitting(sent)).sink
        assert sink is not None
        assert sink.to_pylist() == ONE
        assert sink.schema == SCHEMA


def test_rows_of_mixed_formats_keep_their_order() -> None:
    items = [("a", 1), ("b", 2), {"k": "c", "n": None}, pa.table({"k": ["d"], "n": [4]}), ("e", 5), [("f", 6)]]
    sink = once(Emitting(*items)).sink
    assert sink is not None
    assert sink["k"].to_pylist() == list("abcdef")
    assert sink["n"].to_pylist() == [1, 2, None, 4, 5, 6]


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ({"k": "x", "m": 1}, "undeclared columns"),
        ({"k": "x"}, "lacks the columns \\['n'\\]"),
        ([ONE[0], {"n": 7}], "lacks the columns \\['k'\\]"),
        (("x",), "a tuple has 1 values for 2 columns"),
        (pa.table({"k": ["x"]}), "expected columns \\['k', 'n'\\]"),
        ({"k": "x", "n": "many"}, "rows to sink"),
        ({"k": "x", "n": 2**70}, "rows to sink"),
        (7, "got a int"),
        ([("x", 1), {"k": "x"}], "only dicts, or only tuples"),
        (ToSelf(ONE), "rows to 'self', which it does not declare"),
        (ToNext(ONE), "rows to 'next', which it does not declare"),
    ],
)
def test_rows_that_do_not_match_the_schema_are_refused(item: Any, why: str) -> None:
    with pytest.raises(InvalidOutput, match=why) as caught:
        once(Emitting(item))
    assert caught.value.operator == "sample"


def test_a_null_in_a_not_null_column_is_refused() -> None:
    operator = Emitting({"k": None, "n": 1})
    operator.output_schema = "k string not null, n long"
    with pytest.raises(InvalidOutput, match="has nulls"):
        once(operator)


def test_plain_rows_go_to_the_next_stage_if_there_is_one() -> None:
    output = once(Emitting(ONE, ToSink(("s", 1))), next_schema=SCHEMA)
    assert output.next is not None
    assert output.next.to_pylist() == ONE
    assert output.sink is not None
    assert output.sink.to_pylist() == [{"k": "s", "n": 1}]
    assert output.self_ is None
    assert output.rows == 3


@pytest.mark.parametrize("result", [None, [], pa.table({"k": pa.array([], "string"), "n": pa.array([], "int64")})])
def test_an_operator_may_return_nothing(result: Any) -> None:
    output = once(stateless(lambda _rows: result, SCHEMA))
    assert (output.sink, output.next, output.self_, output.quarantined) == (None, None, None, None)


def test_an_operator_may_return_instead_of_yielding() -> None:
    sink = once(stateless(lambda rows: rows.slice(1, 1), SCHEMA)).sink
    assert sink is not None
    assert sink.to_pylist() == [{"k": "a", "n": 2}]


class Seen(KeyedOperator):
    """Says which key came with which rows."""

    output_schema = "seen string"

    def handle_key(self, key: Any, rows: Any, state: ValueState, _context: Context) -> tuple[str]:
        state.update(1 + (state.get() or 0))
        numbers = [row["n"] for row in rows] if isinstance(rows, list) else rows["n"].to_numpy().tolist()
        return (f"{key} {numbers}",)


@pytest.mark.parametrize("input_format", ["rows", "arrow", "pandas"])
def test_keys_are_handled_in_order_of_first_appearance_with_their_rows(input_format: str) -> None:
    operator = Seen()
    operator.input_format = input_format  # type: ignore[misc]
    sink = once(operator).sink
    assert sink is not None
    assert sink["seen"].to_pylist() == ["b [1, 3]", "a [2]"]


floats = st.sampled_from([0.0, -0.0, math.nan, 1.5, None])


@given(st.lists(st.tuples(floats, st.sampled_from(["x", "", None]), st.sampled_from([{"y": 1}, {"y": None}, None]))))
def test_equal_keys_are_one_key_whatever_their_type_also_after_storage(keys: list[tuple[Any, ...]]) -> None:
    schema = to_schema("a double, b string, c struct<y: long>, n long")
    made = runner(Seen(), key=("a", "b", "c"), input_schema=schema)
    rows = pa.Table.from_pylist([{"a": a, "b": b, "c": c, "n": 0} for a, b, c in keys], schema)
    state = made.new_state()
    for _ in range(2):
        made.step(state, [rows], at())
        state = made.restore(made.capture(state))
    different = {("nan" if a is not None and math.isnan(a) else a, b, c and tuple(c.values())) for a, b, c in keys}
    assert len(state.value) == len(different)
    assert set(state.value.values()) <= {2}
    assert all(made.lookup(state, key) == 2 for key in keys)


class Alarm(Operator):
    """Sets the given timers, and emits those that fire."""

    output_schema = "text string"
    again: ClassVar[bool] = False

    def handle_batch(self, rows: Any, _state: State, context: Context) -> None:
        for name, at_ms in zip(rows["k"].to_pylist(), rows["n"].to_pylist(), strict=True):
            context.set_timer(at_ms, "processing", name)

    def handle_timer(self, timer: Timer, _state: State, context: Context) -> tuple[str]:
        if self.again:
            context.set_timer(timer.at_ms, timer.kind, timer.name)
        return (f"{timer.name}@{timer.at_ms}",)


def texts(output: StepOutput) -> list[str]:
    return [] if output.sink is None else output.sink["text"].to_pylist()


def test_timers_fire_in_order_after_the_rows_of_round_zero() -> None:
    made = runner(Alarm())
    state = made.new_state()
    rows = pa.table({"k": ["z", "y", "later"], "n": [4, 2, 9]})
    assert texts(made.step(state, [rows], at(round_=1, now=5))) == []
    assert not made.is_due(state, at(1, round_=1, now=5))
    assert made.is_due(state, at(1, now=5))
    more = pa.table({"k": ["now"], "n": [3]})
    assert texts(made.step(state, [more], at(1, now=5))) == ["y@2", "now@3", "z@4"]
    assert not made.is_due(state, at(2, now=8))
    assert texts(made.step(state, [], at(2, now=9))) == ["later@9"]


def test_a_timer_set_by_a_timer_waits_for_the_next_batch() -> None:
    class Again(Alarm):
        again = True

    made = runner(Again())
    state = made.new_state()
    assert texts(made.step(state, [pa.table({"k": ["x"], "n": [1]})], at(now=1))) == ["x@1"]
    assert texts(made.step(state, [], at(1, now=1))) == ["x@1"]


def test_event_timers_wait_for_a_watermark() -> None:
    class Once(Alarm):
        def handle_batch(self, _rows: Any, _state: State, context: Context) -> None:
            context.set_timer(7)
            context.set_timer(8, name="deleted")
            context.delete_timer(name="deleted")

    made = runner(Once())
    state = made.new_state()
    assert texts(made.step(state, [ROWS], at(now=100))) == []
    assert texts(made.step(state, [], at(1, now=100, watermark=6))) == []
    assert texts(made.step(made.restore(made.capture(state)), [], at(2, now=100, watermark=9))) == ["@7"]


def test_invalid_declarations_are_refused() -> None:
    class ToUnknown(Emitting):
        emits = frozenset({"sink"})

    with pytest.raises(InvalidJob, match="unknown destinations"):
        runner(ToUnknown())
    with pytest.raises(UnknownColumn, match="'kk'"):
        runner(Emitting(), key=("kk",))
    with pytest.raises(InvalidJob, match="on_error"):
        runner(Emitting(), on_error="ignore")
    operator = Emitting()
    operator.input_format = "polars"  # type: ignore[misc]
    with pytest.raises(InvalidJob, match="input_format"):
        runner(operator)


def test_pandas_is_required_only_for_its_input_format(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    once(Emitting(ONE))
    operator = Seen()
    operator.input_format = "pandas"  # type: ignore[misc]
    with pytest.raises(MissingPackage, match="pandas"):
        runner(operator)


def test_stateless_operators_set_no_timers_and_store_nothing() -> None:
    class SettingTimers(Emitting):
        stateless = True

        def handle_batch(self, _rows: Any, _state: State, context: Context) -> Iterator[Any]:
            context.set_timer(1)
            yield from ()

    with pytest.raises(OperatorFailed, match="cannot set timers"):
        once(SettingTimers())
    made = runner(stateless(lambda rows: rows, SCHEMA))
    assert made.capture(made.new_state()) is None


def test_every_stage_has_a_name_a_key_and_a_schema() -> None:
    stages = build_stages([Emitting(), Stage(Emitting(), key="n", name="last"), Emitting()], "k")
    assert [(stage.name, stage.key) for stage in stages] == [
        ("Emitting", ("k",)),
        ("last", ("n",)),
        ("Emitting-2", ("k",)),
    ]
    runners = build_runners(stages, pa.schema([("k", pa.string())]))
    assert [made.input_schema.names for made in runners] == [["k"], ["k", "n"], ["k", "n"]]
    assert [made.emits_rows_to_stages for made in runners] == [True, True, False]
    silent = Emitting()
    silent.output_schema = None  # type: ignore[assignment]
    with pytest.raises(InvalidJob, match="declares no schema"):
        build_runners(build_stages([silent, Emitting()], "k"), SCHEMA)
    with pytest.raises(InvalidJob, match="two stages are named"):
        build_stages([Stage(Emitting(), name="x"), Stage(Emitting(), name="x")], "k")
    with pytest.raises(InvalidJob, match="has no operators"):
        build_stages([], "k")
    assert build_stages(stateless(len, SCHEMA), "k")[0].name == "len"


class Echo(Operator):
    """Gives its rows back."""

    output_schema = "k string, n long, more string"

    def handle_batch(self, rows: pa.Table, _state: State, _context: Context) -> pa.Table:
        return rows.select(["k", "n", "more"])


def test_rows_logged_before_a_column_was_added_have_nulls_there() -> None:
    schema = pa.schema([("more", pa.string()), *SCHEMA])
    output = once(Echo(), ROWS, input_schema=schema)
    assert output.sink is not None
    assert output.sink["more"].to_pylist() == [None, None, None]
    assert output.sink["n"].to_pylist() == [1, 2, 3]
