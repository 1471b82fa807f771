"""The operator under test with event time: windows, timers, and records that it sends to itself."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastic.operators import Context, KeyedColumns, State, Timer, ToSelf, ToSink
from elastic.operators.event_times import to_milliseconds
from tests.chaos.counting import MortalOperator
from tests.chaos.deaths import Deaths
from tests.chaos.oracle import extend_content, mix_values
from tests.chaos.windowed_oracle import COLUMNS, RESULT, TOTAL, WindowedStream, echo_results


class Windowing(MortalOperator):
    """Per key, and per key and window, what `windowed_oracle` describes.

    A window is emitted when the watermark passes its end, and its row is deleted. Late rows count in the total of
    their key only. A third of the other rows cause a record of another key, with the same value and event time, that
    is sent again in the next round; so do a third of those.
    """

    output_schema = ", ".join(f"{name} long" for name in RESULT)
    emits = frozenset({"self"})

    def __init__(self, stream: WindowedStream, deaths: Deaths, poison: int = -1) -> None:
        super().__init__(deaths, poison)
        self._stream = stream

    def initial_state(self) -> KeyedColumns:
        return self.new_columns("key long, window long", dict.fromkeys(COLUMNS, "int64"))

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> Any:
        if context.round == 0:
            self.begin(context)
        hops = rows["hops"].to_numpy()
        is_late = np.asarray(context.late(rows, "ts"))
        self._add_totals(state.value, rows, hops, is_late)
        taken = rows.filter(pa.array(~is_late))
        self._add_windows(state.value, taken, context)
        for number in np.unique(taken["hops"].to_numpy()).tolist():
            yield from self._emit(taken.filter(pc.equal(taken["hops"], number)), number)
        if context.round == 0:
            self.end(state.value, context)

    def handle_timer(self, timer: Timer, state: State, context: Context) -> Any:  # noqa: ARG002
        """The watermark has passed the end of a window: emit it, and delete its row."""
        columns: KeyedColumns = state.value
        place = columns.find([pa.array([timer.key], pa.int64()), pa.array([int(timer.name)], pa.int64())])
        result = columns.to_table(place).select(RESULT)
        columns.keep(np.delete(np.arange(len(columns)), place))
        return [ToSink(result)]

    def lookup(self, value: KeyedColumns, key: tuple[Any, ...]) -> Any:
        table = value.to_table()
        return table.filter(pc.equal(table["key"], key[0])).to_pylist()

    def _add_totals(self, columns: KeyedColumns, rows: pa.Table, hops: Any, is_late: Any) -> None:
        places = columns.rows_for([rows["key"], pa.array(np.full(len(hops), TOTAL))])
        _add(columns, places, rows["value"].to_numpy(), hops)
        np.add.at(columns.column("late"), places[is_late], 1)

    def _add_windows(self, columns: KeyedColumns, rows: pa.Table, context: Context) -> None:
        if not rows.num_rows:
            return
        windows = self._stream.window_of(to_milliseconds(rows["ts"]).to_numpy())
        places = columns.rows_for([rows["key"], pa.array(windows)])
        _add(columns, places, rows["value"].to_numpy(), rows["hops"].to_numpy())
        for key, window in set(zip(rows["key"].to_pylist(), windows.tolist(), strict=True)):
            context.set_timer(self._stream.end_ms(window), name=str(window), key=key)

    def _emit(self, rows: pa.Table, hops: int) -> Any:
        values = rows["value"].to_numpy()
        if hops:
            yield ToSink(echo_results(rows["key"].to_numpy(), values, hops))
        back = self._stream.comes_back(values, hops)
        if back.any():
            some = rows.filter(pa.array(back))
            keys, number = self._stream.next_key(values[back], hops), np.full(some.num_rows, hops + 1)
            yield ToSelf(pa.table({"key": keys, "value": some["value"], "ts": some["ts"], "hops": number}))


def _add(columns: KeyedColumns, places: Any, values: Any, hops: Any) -> None:
    """Rows from the source in their order, records that came back in any."""
    first = hops == 0
    if first.any():
        np.add.at(columns.column("count"), places[first], 1)
        extend_content(columns.column("content").view(np.uint64), places[first], values[first])
    np.add.at(columns.column("echoes"), places[~first], 1)
    np.add.at(columns.column("echo_sum").view(np.uint64), places[~first], mix_values(values[~first]))
