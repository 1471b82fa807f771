"""`ProcessorOperator`: one of PySpark's `StatefulProcessor` classes, unchanged, as an operator of the engine."""

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, Self

import cloudpickle
import numpy as np
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessor, TimerValues
from pyspark.sql.types import StructType

from elastic.errors import ElasticError, InvalidProcessor, UnserializableOperator
from elastic.operators.context import Context
from elastic.operators.event_times import check_event_time, mask_until
from elastic.operators.keyed import KeyCalls, KeyedOperator, ValueState
from elastic.operators.keys import to_arrow_value, to_key
from elastic.operators.outputs import RowList
from elastic.operators.rows import slice_rows
from elastic.operators.state_queries import to_keyed_rows
from elastic.operators.timers import Timer, TimerKind
from elastic.spark.processors.emitted_times import EmittedTimes
from elastic.spark.processors.handle import ProcessorHandle
from elastic.spark.processors.modes import check_output_mode, parse_time_mode
from elastic.spark.processors.rows import RowForm
from elastic.spark.processors.schemas import to_arrow, to_struct
from elastic.spark.processors.variables import TIMERS, Entry, restore_variable

INITIAL = "__initial_state__"  # the column of the rows of the initial state: a struct, null for rows of the stream
_PURGE = "purge"  # the name of the engine's timer that removes expired state
_ROWS_PER_FRAME = 10_000  # as spark.sql.execution.arrow.maxRecordsPerBatch
_UNLIMITED = (1 << 31) - 1  # as spark.sql.execution.arrow.maxBytesPerBatch


class _FirstRows(NamedTuple):
    """The rows of a key in the first batch."""

    initial: Any  # those of the initial state
    rows: Any  # those of the stream


