"""What Spark refuses is refused here too: before anything starts where that is possible."""

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql.types import DayTimeIntervalType, StructField, StructType

from elastic.errors import (
    InvalidEventTime,
    InvalidJob,
    InvalidOutput,
    InvalidProcessor,
    OperatorFailed,
    UnknownColumn,
    UnserializableOperator,
    UnsupportedProcessor,
)
from elastic.spark.processors import ProcessorOperator, ProcessorTester
from tests.elastic.processors.samples import READINGS, CountAbove, Processor, World, readings

OUT = "id string, what string"


def declaring(declare: Callable[[Any], Any], **options: Any) -> ProcessorOperator:
    class Declares(Processor):
        def init(self, handle: Any) -> None:
            declare(handle)

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            return iter(())

    return ProcessorOperator(Declares(), OUT, **options)


@pytest.mark.parametrize("name", ["", " count", "count ", "default", "_count", "$count", None])
def test_names_of_states_are_those_that_spark_takes(name: Any) -> None:
    with pytest.raises(InvalidProcessor, match="the name of a state cannot"):
        declaring(lambda handle: handle.getValueState(name, "n int"))


def test_a_state_is_declared_once() -> None:
    def twice(handle: Any) -> None:
        handle.getValueState("count", "n int")
        handle.getMapState("count", "n int", "n int")

    with pytest.raises(InvalidProcessor, match="'count' is declared twice"):
        declaring(twice)


@pytest.mark.parametrize("time_mode", ["None", "EventTime"])
@pytest.mark.parametrize("kind", ["Value", "List", "Map"])
def test_a_time_to_live_needs_processing_time(time_mode: str, kind: str) -> None:
    schemas = ["n int"] * (2 if kind == "Map" else 1)
    with pytest.raises(InvalidProcessor, match='Set time_mode="ProcessingTime"'):
        declaring(
            lambda handle: getattr(handle, f"get{kind}State")("s", *schemas, 1_000), time_mode=time_mode, event_time="t"
        )


def test_a_time_to_live_is_positive() -> None:
    with pytest.raises(InvalidProcessor, match="is -1 ms"):
        declaring(lambda handle: handle.getValueState("s", "n int", -1), time_mode="ProcessingTime")


@pytest.mark.parametrize("ttl", ["1 hour", 1.5, timedelta(hours=1)])
def test_a_time_to_live_is_a_number_of_milliseconds(ttl: Any) -> None:
    with pytest.raises(InvalidProcessor, match=f"is a number of milliseconds, got {type(ttl).__name__}"):
        declaring(lambda handle: handle.getValueState("s", "n int", ttl), time_mode="ProcessingTime")


@pytest.mark.parametrize("mode", ["Complete", "retract", "", None])
def test_output_modes_are_append_and_update(mode: Any) -> None:
    with pytest.raises(InvalidProcessor, match='Use "Append" or "Update"'):
        ProcessorOperator(CountAbove(), OUT, output_mode=mode)
    for known in ("append", "UPDATE"):
        ProcessorOperator(CountAbove(), OUT, output_mode=known)


@pytest.mark.parametrize("mode", ["wall clock", "", None])
def test_time_modes_are_those_of_spark(mode: Any) -> None:
    with pytest.raises(InvalidProcessor, match='Use "None", "ProcessingTime" or "EventTime"'):
        ProcessorOperator(CountAbove(), OUT, time_mode=mode)


def test_event_time_needs_its_column() -> None:
    with pytest.raises(InvalidProcessor, match="needs a watermark"):
        ProcessorOperator(CountAbove(), OUT, time_mode="EventTime")
    with pytest.raises(UnknownColumn, match="'at'"):
        World("nothing", CountAbove(), OUT, time_mode="EventTime", event_time="at").run(readings(("0", 1)))
    with pytest.raises(InvalidEventTime, match="'id' of type string"):
        World("nothing", CountAbove(), OUT, time_mode="EventTime", event_time="id").run(readings(("0", 1)))


@pytest.mark.parametrize("processor", [CountAbove, "CountAbove", None])
def test_a_processor_is_an_instance(processor: Any) -> None:
    with pytest.raises(InvalidProcessor, match="not an instance of a StatefulProcessor"):
        ProcessorOperator(processor, OUT)


def test_a_processor_can_be_pickled() -> None:
    processor = CountAbove()
    processor.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(UnserializableOperator, match="CountAbove"):
        ProcessorOperator(processor, OUT)


