"""The most frequent words of a stream, exactly."""

from collections import Counter
from typing import Any, Self

import pyarrow as pa

from elastic.operators import Context, CountByKey, Operator, Stage, State, partial
from elastic.operators.operator import Yields
from examples.mining.run import Report, Size, StartJob, draw_words

Ranking = list[tuple[str, int]]
_BOARD = 0  # the key of the only ranking


def rank(counts: dict[str, int], top: int) -> Ranking:
    """Return the words with the highest counts, words with equal counts in alphabetical order."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:top]


class CandidateWords(CountByKey):
    """Counts words, and emits those of a batch that are among the `top` of their task.

    Counts never fall, so a word enters the ranking of its task only with a batch that has it, and a word among the top
    of all tasks is among the top of its own. Hence the words that are not emitted cannot be in the ranking.
    """

    def __init__(self, top: int) -> None:
        super().__init__()
        self._top = top

    def bind(self, key: tuple[str, ...], input_schema: pa.Schema) -> Self:
        bound = super().bind(key, input_schema)
        bound.output_schema = pa.schema([("board", pa.int64()), ("word", pa.string()), ("count", pa.int64())])
        return bound

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> Yields:
        state.value.count("count", state.value.rows_for(rows), rows["count"].to_numpy())
        counts = state.value.to_table()
        best = dict(rank(dict(zip(counts["word"].to_pylist(), counts["count"].to_pylist(), strict=True)), self._top))
        touched = dict.fromkeys(rows["word"].to_pylist())
        yield [{"board": _BOARD, "word": word, "count": best[word]} for word in touched if word in best]


class Ranked(Operator):
    """Keeps the `top` words with the highest counts, from the newest counts of candidates."""

    output_schema = "word string, count long"

    def __init__(self, top: int) -> None:
        self._top = top

    def initial_state(self) -> dict[str, int]:
        return {}

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> Yields:
        newest = dict(zip(rows["word"].to_pylist(), rows["count"].to_pylist(), strict=True))
        state.value = dict(rank(state.value | newest, self._top))
        yield [{"word": word, "count": count} for word, count in state.value.items()]

    def lookup(self, value: dict[str, int], _key: tuple[Any, ...]) -> Ranking:
        """Return the ranking."""
        return rank(value, self._top)


def top_words_stages(top: int) -> list[Stage]:
    """Return the stages: partial counts, counts by word, and one ranking."""
    return [*partial(Stage(CandidateWords(top), "word")), Stage(Ranked(top), "board")]


def run_top_words(size: Size, start_job: StartJob, top: int = 10) -> Report:
    """Rank the words of a stream, and compare the ranking after every batch with that of all words so far."""
    counted: Counter[str] = Counter()
    wrong: list[str] = []
    with start_job(top_words_stages(top), "word", pa.schema([("word", pa.string())]), size) as feed:
        for batch in range(size.batches):
            rows = draw_words(size, batch)
            feed.send(rows)
            counted.update(rows["word"].to_pylist())
            found, expected = feed.job.state(_BOARD, "Ranked"), rank(counted, top)
            if found != expected:
                wrong.append(f"after batch {batch}: {found} instead of {expected}")
    figures = {f"{place}. {word}": f"{count:,}" for place, (word, count) in enumerate(rank(counted, top), 1)}
    verdict = f"{size.batches} rankings equal those of a batch computation"
    return Report("top-words", figures, verdict, wrong[0] if wrong else None)