class ProcessorOperator(KeyedOperator):
    """Runs a `pyspark.sql.streaming.StatefulProcessor` over the rows of each key.

    `pandas` says that the processor is written for `transformWithStateInPandas`. `event_time` names the column of event
    times, which time_mode="EventTime" needs: rows at or before the watermark are dropped. `emitted_event_time` names
    the output column that a following stage takes as its event time; rows may not be emitted behind the watermark.
    `rows_per_frame`, `bytes_per_frame`, `timezone` and `coerces_integers` are Spark's settings of the pandas form.

    The state of a key is a tuple of its variables and timers (see `variables`), so keys can move one by one. Of a key's
    timers only the earliest is a timer of the engine. Time is that of the batch, so a replay repeats every expiry.
    """

    _processor: StatefulProcessor
    _form: Any  # a RowForm or FrameForm, once bound
    _handle: ProcessorHandle
    _has_initial: bool
    _has_one_key: bool
    _struct_types: dict[int, pa.DataType]  # of the key columns that are structs, by place
    _is_open: bool
    _times: tuple[Context | None, TimerValues]

    def __init__(
        self,
        processor: StatefulProcessor,
        output_schema: StructType | str,
        *,
        output_mode: str = "Append",
        time_mode: str = "None",
        pandas: bool = False,
        event_time: str | None = None,
        emitted_event_time: str | None = None,
        rows_per_frame: int = _ROWS_PER_FRAME,
        bytes_per_frame: int = _UNLIMITED,
        timezone: str = "UTC",
        coerces_integers: bool = False,
    ) -> None:
        _check_instance(processor)
        self.name = type(processor).__name__
        check_output_mode(output_mode, self.name)
        self._timer_kind: TimerKind | None = parse_time_mode(time_mode, self.name)
        if self._timer_kind == "event" and event_time is None:
            raise InvalidProcessor(
                self.name,
                'time_mode="EventTime" needs a watermark. Call withWatermark() on the stream, or set event_time',
            )
        self._processor = _copy_processor(processor, self.name)
        self._output = to_struct(output_schema, f"the output of {self.name}")
        self._pandas = pandas
        self._event_time = event_time
        self._emitted = (
            None if emitted_event_time is None else EmittedTimes(emitted_event_time, self._output, self.name)
        )
        self._frames: dict[str, Any] = {
            "rows_per_frame": rows_per_frame if rows_per_frame > 0 else _UNLIMITED,
            "bytes_per_frame": bytes_per_frame if bytes_per_frame > 0 else _UNLIMITED,
            "timezone": timezone,
            "coerces_integers": coerces_integers,
        }
        self.output_schema = to_arrow(self._output)
        self._check_declarations()

    def bind(self, key: tuple[str, ...], input_schema: pa.Schema) -> Self:
        bound = super().bind(key, input_schema)
        if self._event_time is not None:
            check_event_time(input_schema, self._event_time)
        bound._prepare(has_initial=INITIAL in input_schema.names)  # noqa: SLF001 - its own
        return bound

    def open(self) -> None:
        """Let the processor declare its variables; the operator serves all keys with them."""
        if not self._is_open:
            self._processor.init(self._handle)
            self._handle.end_init()
            self._is_open = True

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._processor.close()

    def select_rows(self, rows: pa.Table, context: Context) -> pa.Table:
        """Drop rows that are late, in event time."""
        if self._timer_kind != "event" or context.watermark_ms is None:
            return rows
        late = mask_until(rows.column(self._event_time), context.watermark_ms)
        return rows.filter(pa.array(~late)) if late.any() else rows

    def slicer(self, rows: pa.Table) -> Callable[[int, int], Any]:
        """Return rows of the stream; `_FirstRows` where rows of the initial state are among them."""
        self._form.measure(rows)
        if not self._has_initial:
            return _slicer(self._form.to_input(rows))
        initial = rows.column(INITIAL).combine_chunks()
        is_data = initial.is_null()
        data = _slicer(self._form.to_input(rows.drop_columns([INITIAL]).filter(is_data)))
        if initial.null_count == len(initial):
            return data
        first = _slicer(self._form.to_input(pa.Table.from_struct_array(initial.filter(initial.is_valid()))))
        before = [0, *np.cumsum(is_data.to_numpy(zero_copy_only=False)).tolist()]  # rows of the stream before each row
        return lambda begin, end: _FirstRows(
            first(begin - before[begin], end - before[end]), data(before[begin], before[end])
        )

    def handle_key(self, key: Any, rows: Any, state: ValueState, context: Context) -> list[Any]:
        values = {key: state.get()} if state.exists() else {}
        known = values.get(key)
        out: list[list[Any]] = []
        self.handle_keys(KeyCalls([key], (0, 1), lambda _begin, _end: rows, values, out.append, []), context)
        if values.get(key) is not known:
            _store(state, values.get(key, ()))
        [emitted] = out
        return emitted

    def handle_keys(self, calls: KeyCalls, context: Context) -> None:
        """Process the keys of a batch, in a loop that calls as little as it can; checks at its end what they emit."""
        keys, offsets, rows_between, values, emit, nanoseconds = calls
        handle, form = self._handle, self._form
        state, enter = handle.state, handle.enter
        leave = handle.leave if self._timer_kind is None else partial(self._leave, context)
        handle_rows, to_chunks, collect = self._processor.handleInputRows, form.chunks, form.collect
        get, now, now_ms, times = values.get, time.perf_counter_ns, context.timestamp_ms, self._timer_values(context)
        out: list[Any] = RowList()
        begin = 0
        try:
            for key, spark_key, end in zip(keys, self._spark_keys(keys), offsets[1:], strict=True):
                context.key = key
                rows = rows_between(begin, end)
                enter(get(key), now_ms)
                if type(rows) is _FirstRows:
                    rows = self._initialize(spark_key, rows, times)
                if rows is not None:
                    collect(handle_rows(spark_key, to_chunks(rows), times), out)
                if state.is_changed:
                    if entry := leave():
                        values[key] = entry
                    else:
                        values.pop(key, None)
                nanoseconds.append(now())
                begin = end
        finally:
            state.cells = None
            emit(self._finish(out, context))  # also after an error: what an earlier key emits may be invalid

    def handle_expired(self, key: Any, timer: Timer, state: ValueState, context: Context) -> list[Any]:
        handle = self._handle
        out: list[Any] = RowList()
        handle.enter(state.get(), context.timestamp_ms)
        try:
            if timer.name == _PURGE:
                handle.purge()
            else:
                self._expire(self._spark_key(key), timer, context, out)
            _store(state, self._leave(context))
        finally:
            handle.state.cells = None
        return self._finish(out, context)

    def write_state(self, entry: Entry | None, name: str, value: Any) -> Entry:
        """Return what a key holds once a test has written one of its variables; None for the value clears it."""
        handle = self._handle
        handle.enter(entry, handle.state.now_ms)
        try:
            handle.state_of(name).replace(value)
            return handle.leave()
        finally:
            handle.state.cells = None

    def lookup(self, value: Any, key: tuple[Any, ...]) -> Any:
        """Return the variables of a key by name, in the form of rows, and its timers; None if it has none."""
        entry = None if value is None else value.get(to_key(key))
        return None if entry is None else describe(entry)

    def state_rows(self, value: Any) -> pa.Table:
        """Return one row per key, with a column for each variable."""
        return to_keyed_rows(
            {key: describe(entry) for key, entry in (value or {}).items()}, self.key, self.input_schema
        )

    def _prepare(self, *, has_initial: bool) -> None:
        self._processor = _copy_processor(self._processor, self.name)
        self._has_initial = has_initial
        self._has_one_key = len(self.key) == 1
        types = [field.type for field in self.key_fields]
        self._struct_types = {place: kind for place, kind in enumerate(types) if pa.types.is_struct(kind)}
        self._form = self._create_form()
        self._handle = ProcessorHandle(self.name, self._timer_kind)
        self._is_open = False
        self._times = (None, TimerValues())

    def _spark_key(self, key: Any) -> tuple[Any, ...]:
        """Return a key as Spark shows it: a tuple, with structs as dicts."""
        values: tuple[Any, ...] = (key,) if self._has_one_key else key
        if not self._struct_types:
            return values
        types = self._struct_types
        return tuple(
            to_arrow_value(value, types[place]) if place in types else value for place, value in enumerate(values)
        )

    def _spark_keys(self, keys: list[Any]) -> Iterable[tuple[Any, ...]]:
        if self._struct_types:
            return map(self._spark_key, keys)
        return zip(keys, strict=True) if self._has_one_key else keys

    def _timer_values(self, context: Context) -> TimerValues:
        """Return the clocks of a batch as Spark shows them; one object for all keys of a step."""
        known, values = self._times
        if known is not context:
            if self._timer_kind is None:
                values = TimerValues(-1, -1)
            else:
                values = TimerValues(context.timestamp_ms, context.watermark_ms or 0)
            self._times = (context, values)
        return values

    def _initialize(self, key: tuple[Any, ...], rows: _FirstRows, times: TimerValues) -> Any:
        """Let the processor handle the initial state of a key; return its rows of the stream, None without any."""
        for first in self._form.chunks(rows.initial):
            self._processor.handleInitialState(key, first, times)
        return rows.rows if len(rows.rows) else None

    def _expire(self, key: tuple[Any, ...], timer: Timer, context: Context, out: list[Any]) -> None:
        """Let the processor handle the due timers of a key; those that it sets meanwhile wait for the next batch."""
        now_ms = context.timestamp_ms if timer.kind == "processing" else context.watermark_ms
        times, handle = self._timer_values(context), self._handle
        for expiry_ms in [expiry_ms for expiry_ms in handle.timers if now_ms is not None and expiry_ms <= now_ms]:
            # by name, as Spark calls it: handlers may have their arguments in another order
            emitted = self._processor.handleExpiredTimer(
                key=key, timerValues=times, expiredTimerInfo=ExpiredTimerInfo(expiry_ms)
            )
            self._form.collect(emitted, out)
            handle.deleteTimer(expiry_ms)
        handle.timers_changed = True  # the engine's timer is gone

    def _leave(self, context: Context) -> Entry:
        """Return what the key in hand holds now, and set its timers of the engine."""
        handle = self._handle
        entry = handle.leave()
        if self._timer_kind is None:
            return entry
        if handle.timers_changed:
            if handle.timers:
                context.set_timer(handle.timers[0], self._timer_kind)
            else:
                context.delete_timer(self._timer_kind)
        if handle.expires:
            purge_ms = handle.next_purge_ms()
            if purge_ms is None:
                context.delete_timer("processing", _PURGE)
            else:
                context.set_timer(purge_ms, "processing", _PURGE)
        return entry

    def _finish(self, out: list[Any], context: Context) -> list[Any]:
        """Return what the processor has emitted in the form of the engine."""
        emitted: list[Any] = self._form.to_output(out)
        if self._emitted is not None:
            self._emitted.check(emitted, context.watermark_ms)
        return emitted

    def _create_form(self) -> Any:
        if not self._pandas:
            return RowForm(self._output, self.name)
        from elastic.spark.processors.frames import FrameForm

        return FrameForm(self._output, self.name, **self._frames)

    def _check_declarations(self) -> None:
        """Run `init` once, on a copy, so that invalid declarations are found before anything starts."""
        trial = _copy_processor(self._processor, self.name)
        try:
            trial.init(ProcessorHandle(self.name, self._timer_kind))
            trial.close()
        except ElasticError:
            raise
        except Exception as error:  # a user's processor may raise anything
            raise InvalidProcessor(
                self.name, f"its init() raised {error!r} when it was tried before the start. Let it declare states only"
            ) from error