def test_init_is_tried_before_anything_starts_and_leaves_the_processor_as_it_was() -> None:
    with pytest.raises(InvalidProcessor, match=r"its init.. raised ZeroDivisionError"):
        declaring(lambda _: 1 / 0)
    processor = CountAbove()
    ProcessorOperator(processor, OUT)
    assert not hasattr(processor, "violations")


@pytest.mark.parametrize(
    "declare",
    [
        lambda handle: handle.getValueState("s", "n int").get(),
        lambda handle: handle.getListState("s", "n int").appendValue((1,)),
        lambda handle: handle.getMapState("s", "n int", "n int").exists(),
    ],
)
def test_there_is_no_key_in_init(declare: Any) -> None:
    with pytest.raises(Exception, match="there is no grouping key in init"):
        declaring(declare)
    with pytest.raises(Exception, match="there is no grouping key in init"):
        declaring(lambda handle: handle.registerTimer(1), time_mode="ProcessingTime")


def test_types_that_states_cannot_hold_yet_are_named() -> None:
    schema = StructType([StructField("d", DayTimeIntervalType())])
    with pytest.raises(UnsupportedProcessor, match="interval day to second in state 's' of Declares"):
        declaring(lambda handle: handle.getValueState("s", schema))
    with pytest.raises(InvalidJob, match="unknown type 'interval'"):
        declaring(lambda handle: handle.getValueState("s", "n interval"))
    with pytest.raises(InvalidJob, match="is a list"):
        declaring(lambda handle: handle.getValueState("s", ["n int"]))


class Does(Processor):
    """Calls a function with the processor for every key."""

    def __init__(self, form: str, function: Callable[[Any], Any]) -> None:
        super().__init__(form)
        self.function = function

    def init(self, handle: Any) -> None:
        super().init(handle)
        self.value = handle.getValueState("value", "n int, text string")
        self.list = handle.getListState("list", "n int")
        self.map = handle.getMapState("map", "k string", "n int")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        list(rows)
        self.function(self)
        yield self.emit(id=key[0], what="done")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda do: do.value.update((1,)), "has 1 entries for the 2 columns"),
        (lambda do: do.value.update(1), "must be a tuple .* got int 1"),
        (lambda do: do.value.update(None), "must be a tuple"),
        (lambda do: do.value.update({"n": 1, "text": "a"}), "must be a tuple"),
        (lambda do: do.list.put([]), "an empty list cannot be written"),
        (lambda do: do.list.appendList([]), "an empty list cannot be written"),
        (lambda do: do.list.appendValue((1, 2)), "has 2 entries for the 1 columns"),
        (lambda do: do.list.put([(1,), 2]), "must be a tuple"),
        (lambda do: do.map.updateValue("k", (1,)), "must be a tuple"),
        (lambda do: do.map.updateValue(("k",), None), "must be a tuple"),
        (lambda do: do.map.getValue(None), "must be a tuple"),
        (lambda do: do.handle.getValueState("late", "n int"), r"can be declared in init\(\) only"),
        (lambda do: do.handle.deleteIfExists("value"), r"can be called in init\(\) only"),
        (lambda do: do.handle.registerTimer("tomorrow"), "a number of milliseconds, got str 'tomorrow'"),
    ],
)
def test_wrong_calls_of_states_and_timers_fail_with_what_to_do(function: Any, message: str, form: str) -> None:
    run = World("nothing", Does(form, function), OUT, time_mode="ProcessingTime")
    with pytest.raises(OperatorFailed, match=message):
        run.run(readings(("0", 1)))


def test_a_state_that_was_deleted_in_init_has_no_declaration(form: str) -> None:
    class Deleted(Does):
        def init(self, handle: Any) -> None:
            super().init(handle)
            handle.deleteIfExists("list")
            handle.deleteIfExists("never there")

    for call in (lambda do: do.list.get(), lambda do: do.list.put([(1,)]), lambda do: do.list.clear()):
        with pytest.raises(OperatorFailed, match=r"init.. deleted it"):
            World("nothing", Deleted(form, call), OUT).run(readings(("0", 1)))
    run = World("nothing", Deleted(form, lambda do: do.value.update((1, "a"))), OUT)
    assert run.run(readings(("0", 1))) == [{"id": "0", "what": "done"}]
    assert run.tester.tester.state("0") == {"value": {"n": 1, "text": "a"}}


