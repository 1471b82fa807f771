"""Aggregates over tumbling and sliding windows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from elastic.operators.aggregates.aggregation import to_numpy
from elastic.operators.aggregates.functions import AggregateFunction
from elastic.operators.aggregates.windowed import LateRows, OutputMode, WindowedAggregate
from elastic.operators.columns import KeyedColumns
from elastic.operators.context import Context
from elastic.operators.event_clock import FOREVER, NEVER
from elastic.operators.kernels import Words
from elastic.operators.operator import Hashes, State, Yields
from elastic.operators.timers import Timer
from elastic.operators.windows import Window

_PANE = "elastic.pane"  # the beginning of a pane, as a key
_BEGIN = "elastic.begin"  # and as a column, since columns are cheap to read
_TIMER = "elastic.windows"


@dataclass
class PaneState:
    """The panes of the keys of a unit, which windows have been completed, and when the next one will be.

    Windows that end until `closed` are complete; windows that end later have not been emitted by mode "append".
    """

    panes: KeyedColumns
    closed: int = NEVER
    due: int = FOREVER

    @property
    def nbytes(self) -> int:
        return self.panes.nbytes


class PaneAggregate(WindowedAggregate):
    """Aggregates by key and pane, and merges panes to windows when they are emitted.

    A row costs O(1) however many windows it is in; emitting a window costs O(its panes). The state has a row for each
    key and pane, until the last window of the pane is complete.
    """

    def __init__(
        self,
        functions: Mapping[str, AggregateFunction],
        window: Window,
        *,
        time: str | None = None,
        lateness: str = "0 seconds",
        output_mode: OutputMode = "append",
        late: LateRows = "drop",
    ) -> None:
        super().__init__(functions, time=time, lateness=lateness, output_mode=output_mode, late=late)
        self._window = window

    def __repr__(self) -> str:
        return self._describe(self._window)

    @property
    def window_length(self) -> int:
        return self._window.size

    def initial_state(self) -> PaneState:
        return PaneState(self.aggregation.new_state(self._groups, {_BEGIN: "int64"}))

    def combine(self, rows: pa.Table) -> pa.Table:
        """Return keys and panes with their aggregates; the rows themselves if late ones are to be emitted."""
        if self.late != "drop":
            return rows
        keys = {name: rows.column(name) for name in self.key}
        if self._time is None:  # the time of the batch is not known yet, but it is the same for all
            return self.aggregation.reduce(self.aggregation.lift(rows, keys), pa.schema(self.key_fields))
        return self.aggregation.reduce(self._lift(*self._drop_untimed(rows)), self._groups)

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> Yields:
        held: PaneState = state.value
        now = self.clock.now(context)
        if self.late != "drop":
            rows, times = self._drop_untimed(rows)
            is_late = self._window.last_ends(self._window.panes(times)) <= now
            if is_late.any():
                yield self._emit_late(rows.filter(pa.array(is_late)))
                rows, times = rows.filter(pa.array(~is_late)), times[~is_late]
            rows = self._lift(rows, times)
        elif self._time is None:
            times, _ = self.clock.times(rows, context)
            rows = rows.append_column(_PANE, pa.array(self._window.panes(times)))
        if self._time is not None:
            held.closed = max(held.closed, now)
        rows, panes = self._drop_late(rows, now)
        if not rows.num_rows:
            return
        numbers = held.panes.rows_for(rows)
        held.panes.column(_BEGIN)[numbers] = panes
        self.aggregation.add(held.panes, numbers, rows)
        self._schedule(held, int(panes.min()), context)
        if self._output_mode == "update":
            yield self._emit(self._windows(held.panes, np.unique(numbers), now, FOREVER, whole=True))

    def handle_timer(self, _: Timer, state: State, context: Context) -> Yields:
        held: PaneState = state.value
        now = self.clock.now(context)
        if now >= held.due:
            panes = held.panes.column(_BEGIN)
            if self._output_mode == "append":
                due = np.flatnonzero(self._window.first_ends(panes, held.closed) <= now)
                yield self._emit(self._windows(held.panes, due, held.closed, now))
            held.panes.keep(self._window.last_ends(panes) > now)
            held.closed, held.due = max(held.closed, now), FOREVER
        if len(held.panes):
            self._schedule(held, int(held.panes.column(_BEGIN).min()), context, again=True)

    def part(self, state: State, hashes: Hashes) -> PaneState:
        held: PaneState = state.value
        return PaneState(held.panes.part(hashes, self.key), held.closed, held.due)

    def join(self, state: State, part: PaneState) -> None:
        held: PaneState = state.value
        held.panes.join(part.panes)
        held.closed, held.due = max(held.closed, part.closed), min(held.due, part.due)

    def state_rows(self, value: PaneState) -> pa.Table:
        """Return the open windows as they are now."""
        return self._windows(value.panes, np.arange(len(value.panes)), value.closed, FOREVER)

    def lookup(self, value: PaneState, key: tuple[Any, ...]) -> list[dict[str, Any]]:
        """Return the open windows of one key as they are now, in order."""
        rows = np.flatnonzero(value.panes.hash_keys(self.key) == self._hash(key))
        windows = self._windows(value.panes, rows, value.closed, FOREVER).drop_columns(list(self.key)).to_pylist()
        return sorted(windows, key=lambda each: each[self.window_column]["end"])

    @property
    def _groups(self) -> pa.Schema:
        return pa.schema([*self.key_fields, (_PANE, pa.int64())])

    def _lift(self, rows: pa.Table, times: Words) -> pa.Table:
        groups = {name: rows.column(name) for name in self.key}
        return self.aggregation.lift(rows, {**groups, _PANE: self._window.panes(times)})

    def _drop_late(self, rows: pa.Table, now: int) -> tuple[pa.Table, Words]:
        """Drop rows all of whose windows are complete; return the panes of the others too."""
        panes = to_numpy(rows.column(_PANE))
        if now == NEVER or not len(panes) or self._window.last_ends(panes[[panes.argmin()]])[0] > now:
            return rows, panes
        is_kept = self._window.last_ends(panes) > now
        return rows.filter(pa.array(is_kept)), panes[is_kept]

    def _schedule(self, held: PaneState, pane: int, context: Context, *, again: bool = False) -> None:
        """See to it that a timer fires when the first window of this pane, or of an earlier one, is complete.

        In mode "update" windows need nothing at their end, so the timer waits for the last one of a pane.
        """
        first = np.array([pane])
        ends = (
            self._window.first_ends(first, held.closed)
            if self._output_mode == "append"
            else (self._window.last_ends(first))
        )
        due = min(held.due, int(ends[0]))
        if due < held.due or again:
            self.clock.set_timer(context, due, _TIMER)
        held.due = due

    def _windows(self, panes: KeyedColumns, rows: Words, after: int, until: int, *, whole: bool = False) -> pa.Table:
        """Return the results of the windows of these rows that end later than `after` and not later than `until`.

        The rows are all that the windows have, in these bounds; with `whole` other rows of the windows are looked up.
        Windows are in order of their ends.
        """
        tables = list(self._each_window(panes, rows, after, until, whole=whole))
        return pa.concat_tables(tables) if tables else self.result_schema.empty_table()

    def _each_window(
        self, panes: KeyedColumns, rows: Words, after: int, until: int, *, whole: bool
    ) -> Iterator[pa.Table]:
        begins = panes.column(_BEGIN)[rows]
        if self._window.panes_per_window == 1:
            ends = self._window.last_ends(begins)
            order = np.argsort(ends, kind="stable")
            yield self._results(panes, rows[order], ends[order])
            return
        different = np.unique(begins)
        last = np.minimum(self._window.last_ends(different), until)
        first = self._window.first_ends(different, after)
        ends = np.concatenate([first + number * self._window.slide for number in range(self._window.windows_per_pane)])
        ends = np.unique(ends[ends <= np.tile(last, self._window.windows_per_pane)])
        for end in ends.tolist():
            covered = rows[(begins >= end - self._window.size) & (begins < end)]
            merged = self.aggregation.new_state(pa.schema(self.key_fields))
            keys = panes.take_keys(covered)[:-1]
            numbers = merged.rows_for(keys if len(keys) > 1 else keys[0])
            if whole:
                self._merge_window(merged, panes, end)
            else:
                self.aggregation.merge(merged, numbers, panes, covered)
            yield self._results(merged, np.arange(len(merged)), np.full(len(merged), end))

    def _merge_window(self, merged: KeyedColumns, panes: KeyedColumns, end: int) -> None:
        """Merge all panes of a window for these keys."""
        keys = merged.take_keys()
        for begin in range(end - self._window.size, end, self._window.pane):
            found = panes.find([*keys, pa.array(np.full(len(merged), begin))])
            known = np.flatnonzero(found >= 0)
            self.aggregation.merge(merged, known, panes, found[known])

    def _results(self, groups: KeyedColumns, rows: Words, ends: Words) -> pa.Table:
        keys = groups.take_keys(rows)[: len(self.key)]
        return self._to_results(keys, ends - self._window.size, ends, self.aggregation.finish_rows(groups, rows))
