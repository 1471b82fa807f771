"""What a run of the windowed operator (see `windowing`) must end with, computed without the engine.

The event time of a value is the value itself in milliseconds plus a disorder of up to one batch. Every `LATE_EVERY`th
value after the first batch lies `LATE` batches behind instead. With `R` rows in a batch, the watermark before batch b
is at least (b - DELAY) * R - 2, and after batch b it is below (b + 2 - DELAY) * R. So late values are late in every
case, and no other row is, nor are the records that it causes in later rounds of the same batch.

Rows of round 0 arrive in a known order, so `content` depends on it; rows of later rounds are only added up.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tests.chaos.oracle import SHOWN, Numbers, Stream, extend_content, mix_values, wrong_batches, wrong_tasks

BASE_MS = 1_700_000_000_000  # event time of value 0, without its disorder
DELAY, LATE = 3, 6  # in batches
LATE_EVERY = 101
TOTAL = -1  # in place of a window: the row of a key's whole life
ECHO = -2  # in place of a window: a result of a later round
HOPS = 2  # rounds that a record is sent again, at most
COLUMNS = ("count", "content", "echoes", "echo_sum", "late")
RESULT = ("key", "window", "count", "content", "echoes", "echo_sum")


@dataclass(frozen=True)
class WindowedStream(Stream):
    """The same values and keys, with event times; a window is as long as a batch has rows, in milliseconds."""

    @property
    def delay_ms(self) -> int:
        return DELAY * self.rows

    def time_expression(self) -> str:
        """The event time of a row in milliseconds, in Spark's SQL."""
        disorder = f"(value * 7919 + {self.seed}) % {self.rows}"
        late = f"IF(value % {LATE_EVERY} == 0, value >= {self.rows}, value < 0)"
        return f"{BASE_MS} + value + IF({late}, -{LATE * self.rows}, {disorder})"

    def is_late(self, values: Numbers) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = (values % LATE_EVERY == 0) & (values >= self.rows)
        return found

    def time_of(self, values: Numbers) -> Numbers:
        """The same in NumPy."""
        disorder = (values * 7919 + self.seed) % self.rows
        return BASE_MS + values + np.where(self.is_late(values), -LATE * self.rows, disorder)

    def window_of(self, times_ms: Numbers) -> Numbers:
        return (times_ms - BASE_MS) // self.rows

    def end_ms(self, window: int) -> int:
        """The last millisecond of a window, at which its timer is set."""
        return BASE_MS + (window + 1) * self.rows - 1

    def comes_back(self, values: Numbers, hops: int) -> NDArray[np.bool_]:
        """Which rows that came `hops` times cause a record that comes once more."""
        return mix_values(values + hops) % 3 == 0 if hops < HOPS else np.zeros(len(values), np.bool_)

    def next_key(self, values: Numbers, hops: int) -> Numbers:
        """The key of the record that a row causes, most often another one than its own."""
        return (mix_values(values * (hops + 2)) % self.keys).astype(np.int64)

    def watermark_ms(self, last_batch: int) -> int:
        """The watermark after a batch."""
        return int(self.time_of(np.arange((last_batch + 1) * self.rows)).max()) - self.delay_ms


def expected_rows(stream: WindowedStream, last_batch: int) -> tuple[pa.Table, pa.Table]:
    """The final state, and all results without their batches."""
    values = np.concatenate([stream.values_of(batch) for batch in range(last_batch + 1)])
    keys, is_late = stream.key_of(values), stream.is_late(values)
    totals = _Rows().add(keys, np.full(len(keys), TOTAL), values)
    totals.add_late(keys[is_late])
    values, keys = values[~is_late], keys[~is_late]
    windows = _Rows().add(keys, stream.window_of(stream.time_of(values)), values)
    results = []
    for hops in range(1, HOPS + 1):
        values = values[stream.comes_back(values, hops - 1)]
        keys = stream.next_key(values, hops - 1)
        totals.add_echoes(keys, np.full(len(keys), TOTAL), values)
        windows.add_echoes(keys, stream.window_of(stream.time_of(values)), values)
        results.append(echo_results(keys, values, hops))
    open_windows, closed = windows.split(stream.window_of(np.array([stream.watermark_ms(last_batch) + 1]))[0])
    state = pa.concat_tables([totals.table(), open_windows])
    return state, pa.concat_tables([closed.select(RESULT), *results])


