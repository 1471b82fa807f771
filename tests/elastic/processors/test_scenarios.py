"""What Spark's users expect of `transformWithState` beyond states and timers: outputs, keys, frames and handlers."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from elastic.errors import InvalidOutput, InvalidStateCall
from elastic.operators import Stage
from elastic.operators.testing import Crash, OperatorTester, Scale
from elastic.spark.processors import ProcessorOperator, ProcessorTester
from tests.elastic.processors.samples import COUNTED, READINGS, CountAbove, Processor, World, in_order, readings

MakeWorld = Callable[..., World]
OUT = "id string, what string"

# --- what a processor emits ---

NESTED = (
    "id string, numbers array<int>, names map<string,string>, "
    "parts array<struct<n:int,share:double,tags:array<string>>>, by_name map<string,struct<n:int,at:date>>"
)


class Deep(Processor):
    """Emits arrays, maps and structs, of as many elements as it has seen rows."""

    def init(self, handle: Any) -> None:
        self.seen = handle.getValueState("seen", "n int")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        seen = (self.seen.get() or (0,))[0] + len(self.values(rows, "temperature"))
        self.seen.update((seen,))
        row = {
            "id": key[0],
            "numbers": list(range(seen)),
            "names": {f"k{n}": f"v{n}" for n in range(seen)},
            "parts": [{"n": n, "share": n / 2, "tags": ["t"] * n} for n in range(seen)],
            "by_name": {str(n): {"n": n, "at": date(2024, 1, n + 1)} for n in range(seen)},
        }
        if self.pandas:
            yield pd.DataFrame({name: [value] for name, value in row.items()})
        else:
            yield Row(
                **{
                    **row,
                    "parts": [Row(**part) for part in row["parts"]],
                    "by_name": {name: Row(**value) for name, value in row["by_name"].items()},
                }
            )


def test_outputs_may_be_arrays_maps_and_structs(world: MakeWorld, form: str) -> None:
    run = world(Deep(form), NESTED)
    run.run(readings(("0", 1)))
    assert run.run(readings(("0", 1)), ["0"]) == [
        {
            "id": "0",
            "numbers": [0, 1],
            "names": [("k0", "v0"), ("k1", "v1")],
            "parts": [{"n": 0, "share": 0.0, "tags": []}, {"n": 1, "share": 0.5, "tags": ["t"]}],
            "by_name": [("0", {"n": 0, "at": date(2024, 1, 1)}), ("1", {"n": 1, "at": date(2024, 1, 2)})],
        }
    ]


class Gives(Processor):
    """Returns what a function makes of the rows of a key."""

    def __init__(self, form: str, make: Callable[[Any, list[Any]], Any]) -> None:
        super().__init__(form)
        self.make = make

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:
        return self.make(self, self.values(rows, "temperature"))


@pytest.mark.parametrize(
    "make",
    [
        lambda do, values: [do.emit(id="x", what=str(value)) for value in values],
        lambda do, values: tuple(do.emit(id="x", what=str(value)) for value in values),
        lambda do, values: iter([do.emit(id="x", what=str(value)) for value in values]),
        lambda do, values: (do.emit(id="x", what=str(value)) for value in values),
        lambda do, values: pd.Series([do.emit(what=str(value), id="x") for value in values], dtype=object),
    ],
    ids=["list", "tuple", "iterator", "generator", "series"],
)
def test_a_handler_returns_rows_in_any_iterable(make: Any, form: str) -> None:
    run = World("nothing", Gives(form, make), OUT)
    assert run.tester.run([readings(("0", 1), ("0", 2))]) == [{"id": "x", "what": "1"}, {"id": "x", "what": "2"}]


@pytest.mark.parametrize("nothing", [[], (), iter(())], ids=["list", "tuple", "iterator"])
def test_a_handler_may_emit_nothing(nothing: Any, world: MakeWorld, form: str) -> None:
    run = world(Gives(form, lambda *_: list(nothing)), OUT)
    assert run.run(readings(("0", 1))) == []
    assert run.run(readings(("0", 1)), ["0"]) == []


def test_a_handler_need_not_read_its_rows(world: MakeWorld, form: str) -> None:
    class Lazy(Processor):
        def init(self, handle: Any) -> None:
            self.calls = handle.getValueState("calls", "n int")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            self.calls.update(((self.calls.get() or (0,))[0] + 1,))
            yield self.emit(id=key[0], what=str(self.calls.get()))

    run = world(Lazy(form), OUT)
    run.run(readings(("0", 1), ("0", 2)))
    assert run.run(readings(("0", 1), ("0", 2)), ["0"]) == [{"id": "0", "what": "(2,)"}]


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (pd.DataFrame(), []),
        (pd.DataFrame({"id": [], "what": []}, dtype=object), []),
        (pd.DataFrame({"what": ["a"], "more": [1], "id": ["0"]}), [("0", "a")]),
        (pd.DataFrame([["0", "a"]]), [("0", "a")]),
        (pd.DataFrame({"id": ["0", None], "what": [None, "b"]}, index=[7, 9]), [("0", None), (None, "b")]),
        (pd.DataFrame({"id": pd.Series(["0"], dtype="string"), "what": ["a"]}), [("0", "a")]),
        (pd.DataFrame({"id": pd.Categorical(["0"]), "what": ["a"]}), [("0", "a")]),
    ],
)
def test_emitted_frames_are_matched_by_name_else_by_place(frame: pd.DataFrame, expected: Any) -> None:
    run = World("nothing", Gives("pandas", lambda *_: [frame]), OUT)
    assert [tuple(row.values()) for row in run.tester.run([readings(("0", 1))])] == expected


def test_integers_stand_for_decimals_if_spark_is_told_so() -> None:
    emits = Gives("pandas", lambda *_: [pd.DataFrame({"amount": [12345]})])
    with pytest.raises(InvalidOutput, match="does not fit the output schema"):
        World("nothing", emits, "amount decimal(10,2)").run(readings(("0", 1)))
    run = World("nothing", emits, "amount decimal(10,2)", coerces_integers=True)
    assert run.run(readings(("0", 1))) == [{"amount": Decimal("12345.00")}]


# --- keys ---


class Tally(Processor):
    """Counts calls and rows of a key of any type, and emits the key as Python sees it."""

    def init(self, handle: Any) -> None:
        self.seen = handle.getValueState("seen", "calls int, n int")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        calls, n = self.seen.get() or (0, 0)
        self.seen.update((calls + 1, n + len(self.values(rows, "n"))))
        yield self.emit(what=f"{key!r} {self.seen.get()}")


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        ("int", 1, 2),
        ("long", 2**60, -1),
        ("short", 1, None),
        ("double", 1.5, float("inf")),
        ("double", float("nan"), 1.0),
        ("boolean", True, False),
        ("decimal(9,2)", Decimal("1.50"), Decimal("-7.00")),
        ("date", date(2024, 2, 29), date(1900, 1, 1)),
        ("timestamp_ntz", datetime(2024, 1, 1, 12), datetime(1969, 12, 31)),
        ("string", "key@#$%", "ü\U0001f600"),
        ("string", "", " "),
        ("binary", b"\x00\xff", b""),
    ],
)
def test_keys_of_every_type_have_a_state(kind: str, first: Any, second: Any, world: MakeWorld) -> None:
    run = world(Tally(), "what string", schema=f"id {kind}, n int")
    rows = [{"id": key, "n": 1} for key in (first, second, first)]
    for calls in (1, 2, 3):
        found = run.run(rows, [first, second])
        expected = [{"what": f"({key!r},) ({calls}, {n * calls})"} for key, n in ((first, 2), (second, 1))]
        assert found == in_order(expected)


def test_a_key_of_several_columns_may_have_nulls(world: MakeWorld, form: str) -> None:
    run = world(Tally(form), "what string", key=("a", "b"), schema="a string, n int, b date")
    days = [None, date(2024, 1, 1)]
    rows = [{"a": a, "b": b, "n": 1} for a in ("x", None) for b in days]
    for calls in (1, 2):
        found = run.run(rows, [("x", None), (None, None)])
        assert found == in_order([{"what": f"({a!r}, {b!r}) ({calls}, {calls})"} for a in ("x", None) for b in days])


def test_a_key_that_is_a_struct_is_a_dict(world: MakeWorld) -> None:
    run = world(Tally(), "what string", schema="id struct<x: int, y: string>, n int")
    for calls in (1, 2):
        found = run.run([{"id": {"x": 1, "y": "a"}, "n": 1}])
        assert found == [{"what": f"({{'x': 1, 'y': 'a'}},) ({calls}, {calls})"}]


def test_null_values_in_rows_are_none_and_count(world: MakeWorld, form: str) -> None:
    class Shows(Processor):
        def init(self, handle: Any) -> None:
            self.all = handle.getListState("all", "n int, s string")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            self.all.appendList([(len(value or ""), value) for value in self.values(rows, "text")])
            yield self.emit(id=key[0], what=str(list(self.all.get())))

    run = world(Shows(form), OUT, schema="id string, text string")
    run.run([{"id": "0", "text": None}, {"id": "0", "text": "a"}])
    assert run.run([{"id": "0", "text": None}], ["0"]) == [{"id": "0", "what": "[(0, None), (1, 'a'), (0, None)]"}]


# --- frames ---


class Chunks(Processor):
    """Counts the frames in which its rows come, and how many rows of initial state it has had."""

    def init(self, handle: Any) -> None:
        self.start = handle.getValueState("start", "n int")

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:
        self.start.update(((self.start.get() or (0,))[0] + len(initialState),))

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        yield self.emit(id=key[0], what=f"{[len(frame) for frame in rows]} {self.start.get()}")


@pytest.mark.parametrize(
    ("options", "frames"),
    [
        ({}, [5]),
        ({"rows_per_frame": 1}, [1] * 5),
        ({"rows_per_frame": 2}, [2, 2, 1]),
        ({"rows_per_frame": -1}, [5]),
        ({"bytes_per_frame": 2}, [1] * 5),
        ({"bytes_per_frame": 100_000}, [5]),
        ({"rows_per_frame": 3, "bytes_per_frame": 100_000}, [3, 2]),
    ],
)
@pytest.mark.parametrize("initial", [False, True])
def test_frames_are_as_large_as_spark_is_told(
    options: dict[str, int], frames: list[int], initial: bool, world: MakeWorld
) -> None:
    state = {"initial_state": [{"id": "0", "start": 789}, {"id": "3", "start": 987}]} if initial else {}
    run = world(Chunks("pandas"), OUT, **options, **state)
    rows = readings(*[("0", n) for n in range(5)])
    for _ in range(2):
        assert run.run(rows, ["0"]) == [{"id": "0", "what": f"{frames} {(1,) if initial else None}"}]


def test_a_frame_ends_with_the_row_that_fills_it(world: MakeWorld) -> None:
    run = world(Chunks("pandas"), "id long, what string", schema="id long, temperature long", bytes_per_frame=33)
    rows = [{"id": 0, "temperature": n} for n in range(4)]  # two values of 8 bytes each
    assert run.run(rows) == [{"id": 0, "what": "[3, 1] None"}]


# --- handlers ---


class Bare(StatefulProcessor):
    """Defines no more than it must."""

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.seen = handle.getValueState("seen", "n int")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        self.seen.update((sum(1 for _ in rows) + (self.seen.get() or (0,))[0],))
        self.handle.registerTimer(1_500)
        yield Row(id=key[0], what=str(self.seen.get()))

    def close(self) -> None:
        pass


def test_handlers_of_timers_and_of_the_initial_state_are_optional(world: MakeWorld) -> None:
    run = world(Bare(), OUT, time_mode="ProcessingTime", initial_state=[{"id": "0", "start": 5}])
    assert run.run(readings(("0", 1)), timestamp_ms=1_000) == [{"id": "0", "what": "(1,)"}]
    assert run.run((), ["0"], timestamp_ms=2_000) == []
    assert run.state("0", "timers") is None
    assert run.run(readings(("0", 1)), ["0"], timestamp_ms=3_000) == [{"id": "0", "what": "(2,)"}]


def test_a_processor_keeps_what_its_constructor_was_given(world: MakeWorld) -> None:
    limit = 7

    class Limited(Processor):
        unit = "C"

        def __init__(self, form: str, *, above: int) -> None:
            super().__init__(form)
            self.above = above

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            over = [value for value in self.values(rows, "temperature") if value > self.above + limit]
            yield self.emit(id=key[0], what=f"{over}{self.unit}")

    run = world(Limited("row", above=3), OUT)
    for _ in range(2):
        assert run.run(readings(("0", 10), ("0", 11)), ["0"]) == [{"id": "0", "what": "[11]C"}]


def test_init_runs_once_for_all_batches_and_no_initial_state_is_handled_without_one() -> None:
    class Logged(CountAbove):
        def init(self, handle: Any) -> None:
            super().init(handle)
            self.inits = getattr(self, "inits", 0) + 1
            self.initials = 0

        def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:
            self.initials += 1

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            list(rows)
            yield Row(id=key[0], what=f"{self.inits} {self.initials}")

    run = World("nothing", Logged(), OUT)
    for _ in range(3):
        assert run.run(readings(("0", 1))) == [{"id": "0", "what": "1 0"}]


def test_states_of_one_kind_do_not_mix(world: MakeWorld, form: str) -> None:
    class Pairs(Processor):
        def init(self, handle: Any) -> None:
            self.values_ = [handle.getValueState(f"v{n}", "int") for n in (1, 2)]
            self.lists = [handle.getListState(f"l{n}", "string") for n in (1, 2)]
            self.maps = [handle.getMapState(f"m{n}", "string", "int") for n in (1, 2)]

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            for value in self.values(rows, "temperature"):
                for n in (0, 1):
                    self.values_[n].update(((self.values_[n].get() or (0,))[0] + n + 1,))
                    self.lists[n].appendValue((f"{value}-{n}",))
                    known = self.maps[n].getValue((str(value),))
                    self.maps[n].updateValue((str(value),), ((known.value if known else 0) + n + 1,))
            found = [s.get() for s in self.values_], [list(s.get()) for s in self.lists]
            yield self.emit(id=key[0], what=str((*found, [list(s.iterator()) for s in self.maps])))

    run = world(Pairs(form), OUT)
    run.run(readings(("0", 5)))
    assert run.run(readings(("0", 5)), ["0"])[0]["what"] == str(
        ([(2,), (4,)], [[("5-0",), ("5-0",)], [("5-1",), ("5-1",)]], [[(("5",), (2,))], [(("5",), (4,))]])
    )


def test_a_map_may_lose_keys_while_it_is_read(world: MakeWorld, form: str) -> None:
    class Evicts(Processor):
        def init(self, handle: Any) -> None:
            self.map = handle.getMapState("map", "n int", "at long")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            for n in self.values(rows, "temperature"):
                self.map.updateValue((n,), (n * 10,))
            for (n,), (at,) in self.map.iterator():
                if at < 20:
                    self.map.removeKey((n,))
                    self.map.updateValue((n + 100,), (at + 1_000,))
            yield self.emit(id=key[0], what=str(sorted(self.map.keys())))

    run = world(Evicts(form), OUT)
    assert run.run(readings(("0", 1), ("0", 2))) == [{"id": "0", "what": "[(2,), (101,)]"}]
    assert run.run(readings(("0", 0)), ["0"]) == [{"id": "0", "what": "[(2,), (100,), (101,)]"}]


def test_numpy_and_pandas_values_are_stored_as_their_columns_say(world: MakeWorld) -> None:
    class Typed(Processor):
        def init(self, handle: Any) -> None:
            self.value = handle.getValueState("value", "n int, x double, ok boolean, at timestamp_ntz, s string")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            frame = pd.concat(list(rows))
            at = pd.Timestamp(2024, 1, 1, 12)
            self.value.update((frame.n.max(), frame.x.mean(), np.bool_(frame.n.any()), at, np.str_("t")))
            yield self.emit(id=key[0], what=str(self.value.get()))

    run = world(Typed("pandas"), OUT, schema="id string, n int, x double")
    what = "(7, 1.5, True, datetime.datetime(2024, 1, 1, 12, 0), 't')"
    assert run.run([{"id": "0", "n": n, "x": x} for n, x in ((7, 1.0), (3, 2.0))]) == [{"id": "0", "what": what}]


# --- states that a test reads and writes ---


class Uses(Processor):
    """Adds its rows to a state of each kind."""

    def init(self, handle: Any) -> None:
        self.value = handle.getValueState("value", "n int")
        self.list = handle.getListState("list", "n int")
        self.map = handle.getMapState("map", "n int", "count int")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        for n in self.values(rows, "temperature"):
            self.value.update(((self.value.get() or (0,))[0] + n,))
            self.list.appendValue((n,))
            self.map.updateValue((n,), ((self.map.getValue((n,)) or (0,))[0] + 1,))
        yield self.emit(id=key[0], what=str(self.value.get()))


def test_a_test_writes_states_and_a_crash_keeps_them(world: MakeWorld, form: str) -> None:
    run = world(Uses(form), OUT)
    run.tester.write_state("0", "value", (40,))
    run.tester.write_state("0", "list", [(1,), (2,)])
    run.tester.write_state("0", "map", {(2,): (9,)})
    assert run.run(readings(("0", 2), ("1", 5)), ["0"]) == [{"id": "0", "what": "(42,)"}, {"id": "1", "what": "(5,)"}]
    assert run.run(readings(("0", 1)), ["0", "1"]) == [{"id": "0", "what": "(43,)"}]
    assert run.state("0", "list") == [{"n": n} for n in (1, 2, 2, 1)]
    counts = [{"key": {"n": 2}, "value": {"count": 10}}, {"key": {"n": 1}, "value": {"count": 1}}]
    assert run.state("0", "map") == counts
    for name in ("value", "list", "map"):
        run.tester.write_state("0", name, None)
    assert run.run((), ["0"]) == []
    assert run.tester.tester.state("0") is None
    assert run.state("1", "value") == {"n": 5}


def test_a_step_of_a_processor_can_be_tested_alone() -> None:
    run = World("nothing", Uses(), OUT)

    def step(before: int, row: int) -> int:
        run.tester.write_state("k", "value", (before,))
        run.run(readings(("k", row)))
        return int(run.state("k", "value")["n"])

    assert [step(10, 1), step(0, 5), step(-3, 3)] == [11, 5, 0]


def test_only_declared_states_of_their_kind_can_be_written() -> None:
    run = World("nothing", Uses(), OUT)
    with pytest.raises(InvalidStateCall, match="declares only 'value', 'list', 'map'"):
        run.tester.write_state("k", "missing", (1,))
    with pytest.raises(InvalidStateCall, match="must be a tuple"):
        run.tester.write_state("k", "value", 5)
    assert run.state("k", "value") is None


# --- one stage after another ---


class Stamps(Processor):
    """Emits the event times of a key once the watermark has passed them."""

    def init(self, handle: Any) -> None:
        self.handle = handle

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        for at in self.values(rows, "at"):
            yield Row(id=key[0], at=at)


class PerMoment(Processor):
    """Counts the rows of a moment, and emits the count when the watermark passes it."""

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.count = handle.getValueState("count", "n int")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        self.count.update(((self.count.get() or (0,))[0] + len(list(rows)),))
        self.handle.registerTimer(int(key[0].replace(tzinfo=UTC).timestamp() * 1_000))
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
        yield Row(second=expiredTimerInfo.getExpiryTimeInMs() // 1_000, n=self.count.get()[0])
        self.count.clear()


def test_a_processor_counts_the_moments_that_another_one_emits() -> None:
    stages = [
        ProcessorOperator(
            Stamps(), "id string, at timestamp", time_mode="EventTime", event_time="at", emitted_event_time="at"
        ),
        ProcessorOperator(PerMoment(), "second long, n int", time_mode="EventTime", event_time="at"),
    ]
    tester = OperatorTester(
        [stages[0], Stage(stages[1], key="at")],
        key="id",
        schema=ProcessorOperator(Stamps(), "id string, at timestamp").output_schema,
        watermark=("at", 5_000),
    )

    def batch(*events: tuple[str, int]) -> list[dict[str, Any]]:
        return [{"id": key, "at": datetime.fromtimestamp(second, UTC)} for key, second in events]

    found = tester.run([batch(("a", 10), ("b", 15)), Scale(3)])
    found += tester.run([batch(("a", 11), ("c", 25)), Crash("node-1"), batch(("a", 5), ("d", 40)), batch(("d", 41))])
    assert sorted(row["second"] for row in found) == [10, 11, 15, 25]
    assert {row["n"] for row in found} == {1}


# --- initial state of another job ---


def test_a_job_begins_with_the_state_of_another_one(world: MakeWorld, form: str) -> None:
    first = world(Uses(form), OUT)
    first.run(readings(("0", 20), ("0", 20), ("1", 111)))
    initial = [{"id": key, "start": entry["n"]} for key in "01" for entry in first.state(key, "list")]

    class Continues(Uses):
        def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:
            self.list.appendList([(n,) for n in self.values(iter([initialState]), "start")])

    second = world(Continues(form), OUT, initial_state=initial)
    second.run(readings(("0", 1)))
    second.run(readings(("1", 2), ("3", 12)), ["0", "1"])
    assert [second.state(key, "list") for key in "013"] == [
        [{"n": n} for n in numbers] for numbers in ((20, 20, 1), (111, 2), (12,))
    ]


def test_rows_of_a_tester_may_be_frames_and_tables(form: str) -> None:
    tester = ProcessorTester(CountAbove(form), COUNTED, key="id", schema=READINGS, pandas=form == "pandas")
    rows = tester.run([pd.DataFrame({"id": ["a"], "temperature": [200]}), readings(("a", 1))])
    assert [row["violations"] for row in rows] == [1, 1]
