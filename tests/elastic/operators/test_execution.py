"""Single steps: what is called, where rows go, what is refused."""

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
    Moment,
    Operator,
    Stage,
    State,
    Timer,
    ToNext,
    ToSelf,
    ToSink,
    ValueState,
    schema_of,
    stateless,
)
from elastic.operators.execution import StageRunner, StepOutput
from elastic.operators.stages import runners_of, stages_of

SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64())])
ROWS = pa.table({"k": ["b", "a", "b"], "n": [1, 2, 3]}, schema=SCHEMA)


def at(batch: int = 0, round_: int = 0, now: int = 0, watermark: int | None = None) -> Moment:
    return Moment(5, 5, batch, round_, now, None, watermark)


def runner(operator: Operator, **options: Any) -> StageRunner:
    return StageRunner(operator, **{"key": ("k",), "input_schema": SCHEMA, "name": "sample", **options})


def once(operator: Operator, rows: pa.Table = ROWS, **options: Any) -> StepOutput:
    made = runner(operator, **options)
    return made.step(made.new_state(), [rows], at())


class Giving(Operator):
    """Gives whatever it is told to."""

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
def test_rows_may_be_given_in_many_shapes(item: Any) -> None:
    for sent in (item, ToSink(item)):
        sink = once(Giving(sent)).sink
        assert sink is not None
        assert sink.to_pylist() == ONE
        assert sink.schema == SCHEMA


def test_rows_keep_their_order_across_shapes() -> None:
    items = [("a", 1), ("b", 2), {"k": "c", "n": None}, pa.table({"k": ["d"], "n": [4]}), ("e", 5), [("f", 6)]]
    sink = once(Giving(*items)).sink
    assert sink is not None
    assert sink["k"].to_pylist() == list("abcdef")
    assert sink["n"].to_pylist() == [1, 2, None, 4, 5, 6]


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ({"k": "x", "m": 1}, "no column is declared for"),
        ({"k": "x"}, "a row has no \\['n'\\]"),
        ([ONE[0], {"n": 7}], "a row has no \\['k'\\]"),
        (("x",), "a tuple of 1 values for 2 columns"),
        (pa.table({"k": ["x"]}), "not \\['k', 'n'\\]"),
        ({"k": "x", "n": "many"}, "rows to sink"),
        ({"k": "x", "n": 2**70}, "rows to sink"),
        (7, "not rows"),
        ([("x", 1), {"k": "x"}], "only dicts, or only tuples"),
        (ToSelf(ONE), "rows to self, which it does not declare"),
        (ToNext(ONE), "rows to next, which it does not declare"),
    ],
)
def test_rows_that_do_not_fit_are_refused(item: Any, why: str) -> None:
    with pytest.raises(InvalidOutput, match=why) as caught:
        once(Giving(item))
    assert caught.value.operator == "sample"


def test_a_null_where_none_is_declared_is_refused() -> None:
    operator = Giving({"k": None, "n": 1})
    operator.output_schema = "k string not null, n long"
    with pytest.raises(InvalidOutput, match="has nulls"):
        once(operator)


def test_plain_rows_go_to_the_next_stage_if_there_is_one() -> None:
    output = once(Giving(ONE, ToSink(("s", 1))), next_schema=SCHEMA)
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
def test_keys_come_in_order_of_first_appearance_with_their_rows(input_format: str) -> None:
    operator = Seen()
    operator.input_format = input_format  # type: ignore[misc]
    sink = once(operator).sink
    assert sink is not None
    assert sink["seen"].to_pylist() == ["b [1, 3]", "a [2]"]


floats = st.sampled_from([0.0, -0.0, math.nan, 1.5, None])


@given(st.lists(st.tuples(floats, st.sampled_from(["x", "", None]), st.sampled_from([{"y": 1}, {"y": None}, None]))))
def test_equal_keys_are_one_key_whatever_their_type_also_after_storage(keys: list[tuple[Any, ...]]) -> None:
    schema = schema_of("a double, b string, c struct<y: long>, n long")
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
    """Sets what it is told, and says what goes off."""

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


def test_timers_go_off_after_the_rows_of_round_zero_in_order() -> None:
    made = runner(Alarm())
    state = made.new_state()
    rows = pa.table({"k": ["z", "y", "later"], "n": [4, 2, 9]})
    assert texts(made.step(state, [rows], at(round_=1, now=5))) == []
    assert not made.due(state, at(1, round_=1, now=5))
    assert made.due(state, at(1, now=5))
    more = pa.table({"k": ["now"], "n": [3]})
    assert texts(made.step(state, [more], at(1, now=5))) == ["y@2", "now@3", "z@4"]
    assert not made.due(state, at(2, now=8))
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


def test_wrong_declarations_are_refused() -> None:
    class ToNobody(Giving):
        emits = frozenset({"sink"})

    with pytest.raises(InvalidJob, match="emits cannot name"):
        runner(ToNobody())
    with pytest.raises(UnknownColumn, match="'kk'"):
        runner(Giving(), key=("kk",))
    with pytest.raises(InvalidJob, match="on_error"):
        runner(Giving(), on_error="ignore")
    operator = Giving()
    operator.input_format = "polars"  # type: ignore[misc]
    with pytest.raises(InvalidJob, match="input_format"):
        runner(operator)


def test_pandas_is_asked_for_only_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    once(Giving(ONE))
    operator = Seen()
    operator.input_format = "pandas"  # type: ignore[misc]
    with pytest.raises(MissingPackage, match="pandas"):
        runner(operator)


def test_operators_without_a_state_set_no_timers_and_have_none_to_store() -> None:
    class Sneaky(Giving):
        stateless = True

        def handle_batch(self, _rows: Any, _state: State, context: Context) -> Iterator[Any]:
            context.set_timer(1)
            yield from ()

    with pytest.raises(OperatorFailed, match="sets no timers"):
        once(Sneaky())
    made = runner(stateless(lambda rows: rows, SCHEMA))
    assert made.capture(made.new_state()) is None


def test_stages_have_names_keys_and_schemas_of_their_own() -> None:
    stages = stages_of([Giving(), Stage(Giving(), key="n", name="last"), Giving()], "k")
    assert [(stage.name, stage.key) for stage in stages] == [("Giving", ("k",)), ("last", ("n",)), ("Giving-2", ("k",))]
    runners = runners_of(stages, pa.schema([("k", pa.string())]))
    assert [made.input_schema.names for made in runners] == [["k"], ["k", "n"], ["k", "n"]]
    assert [made.emits_rows_to_stages for made in runners] == [True, True, False]
    silent = Giving()
    silent.output_schema = None  # type: ignore[assignment]
    with pytest.raises(InvalidJob, match="declares no rows"):
        runners_of(stages_of([silent, Giving()], "k"), SCHEMA)
    with pytest.raises(InvalidJob, match="two stages are named"):
        stages_of([Stage(Giving(), name="x"), Stage(Giving(), name="x")], "k")
    with pytest.raises(InvalidJob, match="without operators"):
        stages_of([], "k")
    assert stages_of(stateless(len, SCHEMA), "k")[0].name == "len"


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
