"""The application: texts as rows of words, the counting stage, and the audit of its counts."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from elastic import Input
from elastic.operators import Stage, to_schema
from examples.frequent_patterns.audit import difference
from examples.harness.application import Rows, WindowCheck, make_input
from examples.skewed_words.word_count import WindowedWordCount, split_words
from examples.workloads import Pace, TextBatches

WORD_SCHEMA = pa.schema([("word", pa.string()), ("time", pa.timestamp("us", tz="UTC"))])
_MICROSECONDS = 1_000


@dataclass(frozen=True)
class SkewedWords:
    """Counts the words of batches of texts, in windows of one interval of the pace."""

    texts: TextBatches
    pace: Pace
    cost_microseconds: float = 0.0
    name: str = "skewed-words"
    balanced: tuple[str, ...] = ("counts",)

    @property
    def results(self) -> pa.Schema:
        return to_schema(WindowedWordCount.output_schema)

    def inputs(self) -> list[Input]:
        return make_input(WORD_SCHEMA, "word", delay_ms=0)

    def stages(self) -> list[Stage]:
        counting = WindowedWordCount(self.pace.interval_ms, self.cost_microseconds)
        return [Stage(counting, "word", "counts", grouping="table")]

    def batch(self, number: int) -> pa.Table:
        """Return the words of a batch, at times that are spread over the batch, in order."""
        words = split_words(self.texts.batch(number))
        first_us, us = number * self.pace.every_ms * _MICROSECONDS, self.pace.every_ms * _MICROSECONDS
        times = first_us + np.arange(len(words)) * us // max(1, len(words))
        return pa.Table.from_arrays([words, pa.array(times).cast(WORD_SCHEMA.field("time").type)], schema=WORD_SCHEMA)

    def keys_of(self, rows: Rows) -> pa.ChunkedArray:
        return rows["word"]

    def source_batch(self, results: pa.Table, known: int) -> int:  # noqa: ARG002 - every batch has words, and results
        return known + 1

    def make_auditor(self) -> "CountAuditor":
        return CountAuditor()


@dataclass
class CountAuditor:
    """Holds the newest count of every word in every window that is not checked yet."""

    _counts: dict[int, dict[str, int]] = field(default_factory=dict)

    def check(self, window: int, rows: Rows, results: pa.Table) -> WindowCheck:
        for number, word, count in zip(
            *(results[name].to_pylist() for name in ("window", "word", "count")), strict=True
        ):
            self._counts.setdefault(number, {})[word] = count
        counted, expected = self._counts.pop(window, {}), Counter(rows["word"].to_pylist())
        return WindowCheck(len(expected), None if counted == expected else difference(counted, expected))
