"""State is divided by key: what leaves one unit arrives in another, with its timers, and nothing else moves."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from elastic.core.pipeline import describe_pipeline
from elastic.errors import DivisionFailed, IndivisibleState, InvalidJob
from elastic.operators import Context, CountByKey, KeyedColumns, KeyedOperator, Operator, Stage, State, ValueState
from elastic.operators.calls import UnitState
from elastic.operators.context import Moment
from elastic.operators.keys import sort_key
from elastic.operators.stage_runner import StageRunner
from elastic.operators.stateless import StatelessOperator
from elastic.operators.testing import OperatorTester
from elastic.operators.timers import Timer
from elastic.routing import hash_key, hash_keys
from elastic.routing.hashing import is_among
from storage.codec import Secret, pack, unpack
from storage.state import UnitId
from tests.elastic.operators.test_columns import KEY_TYPES, both_kernels

SECRET = Secret.of("a secret for parts of states")
NOW = Moment(UnitId(0, 0), 0, 0, 0)
NONE = np.zeros(0, np.int64)
ROUTABLE = sorted(set(KEY_TYPES) - {"uint64"})


class Ages(KeyedOperator):
    """Counts the rows of a key, and sets a timer of each kind for it."""

    def handle_key(self, key: Any, rows: Any, state: ValueState, context: Context) -> None:
        state.update((state.get() or 0) + len(rows))
        context.set_timer(1_000 + len(rows), "event", "age")
        context.set_timer(5_000, "processing", str(type(key)))


class Seen(KeyedOperator):
    """Has timers of keys that have no value."""

    def handle_key(self, _key: Any, _rows: Any, _state: ValueState, context: Context) -> None:
        context.set_timer(7, "event")


class Lines(Operator):
    """Keeps all rows as an Arrow table that is replaced, never changed, and None before the first row."""

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> None:
        rows = rows.combine_chunks()
        state.value = rows if state.value is None else pa.concat_tables([state.value, rows])

    def part(self, state: State, hashes: NDArray[np.int64]) -> pa.Table | None:
        if state.value is None:
            return None
        mask = is_among(hash_keys([state.value[name] for name in self.key]), hashes)
        parted = state.value.filter(pa.array(mask))
        state.value = state.value.filter(pa.array(~mask))
        return parted

    def join(self, state: State, part: pa.Table | None) -> None:
        if part is not None:
            state.value = part if state.value is None else pa.concat_tables([state.value, part])


class PerWindow(Operator):
    """Counts by key and window: the key of the stage is one of two key columns of the state."""

    def initial_state(self) -> KeyedColumns:
        keys = pa.schema([("window", pa.int64()), *(self.input_schema.field(name) for name in self.key)])  # type: ignore[union-attr]
        return KeyedColumns(keys, {"rows": "int64"})

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> None:
        window = pa.array(np.arange(rows.num_rows) % 3)
        state.value.count("rows", state.value.rows_for(rows.append_column("window", window)))


DIVISIBLE: dict[str, Callable[[], Operator]] = {
    "keyed": Ages,
    "timers only": Seen,
    "columns": lambda: CountByKey(silent=True),
    "columns with another key": PerWindow,
    "declared": Lines,
}


def runner_of(operator: Operator, schema: pa.Schema) -> StageRunner:
    return StageRunner(operator, key=schema.names, input_schema=schema, name="sample")


def through_bytes(runner: StageRunner, part: UnitState) -> UnitState:
    data = pack({"part": runner.capture(part)}, key="k", secret=SECRET)
    return runner.restore(unpack(data, key="k", secret=SECRET).parts["part"])


def fill(runner: StageRunner, rows: pa.Table) -> UnitState:
    state = runner.new_state()
    if rows.num_rows:
        runner.step(state, [runner.combine(rows)], NOW)
    return state


def contents(runner: StageRunner, *states: UnitState) -> tuple[list[str], list[Any]]:
    """What states hold together: their rows and their timers, in an order that does not depend on the units."""
    rows = [str(row) for state in states for row in runner.state_rows(state).to_pylist()]
    timers = [
        (kind, at_ms, name, sort_key(key))
        for state in states
        for kind in ("event", "processing")
        for at_ms, key, name in state.timers.items(kind)
    ]
    return sorted(rows), sorted(timers, key=str)


@st.composite
def keyed_rows(draw: st.DrawFn) -> pa.Table:
    """Rows of one to three key columns of any type."""
    names = draw(st.lists(st.sampled_from(ROUTABLE), min_size=1, max_size=3) | st.just(["string"]))
    row = st.tuples(*(st.none() | KEY_TYPES[name][1] for name in names))
    rows = draw(st.lists(row, max_size=15))
    schema = pa.schema([(f"key{place}", KEY_TYPES[name][0]) for place, name in enumerate(names)])
    return pa.Table.from_arrays(
        [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(schema.types)], schema=schema
    )


@pytest.mark.parametrize("name", DIVISIBLE)
@settings(max_examples=settings().max_examples // 2)
@given(rows=keyed_rows(), data=st.data())
def test_what_one_unit_parts_with_another_one_joins(name: str, rows: pa.Table, data: st.DataObject) -> None:
    runner = runner_of(DIVISIBLE[name](), rows.schema)
    hashes = hash_keys(rows.columns)
    moved = hashes[np.array(data.draw(st.lists(st.booleans(), min_size=len(hashes), max_size=len(hashes))), np.bool_)]
    is_moved = pa.array(is_among(hashes, moved))
    for _ in both_kernels():
        source, before = fill(runner, rows), contents(runner, fill(runner, rows))
        target = fill(runner, rows.slice(0, 0))
        part = through_bytes(runner, runner.part(source, moved))
        if name != "columns with another key":  # whose windows depend on all rows of the batch
            assert contents(runner, source) == contents(runner, fill(runner, rows.filter(pc.invert(is_moved))))
            assert contents(runner, part) == contents(runner, fill(runner, rows.filter(is_moved)))
        runner.join(target, part)
        assert contents(runner, source, target) == before
        # Both go on: what is known is found again, and what is new is added.
        for state in (source, target):
            if rows.num_rows:
                runner.step(state, [runner.combine(rows)], NOW)
        assert len(contents(runner, through_bytes(runner, source))[0]) == len(contents(runner, source)[0])
        back = runner.part(target, moved)
        runner.part(source, moved)
        runner.join(source, through_bytes(runner, back))
        if name not in ("declared", "columns with another key", "timers only"):
            assert {key_of(row, rows.schema) for row in runner.state_rows(source).to_pylist()} == {
                key_of(row, rows.schema) for row in runner.state_rows(fill(runner, rows)).to_pylist()
            }


def key_of(row: dict[str, Any], schema: pa.Schema) -> str:
    return str([row[name] for name in schema.names])


@pytest.mark.parametrize("name", DIVISIBLE)
@settings(max_examples=settings().max_examples // 3)
@given(rows=keyed_rows())
def test_parts_of_nothing_and_of_everything(name: str, rows: pa.Table) -> None:
    runner = runner_of(DIVISIBLE[name](), rows.schema)
    hashes = hash_keys(rows.columns)
    absent = np.setdiff1d(np.arange(20), hashes)
    state, before = fill(runner, rows), contents(runner, fill(runner, rows))
    for none in (NONE, absent):
        empty = through_bytes(runner, runner.part(state, none))
        assert contents(runner, empty) == ([], [])
        assert contents(runner, state) == before
        runner.join(state, empty)
        assert contents(runner, state) == before
    everything = runner.part(state, hashes)
    assert contents(runner, state) == ([], [])
    assert contents(runner, everything) == before
    runner.join(state, everything)
    assert contents(runner, state) == before


@settings(max_examples=settings().max_examples // 3)
@given(rows=keyed_rows())
def test_a_part_can_be_parted_again(rows: pa.Table) -> None:
    runner = runner_of(Ages(), rows.schema)
    hashes = hash_keys(rows.columns)
    part = runner.part(fill(runner, rows), hashes)
    pieces = [runner.part(part, hashes[begin::3]) for begin in range(3)]
    assert contents(runner, part) == ([], [])
    assert contents(runner, *pieces) == contents(runner, fill(runner, rows))


@given(rows=keyed_rows(), data=st.data())
def test_both_kernels_divide_alike(rows: pa.Table, data: st.DataObject) -> None:
    hashes = hash_keys(rows.columns)
    moved = hashes[np.array(data.draw(st.lists(st.booleans(), min_size=len(hashes), max_size=len(hashes))), np.bool_)]
    results = []
    for _ in both_kernels():
        columns = KeyedColumns(rows.schema, {"row": "int64"})
        columns.rows_for(rows)
        columns.column("row")[:] = np.arange(len(columns))
        before = columns.to_table()
        part = columns.part(moved)
        joined = KeyedColumns(rows.schema, {"row": "int64"})
        joined.join(part)
        joined.join(columns)
        assert str(joined.to_table().sort_by("row").to_pylist()) == str(before.to_pylist())  # in which NaN equals NaN
        results.append(
            [{name: array.tolist() for name, array in each.to_arrays().items()} for each in (columns, part, joined)]
        )
    assert results[0] == results[1]


def test_the_rows_of_a_part_replace_those_of_the_same_keys() -> None:
    columns, part = KeyedColumns("key long", {"n": "int64"}), KeyedColumns("key long", {"n": "int64"})
    columns.rows_for([1, 2])
    columns.column("n")[:] = [10, 20]
    part.rows_for([2, 3])
    part.column("n")[:] = [200, 300]
    columns.join(part)
    assert columns.to_table().to_pylist() == [{"key": 1, "n": 10}, {"key": 2, "n": 200}, {"key": 3, "n": 300}]
    with pytest.raises(InvalidJob, match="cannot join"):
        columns.join(KeyedColumns("key long", {"m": "int64"}))
    with pytest.raises(InvalidJob, match="cannot join"):
        columns.join(KeyedColumns("key int", {"n": "int64"}))


def test_captured_arrays_do_not_see_that_keys_left_or_joined() -> None:
    columns = KeyedColumns("a string, b long", {"n": "int64"})
    columns.rows_for([["x", "y", "z"], [1, 2, None]])
    captured, before = columns.to_arrays(), columns.to_table()
    part = columns.part(np.array([hash_key("y", 2)]))
    other = KeyedColumns("a string, b long", {"n": "int64"})
    other.join(part)
    assert part.to_table().to_pylist() == [{"a": "y", "b": 2, "n": 0}]
    assert columns.to_table().to_pylist() == [{"a": "x", "b": 1, "n": 0}, {"a": "z", "b": None, "n": 0}]
    assert KeyedColumns.from_arrays(captured).to_table().equals(before)
    other.column("n")[:] = 7
    assert part.column("n").tolist() == [0]


def test_texts_of_keys_that_left_take_no_more_memory() -> None:
    columns = KeyedColumns("a string, b long", {})
    columns.rows_for([[f"a long text, number {number}" for number in range(1_000)], list(range(1_000))])
    before = columns.nbytes
    columns.part(hash_keys(columns.to_table().slice(0, 990).columns[:2]))
    assert len(columns) == 10
    assert columns.nbytes < before / 50


class Reminders(Operator):
    """Sets timers as it is told: a name and a key."""

    def __init__(self, timers: Sequence[tuple[str, Any]]) -> None:
        self._timers = timers

    def handle_batch(self, _rows: pa.Table, _state: State, context: Context) -> None:
        for name, key in self._timers:
            context.set_timer(10, "event", name, key=key)

    def part(self, _state: State, _hashes: NDArray[np.int64]) -> None: ...

    def join(self, _state: State, _part: None) -> None: ...


@pytest.mark.parametrize("with_others", [False, True])
def test_a_timer_of_a_key_goes_with_it_and_a_timer_of_the_task_stays(with_others: bool) -> None:
    others: list[tuple[str, Any]] = [("", 7), ("", ("a", "b")), ("", 1.5)]  # no keys of this stage
    timers: list[tuple[str, Any]] = [("task", None), ("", "a"), ("again", "a"), ("", "b")]
    null = hash_keys([pa.array([None], pa.string())])
    schema = pa.schema([("word", pa.string())])
    runner = runner_of(Reminders([*timers, *(others if with_others else [])]), schema)
    state = fill(runner, pa.table({"word": ["x"]}))
    part = through_bytes(runner, runner.part(state, np.array([hash_key("a"), hash_key("nothing"), *null])))
    assert sorted((name, key) for _, key, name in part.timers.items("event")) == [("", "a"), ("again", "a")]
    left = [(name, key) for _, key, name in state.timers.items("event")]
    assert left == [("task", None), ("", "b"), *(others if with_others else [])]
    assert state.timers.next_ms("event") == 10
    assert part.timers.take_due({"event": 10}) == [Timer(10, "event", "", "a"), Timer(10, "event", "again", "a")]


def test_a_timer_of_several_key_columns_goes_with_its_key() -> None:
    schema = pa.schema([("a", pa.string()), ("b", pa.int32())])
    runner = runner_of(Reminders([("", ("x", 1)), ("", ("x", 2)), ("", "xy"), ("", 5)]), schema)
    state = fill(runner, pa.table({"a": ["x"], "b": [1]}, schema=schema))
    part = runner.part(state, np.array([hash_key("x", 1, types=schema.types)]))
    assert [key for _, key, _ in part.timers.items("event")] == [("x", 1)]


def test_an_integer_is_no_key_of_a_column_of_timestamps() -> None:
    schema = pa.schema([("at", pa.timestamp("us"))])
    runner = runner_of(Reminders([("", 1)]), schema)
    state = fill(runner, pa.table({"at": [1]}, schema=schema))
    assert not len(runner.part(state, hash_keys([pa.array([1], pa.timestamp("us"))])).timers)
    assert len(state.timers) == 1


class TaskState(Operator):
    """A number of the task, whatever its keys are."""

    def initial_state(self) -> int:
        return 0


class OnlyPart(Operator):
    def part(self, _state: State, _hashes: Any) -> None: ...


class OnlyJoin(Operator):
    def join(self, _state: State, _part: Any) -> None: ...


class Columns(Operator):
    """Keyed columns as they are declared."""

    keys: ClassVar[str] = "word string"

    def initial_state(self) -> KeyedColumns:
        return KeyedColumns(self.keys, {"n": "int64"})


class OtherKey(Columns):
    keys: ClassVar[str] = "name string"


class OtherType(Columns):
    keys: ClassVar[str] = "word binary"


class WithTimers(Columns):
    def handle_timer(self, _timer: Timer, _state: State, _context: Context) -> None: ...


class WithDeclaredTimers(WithTimers):
    def part(self, state: State, hashes: NDArray[np.int64]) -> Any:
        return super().part(state, hashes)

    def join(self, state: State, part: Any) -> None:
        super().join(state, part)


class LateState(Operator):
    def initial_state(self) -> Any:
        raise RuntimeError("no model yet")


WORDS = pa.schema([("word", pa.string()), ("n", pa.int64())])


class Times(Columns):
    keys: ClassVar[str] = "word timestamp"


class Bytes(Columns):
    keys: ClassVar[str] = "word binary"


OBSTACLES: dict[type[Operator], str] = {
    TaskState: "its state, a value of type int, belongs to the task",
    OnlyPart: r"it defines part\(\) but not join\(\)",
    OnlyJoin: r"it defines join\(\) but not part\(\)",
    OtherKey: "do not include the key column 'word'",
    OtherType: "hold the key column 'word' as binary, whose hashes differ from those of string",
    WithTimers: "it handles timers, which may belong to the task",
    LateState: r"its initial_state\(\) raised RuntimeError\('no model yet'\) before open\(\)",
}


@pytest.mark.parametrize("kind", OBSTACLES)
def test_an_operator_whose_state_belongs_to_the_task_cannot_be_grouped_by_table(kind: type[Operator]) -> None:
    with pytest.raises(IndivisibleState, match=OBSTACLES[kind]) as refused:
        describe_pipeline([Stage(kind(), "word", "numbers", grouping="table")], WORDS, 8)
    assert (refused.value.stage, refused.value.operator) == ("numbers", kind.__name__)
    assert isinstance(refused.value, InvalidJob)
    with pytest.raises(IndivisibleState, match="Give it the methods part"):
        OperatorTester(Stage(kind(), grouping="table"), key="word", schema=WORDS).run([])
    describe_pipeline([Stage(kind(), "word", "numbers")], WORDS, 8)


@pytest.mark.parametrize("kind", [Columns, WithDeclaredTimers, Lines, Ages, StatelessOperator, CountByKey])
def test_an_operator_whose_state_is_by_key_can_be_grouped_by_table(kind: type[Operator]) -> None:
    describe_pipeline([Stage(kind(), "word", "numbers", grouping="table")], WORDS, 8)


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_columns_may_hold_the_key_as_another_type_of_the_same_hashes(kind: pa.DataType) -> None:
    schema = pa.schema([("word", kind)])
    describe_pipeline([Stage(Columns(), "word", "numbers", grouping="table")], schema, 8)
    runner = runner_of(Columns(), schema)
    words = pa.array(["a", "b"], kind)
    state = runner.new_state()
    state.value.rows_for(words.dictionary_decode() if pa.types.is_dictionary(kind) else words)
    part = runner.part(state, hash_keys([words])[:1])
    assert (part.value.to_table()["word"].to_pylist(), state.value.to_table()["word"].to_pylist()) == (["a"], ["b"])


@pytest.mark.parametrize(
    ("operator", "routed"),
    [
        (Columns, pa.dictionary(pa.int32(), pa.large_string())),
        (Bytes, pa.large_binary()),
        (Times, pa.timestamp("us")),
        (Times, pa.timestamp("us", "Europe/Paris")),
    ],
)
def test_columns_may_hold_a_key_without_its_offsets_dictionary_or_time_zone(
    operator: type[Operator], routed: pa.DataType
) -> None:
    describe_pipeline([Stage(operator(), "word", "numbers", grouping="table")], pa.schema([("word", routed)]), 8)


@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
def test_columns_that_hold_times_in_another_unit_have_other_hashes(unit: str) -> None:
    schema = pa.schema([("word", pa.timestamp(unit))])
    with pytest.raises(IndivisibleState, match="whose hashes differ"):
        describe_pipeline([Stage(Times(), "word", "numbers", grouping="table")], schema, 8)


@pytest.mark.parametrize("method", ["part", "join"])
def test_a_node_that_runs_out_of_memory_while_it_divides_does_not_blame_the_operator(method: str) -> None:
    class Greedy(Operator):
        def part(self, _state: State, _hashes: Any) -> None:
            raise MemoryError

        def join(self, _state: State, _part: Any) -> None:
            raise MemoryError

    runner = runner_of(Greedy(), WORDS)
    with pytest.raises(MemoryError):
        runner.part(runner.new_state(), NONE) if method == "part" else runner.join(runner.new_state(), UnitState(None))


def test_a_stateless_operator_parts_with_nothing() -> None:
    runner = runner_of(StatelessOperator(), WORDS)
    state = runner.new_state()
    part = through_bytes(runner, runner.part(state, np.array([hash_key("a")])))
    runner.join(state, part)
    assert (state.value, part.value) == (None, None)


def test_an_operator_that_raises_is_named_with_its_traceback() -> None:
    class Broken(Operator):
        def part(self, _state: State, _hashes: Any) -> None:
            raise ZeroDivisionError

        def join(self, _state: State, part: Any) -> None:
            raise KeyError(part)

    runner = runner_of(Broken(), WORDS)
    with pytest.raises(DivisionFailed, match="ZeroDivisionError") as failed:
        runner.part(runner.new_state(), NONE)
    assert (failed.value.operator, failed.value.method) == ("sample", "part")
    with pytest.raises(DivisionFailed, match="KeyError: 'x'") as failed:
        runner.join(runner.new_state(), UnitState("x"))
    assert (failed.value.method, "in join" in failed.value.cause_text) == ("join", True)


@pytest.mark.parametrize("method", ["part", "join"])
def test_a_state_that_is_no_keyed_columns_is_divided_by_methods_of_its_own(method: str) -> None:
    runner = runner_of(TaskState(), WORDS)
    with pytest.raises(DivisionFailed, match=f"TaskState does not define {method}. Define it."):
        getattr(runner, method)(runner.new_state(), NONE if method == "part" else UnitState(1))


def test_keys_can_be_selected_once_the_operator_is_bound() -> None:
    with pytest.raises(InvalidJob, match="when it is bound"):
        Lines().select_keys(["a"], NONE)
    bound = Lines().bind(("word",), WORDS)
    assert bound.select_keys(("b", "a", "c"), np.array([hash_key("c"), hash_key("b")])) == ["b", "c"]


def test_the_timer_of_a_key_that_is_not_a_number_finds_its_state_after_a_move() -> None:
    class Totals(KeyedOperator):
        output_schema = "rows long"

        def handle_key(self, _key: Any, rows: Any, state: ValueState, context: Context) -> None:
            state.update(len(rows))
            context.set_timer(10, "processing")

        def handle_expired(self, _key: Any, _timer: Timer, state: ValueState, _context: Context) -> tuple[int]:
            return (state.get(),)

    rows = pa.table({"x": [float("nan"), float("nan"), 1.0]})
    runner = runner_of(Totals(), rows.schema)
    state, other = fill(runner, rows), runner.new_state()
    runner.join(other, through_bytes(runner, runner.part(state, hash_keys([pa.array([float("nan")])]))))
    output = runner.step(other, [], Moment(UnitId(0, 1), 1, 0, 10))
    assert output.sink is not None
    assert output.sink.to_pylist() == [{"rows": 2}]


class Sweeping(Operator):
    """Looks through its whole state at a timer without a key."""

    copies_timers: ClassVar[bool] = True

    def initial_state(self) -> KeyedColumns:
        return KeyedColumns("key string", {"n": "int64"})

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> None:
        state.value.rows_for(rows)

    def handle_timer(self, *_: Any) -> None: ...

    def part(self, state: State, hashes: NDArray[np.int64]) -> Any:
        return super().part(state, hashes)

    def join(self, state: State, part: Any) -> None:
        super().join(state, part)


@pytest.mark.parametrize(("at_source", "at_target"), [(5, 9), (9, 5)])
def test_a_timer_of_the_unit_is_copied_and_the_earlier_one_stays(at_source: int, at_target: int) -> None:
    runner = StageRunner(Sweeping(), key=("key",), input_schema=pa.schema([("key", pa.string())]), name="sweeping")
    source, target = runner.new_state(), runner.new_state()
    source.value.rows_for(["a", "b"])
    for state, at_ms in ((source, at_source), (target, at_target)):
        state.timers.set(Timer(at_ms, "event", "sweep"))
        state.timers.set(Timer(3, "event", "of a key", "a"))
    part = runner.part(source, hash_keys([pa.array(["a"])]))
    assert list(source.timers.items("event")) == [(at_source, None, "sweep"), (3, "a", "of a key")]
    runner.join(target, part)
    assert target.timers.get("event", None, "sweep") == 5
    assert len(target.value) == 1