def echo_results(keys: Numbers, values: Numbers, hops: int) -> pa.Table:
    """What rows that came back give to the sink, at once."""
    number, none = np.full(len(keys), hops), np.zeros(len(keys), np.int64)
    return pa.table([keys, np.full(len(keys), ECHO), number, values, none, none], names=list(RESULT))


def wrong_state(stream: WindowedStream, last_batch: int, state: pa.Table) -> list[str]:
    """What is wrong with a final state; nothing, if all is well."""
    return _differences("state", expected_rows(stream, last_batch)[0], state)


def wrong_outputs(stream: WindowedStream, last_batch: int, outputs: pa.Table) -> list[str]:
    """What is wrong with all results of a run: each must be there once, and no other."""
    wrong = [*wrong_batches(last_batch, outputs), *wrong_tasks(outputs)]
    return wrong + _differences("results", expected_rows(stream, last_batch)[1], outputs)


class _Rows:
    """One row for every key and window, filled in as `windowing` must do."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], NDArray[np.uint64]] = {}

    def add(self, keys: Numbers, windows: Numbers, values: Numbers) -> "_Rows":
        pairs, places = np.unique(np.stack([keys, windows]), axis=1, return_inverse=True)
        content = np.zeros(pairs.shape[1], np.uint64)
        extend_content(content, places.ravel(), values)
        for place, count in enumerate(np.bincount(places.ravel())):
            self._at(pairs[:, place])[:2] = count, content[place]
        return self

    def add_echoes(self, keys: Numbers, windows: Numbers, values: Numbers) -> None:
        for *pair, value in zip(keys, windows, mix_values(values), strict=True):
            self._at(pair)[2:4] += np.array([1, value], np.uint64)

    def add_late(self, keys: Numbers) -> None:
        for key in keys:
            self._at((key, TOTAL))[4] += np.uint64(1)

    def split(self, window: int) -> tuple[pa.Table, pa.Table]:
        """The rows from this window on, and those before it."""
        table = self.table()
        is_open = table["window"].to_numpy() >= window
        return table.filter(pa.array(is_open)), table.filter(pa.array(~is_open))

    def table(self) -> pa.Table:
        pairs = np.array(list(self._found), np.int64).reshape(-1, 2)
        columns = np.array(list(self._found.values()), np.uint64).reshape(-1, len(COLUMNS)).view(np.int64)
        return pa.table([*pairs.T, *columns.T], names=["key", "window", *COLUMNS])

    def _at(self, pair: Iterable[int]) -> NDArray[np.uint64]:
        key, window = map(int, pair)
        return self._found.setdefault((key, window), np.zeros(len(COLUMNS), np.uint64))


def _differences(what: str, expected: pa.Table, found: pa.Table) -> list[str]:
    """Rows that are missing and rows that should not be there, as multisets."""
    names = expected.column_names
    right, given = _sorted_rows(expected), _sorted_rows(found.select(names))
    if np.array_equal(right, given):
        return []
    rows, places = np.unique(np.concatenate([right, given]), axis=0, return_inverse=True)
    signs = np.repeat([-1, 1], [len(right), len(given)])
    surplus = np.bincount(places.ravel(), signs, minlength=len(rows))
    wrong = []
    for verdict, kind in (("missing from", surplus < 0), ("too many in", surplus > 0)):
        shown = [dict(zip(names, row.tolist(), strict=True)) for row in rows[kind][:SHOWN]]
        wrong += [f"{np.count_nonzero(kind)} rows are {verdict} the {what}: {shown}"] if shown else []
    return wrong


def _sorted_rows(table: pa.Table) -> Numbers:
    rows = np.stack([table[name].to_numpy() for name in table.column_names], axis=1)
    return rows[np.lexsort(rows.T[::-1])]
