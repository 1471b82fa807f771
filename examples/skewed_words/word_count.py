"""The operator: counts of words in tumbling windows of event time."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elastic.operators import Context, KeyedColumns, Operator, State
from elastic.operators.operator import Yields
from examples.harness.cost import spend

_MICROSECONDS = 1_000
COUNT_SCHEMA = pa.schema([("window", pa.int64()), ("word", pa.string()), ("count", pa.int64())])


class WindowedWordCount(Operator):
    """Emits, for every word of a batch, its new count in its window; window k covers `window_ms` from k * window_ms on.

    Rows of windows that the watermark has passed are dropped, and so is the state of those windows, when the next rows
    of the unit arrive. Rows are not combined by senders, as in paper 000: each of them is work for its node, which
    takes `cost_microseconds` longer. The state is `KeyedColumns` with the word among its keys, so it can be divided.
    """

    output_schema = COUNT_SCHEMA

    def __init__(self, window_ms: int, cost_microseconds: float = 0.0) -> None:
        self._window_ms = window_ms
        self._cost_microseconds = cost_microseconds

    def initial_state(self) -> KeyedColumns:
        return KeyedColumns("word string, window long", {"count": "int64"})

    def open(self) -> None:
        """Load the compiled kernels before the first rows."""
        counts = self.initial_state()
        counts.count("count", counts.rows_for(counts.to_table()))

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> Yields:
        spend(rows.num_rows, self._cost_microseconds)
        first_open = self._first_open_window(context)
        counts: KeyedColumns = state.value
        _drop_windows_before(first_open, counts)
        windows = self._windows_of(rows)
        is_open = windows >= first_open
        keys = pa.table({"word": rows["word"].filter(pa.array(is_open)), "window": windows[is_open]})
        touched = counts.count("count", counts.rows_for(keys))
        yield counts.to_table(touched).select(COUNT_SCHEMA.names)

    def _windows_of(self, rows: pa.Table) -> NDArray[np.int64]:
        return np.asarray(rows["time"].cast(pa.int64()).to_numpy() // (self._window_ms * _MICROSECONDS))

    def _first_open_window(self, context: Context) -> int:
        """Return the first window that rows after the watermark can belong to."""
        return 0 if context.watermark_ms is None else (context.watermark_ms + 1) // self._window_ms


def _drop_windows_before(first_open: int, counts: KeyedColumns) -> None:
    windows = counts.to_table()["window"].to_numpy()
    if len(windows) and windows.min() < first_open:
        counts.keep(windows >= first_open)


def split_words(texts: pa.Array) -> pa.Array:
    """Return the words of all texts, in lower case: runs of letters and digits."""
    words = pc.list_flatten(pc.split_pattern_regex(pc.utf8_lower(texts), r"[^\pL\pN]+"))
    return words.filter(pc.not_equal(words, ""))
