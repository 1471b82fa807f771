"""The detector: counts patterns, and knows of each frequent one whether a longer one covers it.

A pattern is *frequent* if at least `threshold` texts of the window have it, and *maximal* if it is frequent and no
frequent pattern contains it. A text that has a pattern has all parts of it, so counts do not grow with words:

    frequent(q), p < q   implies   frequent(p'), where p < p' <= q and p' has one word more than p

So p is maximal if and only if it is frequent and no frequent pattern *of one word more* contains it. `covers` counts
those. When q becomes or ceases to be frequent, it tells its parts of one word less, wherever they live, through the
records that the detector sends to itself. Whether q is frequent depends on texts alone and never on `covers`, so news
cause no further news: one round of counting, one of telling, and the batch is settled.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastic.operators import Context, KeyedColumns, Operator, State, ToNext, ToSelf
from examples.frequent_patterns.combinations import one_word_less, warm_up
from examples.frequent_patterns.mining import Mining

_FORGET_BATCHES = 8  # between two looks at how many patterns of a task nobody has any more


class Detector(Operator):
    """Takes changes of counts, gives of every pattern that may have changed its standing what the reporter should know.

    Input: `texts` more texts have the pattern, `covers` more frequent patterns of one word more contain it. A row with
    no texts is from the detector itself; with neither it only asks to look at the pattern when all news are in. Output:
    the pattern with its count if it is maximal, else with 0; each pattern at most once a batch.

    State: a row of `KeyedColumns` for each pattern of the window, about 60 bytes; at most as many again wait to be
    forgotten. O(rows) a batch, some millions a second on one core.
    """

    next_schema = "pattern string, texts int"
    emits = frozenset({"self"})

    def __init__(self, mining: Mining) -> None:
        self._threshold = mining.threshold
        self._length = mining.length
        self.version = mining.version  # type: ignore[misc]

    def open(self) -> None:
        """Load the compiled loops before there are rows to wait for them."""
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
            yield from self._counted(patterns, patterns.count("texts", numbers[~own], texts[~own]))
        if own.any():
            yield self._settled(patterns, patterns.count("covers", numbers[own], covers[own]))
        if (context.batch + context.task) % _FORGET_BATCHES == 0:
            _forget(patterns)

    def _counted(self, patterns: KeyedColumns, changed: NDArray[np.int64]) -> Iterator[ToSelf]:
        """News for the parts of patterns that crossed the threshold; and who must be looked at when they are in."""
        was = patterns.column("frequent")[changed]
        now = patterns.column("texts")[changed] >= self._threshold
        patterns.column("frequent")[changed] = now
        crossed = was != now
        if crossed.any():
            table = patterns.to_table(changed[crossed])
            parts, origins = one_word_less(table["pattern"].combine_chunks(), self._length)
            yield _news(parts, np.where(now[crossed], 1, -1)[origins])
        # A frequent pattern that is covered, and was, changes its standing only if it is told so.
        uncovered = now & (patterns.column("covers")[changed] == 0)
        asked = patterns.to_table(changed[crossed | uncovered])["pattern"]
        yield _news(asked, np.zeros(len(asked), np.int64))

    def _settled(self, patterns: KeyedColumns, told: NDArray[np.int64]) -> ToNext:
        """What is maximal now among those that were told something; all news of the batch are in."""
        table = patterns.to_table(told)
        maximal = table["frequent"].to_numpy() & (table["covers"].to_numpy() == 0)
        return ToNext(pa.table({"pattern": table["pattern"], "texts": np.where(maximal, table["texts"].to_numpy(), 0)}))


def _news(patterns: pa.Array | pa.ChunkedArray, covers: NDArray[np.int64]) -> ToSelf:
    return ToSelf(pa.table({"pattern": patterns, "texts": np.zeros(len(covers), np.int32), "covers": covers}))


def _numbers(rows: pa.Table, name: str) -> NDArray[np.int64]:
    return np.asarray(rows[name].to_numpy(), np.int64)


def _forget(patterns: KeyedColumns) -> None:
    """Drop patterns that no text has, once they are half of all; one that comes again, or is told of, starts at zero.

    Its news are still on their way if it ceased to be frequent this moment: they find zeros, which is what it has.
    """
    needed = (patterns.column("texts") != 0) | (patterns.column("covers") != 0)
    if np.count_nonzero(needed) * 2 <= len(patterns):
        patterns.keep(needed)
