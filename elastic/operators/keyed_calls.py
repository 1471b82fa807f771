"""How a keyed operator is called: once for each key of a batch, and for each timer of a key."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import pyarrow as pa

from elastic.operators.calls import CallFailed, Step, called, described, raised
from elastic.operators.context import Context
from elastic.operators.grouping import grouped
from elastic.operators.keyed import MISSING, KeyedOperator, ValueState
from elastic.operators.rows import cut, shaped
from elastic.operators.saved import copied
from elastic.operators.timers import Timer


class KeyedCalls:
    """Calls `handle_key`. With `skip`, a key whose call fails keeps its old value, and its rows are set aside."""

    def __init__(self, operator: KeyedOperator, key: tuple[str, ...], name: str, *, skip: bool) -> None:
        self._operator = operator
        self._key = key
        self._name = name
        self._skip = skip

    def rows(self, step: Step, rows: pa.Table) -> None:
        keys, ordered, offsets = grouped(rows, self._key)
        input_rows = shaped(ordered, self._operator.input_format)
        context = Context(step.moment)
        for key, (begin, end) in zip(keys, pairwise(offsets), strict=True):
            handle = partial(self._operator.handle_key, key, cut(input_rows, begin, end))
            self._call(step, context, key, handle, partial(_dicts, ordered, begin, end))

    def timers(self, step: Step, due: list[Timer]) -> None:
        context = Context(step.moment, for_timers=True)
        for timer in due:
            handle = partial(self._operator.handle_expired, timer.key, timer)
            self._call(step, context, timer.key, handle, partial(_dicts_of_timer, timer))

    def _call(
        self,
        step: Step,
        context: Context,
        key: Any,
        handle: Callable[[ValueState, Context], Any],
        rows: Callable[[], list[dict[str, Any]]],
    ) -> None:
        """Call for one key; `rows` gives what is set aside if that fails."""
        values: dict[Any, Any] = step.state.value
        before = copied(values[key], self._name) if self._skip and key in values else MISSING
        context.key = key
        try:
            state = ValueState(values, key, self._operator.initial_state)
            called(step, context, partial(handle, state, context), settle=self._skip)
        except CallFailed as failed:
            failing = rows()
            if not self._skip:
                raise raised(failed, self._name, step.moment, failing[0]) from failed.cause
            if before is MISSING:
                values.pop(key, None)
            else:
                values[key] = before
            step.quarantine.add(failing, failed.cause)


def _dicts(rows: pa.Table, begin: int, end: int) -> list[dict[str, Any]]:
    dicts: list[dict[str, Any]] = cut(rows, begin, end).to_pylist()
    return dicts


def _dicts_of_timer(timer: Timer) -> list[dict[str, Any]]:
    return [described(timer)]
