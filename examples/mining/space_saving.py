"""Heavy hitters in bounded summaries (SpaceSaving), of keys that are split.

A task summarises the rows that it takes of a batch in m counters. In a summary s of N_s rows, a key's counter is at
least its rows, and too high by at most its `error`, which is at most N_s / m; a key without a counter has at most
N_s / m rows. The operator behind adds counters and errors by key. So for a key with f rows, count C and error E:

    C - E <= f <= C + sum of N_s / m over the summaries that its rows went to and that have no counter for it

A key of the tail has two choices t and u, so while the assignment stays the sum is at most (N_t + N_u) / m with the
rows N of both tasks: the errors of two summaries, however many nodes there are. With a head key (any node) or a change
of nodes it is a sum over more tasks, and at most N / m for a stream of N rows in any case.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from elastic.operators import Context, KeyedColumns, Operator, Stage, State, partial
from elastic.operators.operator import Yields
from examples.mining.run import Report, Size, draw_words, start_job

SUMMARY_SCHEMA = pa.schema([("word", pa.string()), ("count", pa.int64()), ("error", pa.int64())])


class Summary:
    """SpaceSaving with at most `counters` counters: a key without one takes over the lowest, and its count as error.

    Invariant: the counts add up to the rows. A row costs O(counters) at worst.
    """

    def __init__(self, counters: int) -> None:
        self._counters = counters
        self.counts: dict[str, int] = {}
        self.errors: dict[str, int] = {}

    def add(self, keys: Iterable[str]) -> "Summary":
        for key in keys:
            if key not in self.counts:
                self._take_over(key)
            self.counts[key] += 1
        return self

    @property
    def floor(self) -> int:
        """The most rows that a key without a counter can have."""
        return min(self.counts.values()) if len(self.counts) == self._counters else 0

    def _take_over(self, key: str) -> None:
        floor = self.floor
        if floor:
            lowest = min(self.counts, key=self.counts.__getitem__)
            del self.counts[lowest], self.errors[lowest]
        self.counts[key] = self.errors[key] = floor


class HeavyHitters(Operator):
    """Adds the counters that summaries have of a word; emits the words of a batch with counts and errors."""

    output_schema = SUMMARY_SCHEMA

    def __init__(self, counters: int) -> None:
        self._counters = counters

    def initial_state(self) -> KeyedColumns:
        return KeyedColumns("word string", {"count": "int64", "error": "int64"})

    def combine(self, rows: pa.Table) -> pa.Table:
        """Return a summary of the rows, which is the only place where something is lost."""
        summary = Summary(self._counters).add(rows["word"].to_pylist())
        columns = [list(summary.counts), list(summary.counts.values()), list(summary.errors.values())]
        return pa.table(dict(zip(SUMMARY_SCHEMA.names, columns, strict=True)), SUMMARY_SCHEMA)

    def merge(self, partials: pa.Table) -> pa.Table:
        counts = self.initial_state()
        _add(counts, partials)
        return counts.to_table()

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> Yields:
        _add(state.value, rows)
        yield state.value.to_table(np.unique(state.value.rows_for(rows)))

    def lookup(self, value: KeyedColumns, key: tuple[Any, ...]) -> tuple[int, int]:
        """Return the count of a word and the error of that count."""
        found = value.get(key)
        return (0, 0) if found is None else (int(found["count"]), int(found["error"]))


def _add(counts: KeyedColumns, partials: pa.Table) -> None:
    numbers = counts.rows_for(partials)
    for column in ("count", "error"):
        counts.count(column, numbers, partials[column].to_numpy())


def space_saving_stages(counters: int) -> tuple[Stage, Stage]:
    return partial(Stage(HeavyHitters(counters), "word"))


def find_violation(counted: Counter[str], found: dict[str, tuple[int, int]], missing: float) -> str | None:
    """Return a word whose rows are not within its bounds, where summaries may miss `missing` rows of it."""
    for word, rows in counted.items():
        count, error = found.get(word, (0, 0))
        if not count - error <= rows <= count + missing:
            return f"{word!r} has {rows} rows, outside {count - error} to {count} + {missing:g}"
    return None


def run_space_saving(size: Size, counters: int = 50) -> Report:
    """Find heavy words with summaries, and check the bounds of every word after the last batch."""
    batches = [draw_words(size, batch) for batch in range(size.batches)]
    counted = Counter(word for rows in batches for word in rows["word"].to_pylist())
    with start_job(space_saving_stages(counters), "word", pa.schema([("word", pa.string())]), size.batches) as feed:
        for rows in batches:
            feed.send(rows)
        found = {word: feed.ask(word) for word in counted}
    bound = counted.total() / counters
    worst = max(abs(found[word][0] - rows) for word, rows in counted.items())
    figures = {
        "rows": f"{counted.total():,}",
        "words": f"{len(counted):,}",
        "counters per summary": f"{counters}",
        "bound N/m": f"{bound:,.0f}",
        "worst difference": f"{worst:,}",
    }
    verdict = f"the bounds of all {len(counted):,} words hold"
    return Report("space-saving", figures, verdict, find_violation(counted, found, bound))
