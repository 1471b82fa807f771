"""The detector: counts patterns, and tracks whether a longer frequent pattern covers each frequent one.

A pattern is *frequent* if at least `threshold` texts of the window have it, and *maximal* if it is frequent and no
frequent pattern contains it. A text that has a pattern has all parts of it, so counts do not grow with words:

    frequent(q), p < q   implies   frequent(p'), where p < p' <= q and p' has one word more than p

So p is maximal if and only if it is frequent and no frequent pattern *of one word more* contains it. `covers` counts
those. When q becomes or ceases to be frequent, the detector notifies its parts of one word less, on whatever node they
are, by records that it sends to itself. Whether q is frequent depends on texts alone and never on `covers`, so
notifications cause no further ones: one round of counting, one of notifications, and the batch is complete.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastic.operators import Context, KeyedColumns, Operator, State, ToNext, ToSelf
from examples.frequent_patterns.combinations import one_word_less, warm_up
from examples.frequent_patterns.mining import Mining

_COMPACT_BATCHES = 8  # interval of checks for patterns that no text has any more


class Detector(Operator):
    """Processes changes of counts, and emits every pattern that may have become or ceased to be maximal.

    Input: `texts` more texts have the pattern, `covers` more frequent patterns of one word more contain it. A row
    without texts is from the detector itself; with neither it only requests a check of the pattern after all
    notifications. Output: the pattern with its count if it is maximal, else with 0; each at most once per batch.

    State: a row of `KeyedColumns` for each pattern of the window, about 60 bytes; at most as many again await deletion.
    O(rows) per batch, some millions per second on one core.
    """

    next_schema = "pattern string, texts int"
    emits = frozenset({"self"})

    def __init__(self, mining: Mining) -> None:
        self._threshold = mining.threshold
        self._length = mining.length
        self.version = mining.version  # type: ignore[misc]

    def open(self) -> None:
        """Load the compiled loops before the first rows."""
        warm_up()
        patterns = self.initial_state()
        patterns.count("texts", patterns.rows_for(patterns.to_table()))

    def initial_state(self) -> KeyedColumns:
        return KeyedColumns("pattern string", {"texts": "int64", "covers": "int64", "frequent": "bool"})

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> Iterator[ToSelf | ToNext]:
        patterns: KeyedColumns = state.value
        numbers = patterns.rows_for(rows)
        texts, covers = _numbers(rows, "texts"), _numbers(rows, "covers")
        own = texts == 0
        if not own.all():
            yield from self._count_texts(patterns, patterns.count("texts", numbers[~own], texts[~own]))
        if own.any():
            yield self._settle_covers(patterns, patterns.count("covers", numbers[own], covers[own]))
        if (context.batch + context.task) % _COMPACT_BATCHES == 0:
            _compact(patterns)

    def _count_texts(self, patterns: KeyedColumns, changed: NDArray[np.int64]) -> Iterator[ToSelf]:
        """Yield notifications to the parts of patterns that crossed the threshold, then requests to check patterns."""
        was = patterns.column("frequent")[changed]
        now = patterns.column("texts")[changed] >= self._threshold
        patterns.column("frequent")[changed] = now
        crossed = was != now
        if crossed.any():
            table = patterns.to_table(changed[crossed])
            parts, origins = one_word_less(table["pattern"].combine_chunks(), self._length)
            yield _notify(parts, np.where(now[crossed], 1, -1)[origins])
        # A frequent pattern that was and is covered can only change by a notification.
        uncovered = now & (patterns.column("covers")[changed] == 0)
        asked = patterns.to_table(changed[crossed | uncovered])["pattern"]
        yield _notify(asked, np.zeros(len(asked), np.int64))

    def _settle_covers(self, patterns: KeyedColumns, notified: NDArray[np.int64]) -> ToNext:
        """Return the maximal ones among the notified patterns; all notifications of the batch have arrived."""
        table = patterns.to_table(notified)
        maximal = table["frequent"].to_numpy() & (table["covers"].to_numpy() == 0)
        return ToNext(pa.table({"pattern": table["pattern"], "texts": np.where(maximal, table["texts"].to_numpy(), 0)}))


def _notify(patterns: pa.Array | pa.ChunkedArray, covers: NDArray[np.int64]) -> ToSelf:
    return ToSelf(pa.table({"pattern": patterns, "texts": np.zeros(len(covers), np.int32), "covers": covers}))


def _numbers(rows: pa.Table, name: str) -> NDArray[np.int64]:
    return np.asarray(rows[name].to_numpy(), np.int64)


def _compact(patterns: KeyedColumns) -> None:
    """Drop patterns that no text has, once they are half of all; a pattern that returns starts at zero.

    Notifications about a dropped pattern may still arrive: they find zeros, which is what it had.
    """
    needed = (patterns.column("texts") != 0) | (patterns.column("covers") != 0)
    if np.count_nonzero(needed) * 2 <= len(patterns):
        patterns.keep(needed)
