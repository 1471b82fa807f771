"""The pattern generator: every combination of the words of a text."""

import numpy as np
import pyarrow as pa

from elastic.operators import Context, StatelessOperator
from examples.frequent_patterns.combinations import combinations, warm_up


class PatternGenerator(StatelessOperator):
    """Emits the patterns of up to `length` words of every text, each with the text's count: +n or -n.

    O(patterns), some 10 million per second on one core; a text of w words has the sum of C(w, k) of them.
    """

    next_schema = "pattern string, texts int, covers int"

    def __init__(self, length: int) -> None:
        self._length = length

    def open(self) -> None:
        """Load the compiled loops before the first rows."""
        warm_up()

    def handle_rows(self, rows: pa.Table, _: Context) -> pa.Table:
        patterns, origins = combinations(rows["words"], 1, self._length)
        texts = rows["texts"].to_numpy()[origins]
        return pa.table({"pattern": patterns, "texts": texts, "covers": np.zeros(len(texts), np.int32)})
