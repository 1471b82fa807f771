"""Aggregates over session windows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastic.errors import InvalidSetting
from elastic.operators.aggregates.aggregation import Aggregation, to_numpy
from elastic.operators.aggregates.functions import AggregateFunction, Column
from elastic.operators.aggregates.windowed import LateRows, OutputMode, WindowedAggregate
from elastic.operators.columns import KeyedColumns
from elastic.operators.context import Context
from elastic.operators.event_clock import FOREVER
from elastic.operators.kernels import Words
from elastic.operators.operator import Hashes, State, Yields
from elastic.operators.timers import Timer
from elastic.operators.windows import SessionWindow
from elastic.routing.hashing import is_among

_TIME = "elastic.time"
_TIMER = "elastic.sessions"
_MIN_KEYS = 64


class MergedSessions(NamedTuple):
    """Sessions, in order of (owner, start), and for every interval that of which it is a part."""

    session_of: Words
    owners: Words
    starts: Words
    ends: Words


def merge_intervals(owners: Words, starts: Words, ends: Words) -> MergedSessions:
    """Merge intervals of the same owner that overlap or touch. O(n log n).

    Owner and time are packed into one word, so that sorting, and the latest end so far of each owner, are operations on
    one column. The result does not depend on the order of the intervals.
    """
    origin = int(starts.min())
    bits = int(ends.max() - origin).bit_length()
    if int(owners.max()).bit_length() + bits >= 63:  # of a word with a sign
        return _merge_by_rank(owners, starts, ends)
    packed_starts = owners << bits | (starts - origin)
    order = np.argsort(packed_starts)
    packed_starts = packed_starts[order]
    latest = np.maximum.accumulate((owners << bits | (ends - origin))[order])
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = packed_starts[1:] > latest[:-1]
    first = np.flatnonzero(is_first)
    last = np.append(first[1:], len(order)) - 1
    session_of = np.empty(len(order), np.int64)
    session_of[order] = np.cumsum(is_first) - 1
    times = (1 << bits) - 1
    return MergedSessions(
        session_of,
        packed_starts[first] >> bits,
        (packed_starts[first] & times) + origin,
        (latest[last] & times) + origin,
    )


def _merge_by_rank(owners: Words, starts: Words, ends: Words) -> MergedSessions:
    """Merge intervals whose owners and times do not fit into one word: times are replaced by their ranks."""
    times, ranks = np.unique(np.concatenate([starts, ends]), return_inverse=True)
    merged = merge_intervals(owners, ranks[: len(starts)], ranks[len(starts) :])
    return merged._replace(starts=times[merged.starts], ends=times[merged.ends])


@dataclass
class SessionState:
    """The open sessions of the keys of a unit: session i is of key `owners[i]`, a row of `keys`."""

    keys: KeyedColumns
    owners: Words
    starts: Words
    ends: Words
    columns: dict[str, Column]  # the accumulators
    due: int = FOREVER

    @property
    def nbytes(self) -> int:
        arrays = [self.owners, self.starts, self.ends, *self.columns.values()]
        return self.keys.nbytes + sum(array.nbytes for array in arrays)

    def select(self, mask: NDArray[Any]) -> Self:
        """Return some sessions, of the same keys; the mask may also be their numbers."""
        columns = {name: column[mask] for name, column in self.columns.items()}
        owners, starts, ends = self.owners[mask], self.starts[mask], self.ends[mask]
        return type(self)(self.keys, owners, starts, ends, columns, self.due)

    def append(self, owners: Words, starts: Words, ends: Words, columns: Mapping[str, Column]) -> Self:
        return type(self)(
            self.keys,
            np.concatenate([self.owners, owners]),
            np.concatenate([self.starts, starts]),
            np.concatenate([self.ends, ends]),
            {name: np.concatenate([column, columns[name]]) for name, column in self.columns.items()},
            self.due,
        )

    def drop_unused_keys(self) -> None:
        """Drop keys without sessions if they are the majority: O(1) amortised per key."""
        is_used = np.zeros(len(self.keys), np.bool_)
        is_used[self.owners] = True
        if len(is_used) > 2 * np.count_nonzero(is_used) + _MIN_KEYS:
            self.renumber(is_used)

    def renumber(self, is_kept: NDArray[np.bool_]) -> None:
        """Keep only these keys, which are those of all sessions."""
        self.keys = self.keys.select(is_kept)
        self.owners = (np.cumsum(is_kept) - 1)[self.owners]


class SessionAggregate(WindowedAggregate):
    """Aggregates by key and session.

    Rows and open sessions of the same key are intervals, which are merged where they overlap or touch. As in Spark a
    row is late if a session of it alone would be complete. A batch costs O(rows log rows), and copies the state.
    """

    window_column = "session_window"

    def __init__(
        self,
        functions: Mapping[str, AggregateFunction],
        window: SessionWindow,
        *,
        time: str | None = None,
        lateness: str = "0 seconds",
        output_mode: OutputMode = "append",
        late: LateRows = "drop",
    ) -> None:
        super().__init__(functions, time=time, lateness=lateness, output_mode=output_mode, late=late)
        if output_mode == "update":
            raise InvalidSetting(
                "output_mode", output_mode, "a session that grows has another window each time; expected 'append'"
            )
        self._gap = window.gap

    def __repr__(self) -> str:
        return self._describe(SessionWindow(self._gap))

    @property
    def window_length(self) -> int:
        return self._gap

    def initial_state(self) -> SessionState:
        empty = np.zeros(0, np.int64)
        columns = {name: np.zeros(0, each.dtype) for name, each in self.aggregation.accumulators.items()}
        return SessionState(KeyedColumns(pa.schema(self.key_fields), {}), empty, empty, empty, columns)

    def combine(self, rows: pa.Table) -> pa.Table:
        """Return keys, times and what functions need; rows stay rows, since some may be late and others not."""
        if self.late != "drop":
            return rows
        if self._time is None:
            return self.aggregation.lift(rows, {name: rows.column(name) for name in self.key})
        return self._lift(*self._drop_untimed(rows))

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> Yields:
        now = self.clock.now(context)
        if self.late != "drop":
            rows, times = self._drop_untimed(rows)
            is_late = times + self._gap <= now
            if is_late.any():
                yield self._emit_late(rows.filter(pa.array(is_late)))
            rows = self._lift(rows, times)
        elif self._time is None:
            rows = rows.append_column(_TIME, pa.array(self.clock.times(rows, context)[0]))
        times = to_numpy(rows.column(_TIME))
        is_late = times + self._gap <= now
        if is_late.any():
            rows, times = rows.filter(pa.array(~is_late)), times[~is_late]
        if rows.num_rows:
            state.value = self._with_rows(state.value, rows, times)
            self._schedule(state.value, context)

    def handle_timer(self, _: Timer, state: State, context: Context) -> Yields:
        now = self.clock.now(context)
        held: SessionState = state.value
        if now >= held.due:
            complete = np.flatnonzero(held.ends <= now)
            yield self._emit(self._results(held, complete[np.lexsort((held.starts[complete], held.ends[complete]))]))
            held = state.value = held.select(held.ends > now)
            held.drop_unused_keys()
            held.due = FOREVER
        self._schedule(held, context, again=True)

    def part(self, state: State, hashes: Hashes) -> SessionState:
        held: SessionState = state.value
        is_parted = is_among(held.keys.hash_keys(self.key), hashes)
        part = held.select(is_parted[held.owners])
        part.renumber(is_parted)
        state.value = held.select(~is_parted[held.owners])
        state.value.renumber(~is_parted)
        return part

    def join(self, state: State, part: SessionState) -> None:
        held: SessionState = state.value
        keys = part.keys.take_keys()
        numbers = held.keys.rows_for(keys if len(keys) > 1 else keys[0])
        state.value = held.append(numbers[part.owners], part.starts, part.ends, part.columns)
        state.value.due = min(held.due, part.due)

    def state_rows(self, value: SessionState) -> pa.Table:
        """Return the open sessions as they are now."""
        return self._results(value, np.lexsort((value.starts, value.owners)))

    def lookup(self, value: SessionState, key: tuple[Any, ...]) -> list[dict[str, Any]]:
        """Return the open sessions of one key as they are now, in order."""
        sessions = np.flatnonzero(value.owners == value.keys.find_key(key))
        sessions = sessions[np.argsort(value.starts[sessions])]
        found: list[dict[str, Any]] = self._results(value, sessions).drop_columns(list(self.key)).to_pylist()
        return found

    def _lift(self, rows: pa.Table, times: Words) -> pa.Table:
        groups = {name: rows.column(name) for name in self.key}
        return self.aggregation.lift(rows, {**groups, _TIME: times})

    def _with_rows(self, held: SessionState, rows: pa.Table, times: Words) -> SessionState:
        """Return the state after merging rows into it."""
        numbers = held.keys.rows_for(rows)
        is_touched = np.zeros(len(held.keys), np.bool_)
        is_touched[numbers] = True
        is_merged = is_touched[held.owners]
        old = held.select(is_merged)
        merged = merge_intervals(
            np.concatenate([old.owners, numbers]),
            np.concatenate([old.starts, times]),
            np.concatenate([old.ends, times + self._gap]),
        )
        columns = _merge_columns(self.aggregation, old, rows, merged)
        kept = held.select(~is_merged) if is_merged.any() else held
        return kept.append(merged.owners, merged.starts, merged.ends, columns)

    def _schedule(self, held: SessionState, context: Context, *, again: bool = False) -> None:
        """See to it that a timer fires when the first session is complete."""
        due = int(held.ends.min()) if len(held.ends) else FOREVER
        # A session that has grown may leave the timer too early, which does no harm.
        if due < held.due or (again and due < FOREVER):
            self.clock.set_timer(context, due, _TIMER)
            held.due = due

    def _results(self, held: SessionState, sessions: Words) -> pa.Table:
        keys = held.keys.take_keys(held.owners[sessions])
        results = self.aggregation.finish({name: column[sessions] for name, column in held.columns.items()})
        return self._to_results(keys, held.starts[sessions], held.ends[sessions], results)


def _merge_columns(
    aggregation: Aggregation, old: SessionState, rows: pa.Table, merged: MergedSessions
) -> dict[str, Column]:
    """Return the accumulators of merged sessions: those of old sessions, with the rows that are new."""
    columns = {}
    for name, accumulator in aggregation.accumulators.items():
        column = np.zeros(len(merged.starts), accumulator.dtype)
        if column.dtype.kind != "V":
            column[:] = accumulator.initial
        accumulator.merge(column, merged.session_of[: len(old.owners)], old.columns[name])
        accumulator.add(column, merged.session_of[len(old.owners) :], to_numpy(rows.column(name)))
        columns[name] = column
    return columns
