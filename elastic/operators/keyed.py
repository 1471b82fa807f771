"""Operators that process a batch key by key."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from elastic.operators.context import Context
from elastic.operators.operator import Hashes, Operator, State, Yields
from elastic.operators.rows import slice_rows, to_input_format
from elastic.operators.state_queries import to_keyed_rows
from elastic.operators.timers import Timer

MISSING = object()


class ValueState:
    """The state of one key. A value from `get` may be changed in place, but only `update` stores it."""

    __slots__ = ("_initial", "_key", "_values", "is_updated")

    def __init__(self, values: dict[Any, Any], key: Any, initial: Callable[[], Any]) -> None:
        self._values = values
        self._key = key
        self._initial = initial
        self.is_updated = False  # by this call

    def exists(self) -> bool:
        return self._key in self._values

    def get(self) -> Any:
        """Return the value, or that of `initial_state` if there is none."""
        value = self._values.get(self._key, MISSING)
        return self._initial() if value is MISSING else value

    def update(self, value: Any) -> None:
        self._values[self._key] = value
        self.is_updated = True

    def clear(self) -> None:
        """Delete the value; the key takes no more memory."""
        self._values.pop(self._key, None)


class KeyCalls(NamedTuple):
    """The calls of one unit and one batch: key i has rows `offsets[i]` to `offsets[i + 1]`, in their original order.

    `times` has the clock in nanoseconds before the first call and after each one, so it also says which call failed.
    """

    keys: list[Any]
    offsets: Sequence[int]
    rows_between: Callable[[int, int], Any]
    values: dict[Any, Any]  # the states by key
    emit: Callable[[Any], None]
    times: list[int]


class KeyedOperator(Operator):
    """A function over the rows of one key, with a state for each key.

    The engine calls `handle_key` once per batch for each key in it, in order of first appearance. A key is the value of
    its column, or a tuple of values if there are several key columns. Timers belong to the key that sets them. A call
    costs some microseconds, and a state is a Python object: for millions of keys with a few numbers each, write an
    `Operator` over `KeyedColumns`.
    """

    input_format: ClassVar[str] = "rows"
    # How long the state of a key lives after its last update, such as "1 hour"; see `elastic.operators.expiry`.
    ttl: str | None = None

    @property
    def has_timers(self) -> bool:
        return type(self).handle_expired is not KeyedOperator.handle_expired

    def select_rows(self, rows: pa.Table, context: Context) -> pa.Table:  # noqa: ARG002 - for subclasses
        """Return the rows to process, of all keys; override it to drop rows before they are grouped by key."""
        return rows

    def slicer(self, rows: pa.Table) -> Callable[[int, int], Any]:
        """Return the function from begin and end to those rows, as `handle_key` gets them; `rows` are in that order.

        Override it for another form of rows than `input_format` can name. It converts all rows at once, since a slice
        must cost next to nothing.
        """
        return partial(slice_rows, to_input_format(rows, self.input_format))

    def handle_key(self, key: Any, rows: Any, state: ValueState, context: Context) -> Yields:
        """Process the rows of one key: at least one, in order."""
        raise NotImplementedError(f"{type(self).__name__} does not define handle_key. Define it.")

    def handle_keys(self, calls: KeyCalls, context: Context) -> None:
        """Call `handle_key` for every key of a batch, where failures end the job and no state expires.

        An operator of the engine may override it with the same effects in less time.
        """
        keys, offsets, rows_between, values, emit, times = calls
        handle, initial, now = self.handle_key, self.initial_state, time.perf_counter_ns
        for key, (begin, end) in zip(keys, pairwise(offsets), strict=True):
            context.key = key
            emit(handle(key, rows_between(begin, end), ValueState(values, key, initial), context))
            times.append(now())

    def handle_expired(self, key: Any, timer: Timer, state: ValueState, context: Context) -> Yields:
        """Process a due timer of this key."""
        raise NotImplementedError(f"{type(self).__name__} sets timers but does not define handle_expired. Define it.")

    def part(self, state: State, hashes: Hashes) -> dict[Any, Any]:
        """Take the keys with these hashes out, with their values; `state.value` has the values by key."""
        return {key: state.value.pop(key) for key in self.select_keys(state.value, hashes)}

    def join(self, state: State, part: dict[Any, Any]) -> None:
        state.value.update(part)

    def state_rows(self, value: Any) -> pa.Table:
        return to_keyed_rows(value, self.key, self.input_schema)
