"""Calls of operators, by batch or key by key, and the handling of their errors."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastic.errors import InvalidOutput, OperatorFailed
from elastic.operators.context import Context, Moment
from elastic.operators.expiry import TTL_TIMER, parse_ttl_ms
from elastic.operators.grouping import group_rows
from elastic.operators.keyed import MISSING, KeyCalls, KeyedOperator, ValueState
from elastic.operators.operator import Operator, State
from elastic.operators.outputs import OutputBuffer
from elastic.operators.quarantine import Quarantine, format_traceback
from elastic.operators.rows import as_json, slice_rows, to_input_format
from elastic.operators.state_codec import copy_value
from elastic.operators.timers import Timer, Timers


class UnitState(State):
    """The value and the timers of a unit: everything that is saved and moved."""

    __slots__ = ("timers",)

    def __init__(self, value: Any = None, timers: Timers | None = None) -> None:
        super().__init__(value)
        self.timers = timers or Timers()


class KeyTimes(NamedTuple):
    """When an operator was called for each key: key i has rows `offsets[i]` to `offsets[i + 1]`, and time likewise."""

    rows: pa.Table
    offsets: Sequence[int]
    nanoseconds: list[int]


class CostTimes(NamedTuple):
    """Execution times of rows of some cost keys: one group of rows of one key each."""

    hashes: NDArray[np.int64]
    rows: NDArray[np.int64]
    seconds: NDArray[np.float64]


@dataclass
class UnitStep:
    """A step of one unit in progress: the state that changes, and what the operator has emitted so far."""

    state: UnitState
    moment: Moment
    outputs: OutputBuffer
    quarantine: Quarantine = field(default_factory=Quarantine)
    key_times: KeyTimes | None = None  # if the operator was called key by key
    cost_times: CostTimes | None = None  # if the stage is measured
    call: int = 0  # of the operator with rows, where the rows of a step are divided


class OperatorCaller(Protocol):
    """Calls an operator for rows and for timers."""

    def rows(self, step: UnitStep, rows: pa.Table) -> None: ...

    def timers(self, step: UnitStep, due: list[Timer]) -> None: ...


class CallFailed(Exception):
    """The operator raised or emitted invalid rows, so its effects must be undone. Internal to this package."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause
        super().__init__(str(cause))


def run_call(step: UnitStep, context: Context, call: Callable[[], Any], *, settle: bool) -> None:
    """Call the operator; outputs and timers take effect only on success. With `settle`, check its rows at once."""
    outputs = step.outputs.new_empty() if settle else step.outputs
    try:
        outputs.add_all(call())
        if settle:
            outputs.settle()
    except MemoryError:
        raise
    except Exception as error:  # a user's operator may raise anything
        context.discard_timers()
        raise CallFailed(error) from error
    context.apply_timers(step.state.timers)
    if settle:
        step.outputs.extend(outputs)


def to_job_error(failed: CallFailed, name: str, moment: Moment, row: dict[str, Any] | None) -> Exception:
    """Return the error with which a failed call ends the job."""
    if isinstance(failed.cause, InvalidOutput):
        return failed.cause
    row_text = None if row is None else as_json(row)
    return OperatorFailed(name, moment.task, moment.batch, format_traceback(failed.cause), row_text)


def describe_timer(timer: Timer) -> dict[str, Any]:
    """Return a timer in the form of a row, for errors."""
    return {"timer": timer.name, "kind": timer.kind, "at_ms": timer.at_ms, "key": timer.key}


class BatchCaller:
    """Calls `handle_batch`.

    With `skip` it copies the value before the call. If the call fails, it restores the copy and retries the rows in
    halves, until the failing rows are alone; they are quarantined, and all others take effect. O(log rows) calls and
    copies for each failing row.
    """

    def __init__(self, operator: Operator, name: str, *, skip: bool) -> None:
        self._operator = operator
        self._name = name
        self._skip = skip

    def rows(self, step: UnitStep, rows: pa.Table) -> None:
        before = copy_value(step.state.value, self._name) if self._skip else None
        context = Context(step.moment, timers_allowed=not self._operator.stateless, call=step.call)
        input_rows = to_input_format(rows, self._operator.input_format)
        try:
            call = partial(self._operator.handle_batch, input_rows, step.state, context)
            run_call(step, context, call, settle=self._skip)
        except CallFailed as failed:
            if not self._skip:
                raise to_job_error(failed, self._name, step.moment, rows.slice(0, 1).to_pylist()[0]) from failed.cause
            step.state.value = before
            if rows.num_rows == 1:
                step.quarantine.add(rows.to_pylist(), failed.cause)
                return
        else:
            return
        half = rows.num_rows // 2
        self.rows(step, rows.slice(0, half))
        self.rows(step, rows.slice(half))

    def timers(self, step: UnitStep, due: list[Timer]) -> None:
        context = Context(step.moment, for_timers=True)
        for timer in due:
            before = copy_value(step.state.value, self._name) if self._skip else None
            try:
                call = partial(self._operator.handle_timer, timer, step.state, context)
                run_call(step, context, call, settle=self._skip)
            except CallFailed as failed:
                if not self._skip:
                    raise to_job_error(failed, self._name, step.moment, describe_timer(timer)) from failed.cause
                step.state.value = before
                step.quarantine.add([describe_timer(timer)], failed.cause)