class Emits(Processor):
    """Emits what it was given."""

    def __init__(self, emitted: Any, pandas: bool = False) -> None:
        super().__init__("pandas" if pandas else "row")
        self.emitted = emitted

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:
        return self.emitted


@pytest.mark.parametrize(
    ("emitted", "message"),
    [
        (None, "returned a NoneType instead of an iterator"),
        (5, "returned a int instead of an iterator"),
        ([{"id": "0", "what": "a"}], "emits a dict"),
        ([("0", "a")], "emits a tuple"),
        ([Row("0", "a")], "emits a Row, .* instead of a Row with named columns"),
        ([Row(id="0", what=5)], "rows to sink"),
        ([Row(id="0", what={"a": 1})], "rows to sink"),
    ],
)
def test_rows_that_do_not_fit_the_output_schema_are_refused(emitted: Any, message: str) -> None:
    with pytest.raises((InvalidOutput, OperatorFailed), match=message):
        World("nothing", Emits(emitted), OUT).run(readings(("0", 1)))


def test_what_a_key_emits_is_checked_although_a_later_key_fails() -> None:
    class EmitsThenFails(Processor):
        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:
            if key == ("1",):
                raise ValueError("not this key")
            return [("0", "a")]

    with pytest.raises(InvalidOutput, match="emits a tuple"):
        World("nothing", EmitsThenFails(), OUT, tasks=1).run(readings(("0", 1), ("1", 1)))


def test_columns_are_matched_by_name_and_missing_ones_are_null() -> None:
    run = World("nothing", Emits([Row(what="a", more=1, id="0"), Row(what="b"), Row("id", "what")("1", None)]), OUT)
    assert run.tester.run([readings(("0", 1))]) == [
        {"id": "0", "what": "a"},
        {"id": None, "what": "b"},
        {"id": "1", "what": None},
    ]


def test_no_row_is_emitted_behind_the_watermark_for_a_next_stage() -> None:
    class Late(Processor):
        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            for at in self.values(rows, "at"):
                yield Row(id=key[0], at=at.replace(second=10))

    schema = "id string, at timestamp"
    options: dict[str, Any] = {"time_mode": "EventTime", "event_time": "at", "emitted_event_time": "at"}
    for column, error in (("what", UnknownColumn), ("id", InvalidEventTime)):
        with pytest.raises(error):
            ProcessorOperator(Late(), schema, **{**options, "emitted_event_time": column})
    run = ProcessorTester(Late(), schema, key="id", schema=schema, **options)
    run.run([[{"id": "a", "at": datetime.fromtimestamp(20, UTC)}]])
    with pytest.raises(InvalidOutput, match="is not after the watermark, 20000 ms"):
        run.run([[{"id": "a", "at": datetime.fromtimestamp(30, UTC)}]])


def test_failing_keys_are_skipped_alone_and_keep_their_state(form: str) -> None:
    class Fragile(CountAbove):
        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            yield from super().handleInputRows(key, rows, timerValues)
            if (self.violations.get() or (0,))[0] > 1:
                raise ValueError("too hot")

    run = ProcessorTester(
        Fragile(form),
        "id string, n long, violations long",
        key="id",
        schema=READINGS,
        pandas=form == "pandas",
        on_error="skip",
    )
    assert len(run.run([readings(("0", 200), ("1", 200), ("1", 300))])) == 1
    assert [row["row"] for row in run.tester.quarantined] == [
        '{"id": "1", "temperature": 200}',
        '{"id": "1", "temperature": 300}',
    ]
    assert run.state("1", "violations") is None
    assert run.run([readings(("1", 200))]) == [{"id": "1", "n": 1, "violations": 1}]


def test_a_failure_names_a_row_of_its_key(form: str) -> None:
    class Fails(CountAbove):
        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            if key == ("1",):
                raise ValueError("not this key")
            yield from super().handleInputRows(key, rows, timerValues)

    run = World("nothing", Fails(form), "id string, n long, violations long", tasks=1)
    with pytest.raises(OperatorFailed, match="not this key") as failed:
        run.run(readings(("0", 5), ("0", 6), ("1", 7), ("1", 8)))
    assert failed.value.row == '{"id": "1", "temperature": 7}'


def test_processors_are_closed_once() -> None:
    class Closes(CountAbove):
        def close(self) -> None:
            closed.append(1)

    closed: list[int] = []
    run = World("nothing", Closes(), "id string, n long, violations long")
    run.run(readings(("0", 1)))
    run.tester.close()
    run.tester.close()
