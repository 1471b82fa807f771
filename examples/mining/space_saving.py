"""Heavy hitters in summaries of fixed size (SpaceSaving), of keys that are split.

A task summarises the rows that it takes of a batch in m counters, so a node needs memory for m words, however many
there are. In a summary of N rows, a word's counter is at least its rows, and too high by at most its `error`, which is
at most N / m; a word without a counter has at most N / m rows. The operator behind adds counters and errors by word.
With the sums C and E of a word with f rows,

    C - E <= f <= C + D    and so    |C - f| <= max(D, E) <= D + E

where D is the sum of N / m over the summaries with rows of the word, and without a counter for it. A summary either
has a counter, and adds at most N / m to E, or has none, and adds at most N / m to D. So D + E is at most the sum of
N / m over all summaries that the word's rows went to.

This is the bound of paper 001, section VI-C, where adding counters loses nothing (its error of merging is 0). Under two
choices, a word's rows go to two tasks t and u: D + E <= (N_t + N_u) / m, with all rows N of a task in any number of
batches. The error is that of two summaries, however many nodes there are, where shuffle grouping adds up those of all
tasks. A word of the head (W-Choices), or a change of nodes, adds tasks, and D + E <= N / m with all N rows of the
stream holds in any case.
"""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastic.operators import Context, KeyedColumns, Operator, Stage, State, partial
from elastic.operators.operator import Yields
from elastic.routing import hash_keys
from elastic.routing.splitting import SpaceSaving
from examples.mining.run import Report, Size, StartJob, draw_words

SUMMARY_SCHEMA = pa.schema([("word", pa.string()), ("count", pa.int64()), ("error", pa.int64())])


def summarise(words: pa.ChunkedArray, counters: int) -> pa.Table:
    """Return a summary of words: those that have a counter at the end, with their counts and errors.

    Two words with the same hash of 64 bits would share a counter.
    """
    hashes = hash_keys([words]).view(np.uint64)
    sketch = SpaceSaving(counters)
    sketch.add(hashes)
    heaviest = sketch.heaviest()
    different, firsts = np.unique(hashes, return_index=True)
    named = words.take(pa.array(firsts[np.searchsorted(different, heaviest.hashes)])).combine_chunks()
    return pa.table([named, heaviest.counts, heaviest.errors], schema=SUMMARY_SCHEMA)


class HeavyHitters(Operator):
    """Adds the counters that summaries have of a word; emits the words of a batch with counts and errors."""

    output_schema = SUMMARY_SCHEMA

    def __init__(self, counters: int) -> None:
        self._counters = counters

    def initial_state(self) -> KeyedColumns:
        return KeyedColumns("word string", {"count": "int64", "error": "int64"})

    def combine(self, rows: pa.Table) -> pa.Table:
        """Return a summary of the rows, which is the only place where something is lost."""
        return summarise(rows["word"], self._counters)

    def merge(self, partials: pa.Table) -> pa.Table:
        """Return each word once, with the sums of its counters and errors."""
        counts = self.initial_state()
        _add(counts, partials)
        return counts.to_table()

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> Yields:
        yield state.value.to_table(_add(state.value, rows))

    def lookup(self, value: KeyedColumns, key: tuple[Any, ...]) -> tuple[int, int]:
        """Return the count of a word and the error of that count."""
        found = value.get(key)
        return (0, 0) if found is None else (int(found["count"]), int(found["error"]))


def _add(counts: KeyedColumns, partials: pa.Table) -> NDArray[np.int64]:
    numbers = counts.rows_for(partials)
    for column in ("count", "error"):
        counts.count(column, numbers, partials[column].to_numpy())
    return np.unique(numbers)


def space_saving_stages(counters: int) -> tuple[Stage, Stage]:
    """Return the stages: summaries of the rows that a task takes, and their sums by word."""
    return partial(Stage(HeavyHitters(counters), "word"))


def find_violation(counted: Counter[str], found: dict[str, tuple[int, int]], bound: float) -> str | None:
    """Return a word whose count or error is not within the bound, such as N / m; None if all are."""
    for word, rows in counted.items():
        count, error = found.get(word, (0, 0))
        if not (count - error <= rows <= count + bound - error and 0 <= error <= bound):
            return f"{word!r} has {rows} rows: count {count} and error {error} contradict the bound {bound:g}"
    return None


def run_space_saving(size: Size, start_job: StartJob, counters: int = 20) -> Report:
    """Find heavy words with summaries, and check the bounds of every word after the last batch."""
    batches = [draw_words(size, batch) for batch in range(size.batches)]
    counted = Counter(word for rows in batches for word in rows["word"].to_pylist())
    with start_job(space_saving_stages(counters), "word", pa.schema([("word", pa.string())]), size) as feed:
        for rows in batches:
            feed.send(rows)
        found = {word: feed.job.state(word) for word in counted}
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