class KeyedCaller:
    """Calls `handle_key`. With `skip`, a key whose call fails keeps its old value, and its rows are quarantined."""

    def __init__(self, operator: KeyedOperator, key: tuple[str, ...], name: str, *, skip: bool) -> None:
        self._operator = operator
        self._key = key
        self._name = name
        self._skip = skip
        self._ttl_ms = parse_ttl_ms(operator.ttl)

    def rows(self, step: UnitStep, rows: pa.Table) -> None:
        context = Context(step.moment)
        rows = self._operator.select_rows(rows, context)
        if not rows.num_rows:
            return
        keys, ordered, offsets = group_rows(rows, self._key)
        rows_between = self._operator.slicer(ordered)
        times = [time.perf_counter_ns()]
        step.key_times = KeyTimes(ordered, offsets, times)
        if not self._skip and self._ttl_ms is None:
            calls = KeyCalls(keys, offsets, rows_between, step.state.value, step.outputs.add_all, times)
            self._call_all(step, context, calls, ordered)
            return
        for key, (begin, end) in zip(keys, pairwise(offsets), strict=True):
            handle = partial(self._operator.handle_key, key, rows_between(begin, end))
            self._call(step, context, key, handle, partial(_dicts, ordered, begin, end))
            times.append(time.perf_counter_ns())

    def _call_all(self, step: UnitStep, context: Context, calls: KeyCalls, rows: pa.Table) -> None:
        """Call the operator for each key: much faster than `_call`, where failures end the job and no state expires."""
        try:
            self._operator.handle_keys(calls, context)
        except MemoryError:
            raise
        except Exception as error:  # a user's operator may raise anything
            failed = min(len(calls.times), len(calls.keys)) - 1  # the last one, if what all emit is invalid
            begin = calls.offsets[failed]
            row = _dicts(rows, begin, begin + 1)[0]
            raise to_job_error(CallFailed(error), self._name, step.moment, row) from error
        context.apply_timers(step.state.timers)

    def timers(self, step: UnitStep, due: list[Timer]) -> None:
        context = Context(step.moment, for_timers=True)
        # Remove expired keys first: a timer of the same batch must not see them.
        for timer in due:
            if timer.name == TTL_TIMER:
                step.state.value.pop(timer.key, None)
        for timer in due:
            if timer.name == TTL_TIMER:
                continue
            handle = partial(self._operator.handle_expired, timer.key, timer)
            self._call(step, context, timer.key, handle, partial(_dicts_of_timer, timer))

    def _call(
        self,
        step: UnitStep,
        context: Context,
        key: Any,
        handle: Callable[[ValueState, Context], Any],
        rows: Callable[[], list[dict[str, Any]]],
    ) -> None:
        """Call the operator for one key; `rows` returns what is quarantined if that fails."""
        values: dict[Any, Any] = step.state.value
        if self._ttl_ms is not None:
            self._expire(step, key)
        before = copy_value(values[key], self._name) if self._skip and key in values else MISSING
        context.key = key
        try:
            state = ValueState(values, key, self._operator.initial_state)
            run_call(step, context, partial(handle, state, context), settle=self._skip)
            if self._ttl_ms is not None:
                self._renew(step, key, state)
        except CallFailed as failed:
            failing = rows()
            if not self._skip:
                raise to_job_error(failed, self._name, step.moment, failing[0]) from failed.cause
            if before is MISSING:
                values.pop(key, None)
            else:
                values[key] = before
            step.quarantine.add(failing, failed.cause)

    def _expire(self, step: UnitStep, key: Any) -> None:
        """Forget the value of a key that has expired, before its timer fires at the end of the batch."""
        expires = step.state.timers.get("processing", key, TTL_TIMER)
        if expires is not None and expires <= step.moment.timestamp_ms:
            step.state.value.pop(key, None)
            step.state.timers.delete("processing", key, TTL_TIMER)

    def _renew(self, step: UnitStep, key: Any, state: ValueState) -> None:
        """Give a value that was updated another time to live."""
        if not state.exists():
            step.state.timers.delete("processing", key, TTL_TIMER)
        elif state.is_updated:
            expires = step.moment.timestamp_ms + (self._ttl_ms or 0)
            step.state.timers.set(Timer(expires, "processing", TTL_TIMER, key))


def _dicts(rows: pa.Table, begin: int, end: int) -> list[dict[str, Any]]:
    dicts: list[dict[str, Any]] = slice_rows(rows, begin, end).to_pylist()
    return dicts


def _dicts_of_timer(timer: Timer) -> list[dict[str, Any]]:
    return [describe_timer(timer)]
