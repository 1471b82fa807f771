"""How an operator is called, and what happens when it raises: for whole batches here, key by key in `keyed_calls`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from elastic.errors import InvalidOutput, OperatorFailed
from elastic.operators.context import Context
from elastic.operators.failures import Quarantine, told
from elastic.operators.moment import Moment
from elastic.operators.operator import Operator, State
from elastic.operators.outputs import Outputs
from elastic.operators.rows import as_json, shaped
from elastic.operators.saved import copied
from elastic.operators.timers import Timer, Timers


class UnitState(State):
    """A task's value and its timers: everything that is saved and moved."""

    __slots__ = ("timers",)

    def __init__(self, value: Any = None, timers: Timers | None = None) -> None:
        super().__init__(value)
        self.timers = timers or Timers()


@dataclass
class Step:
    """One step in progress."""

    state: UnitState
    moment: Moment
    outputs: Outputs
    quarantine: Quarantine = field(default_factory=Quarantine)


class Calls(Protocol):
    """The two occasions on which an operator is called."""

    def rows(self, step: Step, rows: pa.Table) -> None: ...

    def timers(self, step: Step, due: list[Timer]) -> None: ...


class CallFailed(Exception):
    """The operator raised, or gave rows that do not fit; whatever it did must not count. Never leaves this package."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause
        super().__init__(str(cause))


def called(step: Step, context: Context, call: Callable[[], Any], *, settle: bool) -> None:
    """One call: outputs and timers count only if it goes well; with `settle` its rows are checked at once."""
    outputs = step.outputs.fresh() if settle else step.outputs
    try:
        outputs.take(call())
        if settle:
            outputs.settle()
    except MemoryError:
        raise
    except Exception as error:  # a user's operator may raise anything
        context.forget_timers()
        raise CallFailed(error) from error
    context.apply_timers(step.state.timers)
    if settle:
        step.outputs.extend(outputs)


def raised(failed: CallFailed, name: str, moment: Moment, row: dict[str, Any] | None) -> Exception:
    """What the job sees of a failed call."""
    if isinstance(failed.cause, InvalidOutput):
        return failed.cause
    told_row = None if row is None else as_json(row)
    return OperatorFailed(name, moment.task, moment.batch, told(failed.cause), told_row)


def described(timer: Timer) -> dict[str, Any]:
    """A timer in place of a row, for errors."""
    return {"timer": timer.name, "kind": timer.kind, "at_ms": timer.at_ms, "key": timer.key}


class BatchCalls:
    """Calls `handle_batch`.

    With `skip` the value is copied before the rows. If the call fails, the copy is put back and the rows are tried in
    halves, until those that fail are alone; they are set aside, and all others count. O(log rows) calls and copies for
    each row that fails.
    """

    def __init__(self, operator: Operator, name: str, *, skip: bool) -> None:
        self._operator = operator
        self._name = name
        self._skip = skip

    def rows(self, step: Step, rows: pa.Table) -> None:
        before = copied(step.state.value, self._name) if self._skip else None
        context = Context(step.moment, timers_allowed=not self._operator.stateless)
        input_rows = shaped(rows, self._operator.input_format)
        try:
            call = partial(self._operator.handle_batch, input_rows, step.state, context)
            called(step, context, call, settle=self._skip)
        except CallFailed as failed:
            if not self._skip:
                raise raised(failed, self._name, step.moment, rows.slice(0, 1).to_pylist()[0]) from failed.cause
            step.state.value = before
            if rows.num_rows == 1:
                step.quarantine.add(rows.to_pylist(), failed.cause)
                return
        else:
            return
        half = rows.num_rows // 2
        self.rows(step, rows.slice(0, half))
        self.rows(step, rows.slice(half))

    def timers(self, step: Step, due: list[Timer]) -> None:
        context = Context(step.moment, for_timers=True)
        for timer in due:
            before = copied(step.state.value, self._name) if self._skip else None
            try:
                call = partial(self._operator.handle_timer, timer, step.state, context)
                called(step, context, call, settle=self._skip)
            except CallFailed as failed:
                if not self._skip:
                    raise raised(failed, self._name, step.moment, described(timer)) from failed.cause
                step.state.value = before
                step.quarantine.add([described(timer)], failed.cause)