def _slicer(rows: Any) -> Callable[[int, int], Any]:
    if isinstance(rows, list):
        return lambda begin, end: rows[begin:end]
    return partial(slice_rows, rows)


def _store(state: ValueState, entry: Entry) -> None:
    if entry:
        state.update(entry)
    else:
        state.clear()


def describe(entry: Entry) -> dict[str, Any]:
    """Return what a key holds by the names of the variables, in the form of rows, and its timers."""
    described: dict[str, Any] = {}
    for tag, cell in zip(entry[::2], entry[1::2], strict=True):
        if tag == TIMERS:
            described[TIMERS] = list(cell)
        else:
            variable = restore_variable(tag)
            described[variable.name] = variable.describe(cell)
    return described


def _check_instance(processor: object) -> None:
    if not isinstance(processor, StatefulProcessor):
        what = processor.__name__ if isinstance(processor, type) else type(processor).__name__
        raise InvalidProcessor(what, "it is not an instance of a StatefulProcessor. Pass an instance")


def _copy_processor(processor: StatefulProcessor, name: str) -> StatefulProcessor:
    """Return a processor as it arrives at a node: what `init` puts into it stays apart from other copies."""
    try:
        copied: StatefulProcessor = cloudpickle.loads(cloudpickle.dumps(processor))
    except Exception as error:
        raise UnserializableOperator(name, error) from error
    return copied
