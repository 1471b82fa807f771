"""Counts of words in windows equal those of a batch computation, whatever moves, crashes or scales meanwhile."""

import time
from collections import Counter, defaultdict
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.operators import Stage
from elastic.operators.testing import Crash, OperatorTester, Rekey, Scale
from elastic.routing import hash_key
from examples.frequent_patterns.texts import make_vocabulary
from examples.skewed_words.application import WORD_SCHEMA, CountAuditor, SkewedWords
from examples.skewed_words.word_count import COUNT_SCHEMA, WindowedWordCount
from examples.workloads import KeyStream, Pace, SkewedTexts

TASKS = 8
WINDOW_MS = 100
WORDS = "abcdef"

words_at = st.lists(st.tuples(st.sampled_from(WORDS), st.integers(0, WINDOW_MS - 1)), max_size=8)
rekeys = st.dictionaries(st.sampled_from(WORDS), st.none() | st.integers(0, TASKS - 1), max_size=4).map(Rekey)
disturbances = rekeys | st.builds(Scale, st.integers(1, 4)) | st.just("crash")


def rows_of(*words: tuple[str, int]) -> pa.Table:
    """Return words with their times in milliseconds."""
    times = pa.array([time_ms * 1_000 for _, time_ms in words], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    return pa.Table.from_arrays([pa.array([word for word, _ in words], pa.string()), times], schema=WORD_SCHEMA)


def make_tester(delay_ms: int = 0) -> OperatorTester:
    stage = Stage(WindowedWordCount(WINDOW_MS), grouping="table")
    return OperatorTester(stage, key="word", schema=WORD_SCHEMA, tasks=TASKS, watermark=("time", delay_ms))


def latest(results: list[dict[str, Any]]) -> dict[int, dict[str, int]]:
    counts: dict[int, dict[str, int]] = defaultdict(dict)
    for row in results:
        counts[row["window"]][row["word"]] = row["count"]
    return counts


def run_disturbed(tester: OperatorTester, item: Any) -> list[dict[str, Any]]:
    if item == "crash":
        return tester.run([Crash(tester.assignment.nodes[0])])
    return tester.run([item])


@given(st.lists(st.tuples(words_at, disturbances), min_size=1, max_size=8))
def test_counts_after_every_window_equal_those_of_a_batch_computation(
    windows: list[tuple[list[tuple[str, int]], Any]],
) -> None:
    tester, results = make_tester(), []
    for window, (given_words, disturbance) in enumerate(windows):
        words = [
            (word, window * WINDOW_MS + time_ms) for word, time_ms in sorted(given_words, key=lambda item: item[1])
        ]
        half = len(words) // 2
        results += tester.run([rows_of(*words[:half])])
        run_disturbed(tester, disturbance)
        results += tester.run([rows_of(*words[half:])])
        assert latest(results)[window] == Counter(word for word, _ in words)


def test_a_window_is_forgotten_when_the_watermark_has_passed_it() -> None:
    tester = make_tester()
    tester.run([rows_of(("a", 0), ("b", 99)), rows_of(("a", 150)), rows_of(("a", 250))])
    assert latest(tester.results["WindowedWordCount"]) == {0: {"a": 1, "b": 1}, 1: {"a": 1}, 2: {"a": 1}}
    cluster = tester._running
    kept = cluster.state(cluster.routing.groupings.unit_of(hash_key("a", types=[pa.string()]), 0)).value.to_table()
    assert {(row["word"], row["window"]) for row in kept.to_pylist() if row["word"] == "a"} == {("a", 1), ("a", 2)}


def test_rows_of_windows_that_have_ended_are_dropped() -> None:
    tester = make_tester(delay_ms=10)
    assert tester.run([rows_of(("a", 108)), rows_of(("a", 99))])[-1] == {"window": 0, "word": "a", "count": 1}
    assert tester.run([rows_of(("a", 109)), rows_of(("a", 98))]) == [{"window": 1, "word": "a", "count": 2}]


def test_the_auditor_describes_what_differs() -> None:
    rows = rows_of(("a", 0), ("a", 1), ("b", 2))
    emitted = [(0, "a", 1), (1, "z", 1), (0, "b", 1), (0, "a", 2)]
    right = pa.Table.from_pylist([dict(zip(COUNT_SCHEMA.names, row, strict=True)) for row in emitted], COUNT_SCHEMA)
    assert CountAuditor().check(0, rows, right) == (2, None)
    for changed in (right.slice(0, 3), right.slice(3), pa.concat_tables([right, right.slice(0, 1)])):
        assert CountAuditor().check(0, rows, changed).difference


def test_results_of_later_windows_are_kept_for_their_check() -> None:
    auditor = CountAuditor()
    emitted = pa.Table.from_pylist(
        [{"window": 0, "word": "a", "count": 1}, {"window": 1, "word": "b", "count": 1}], COUNT_SCHEMA
    )
    assert auditor.check(0, rows_of(("a", 0)), emitted).difference is None
    assert auditor.check(1, rows_of(("b", 100)), COUNT_SCHEMA.empty_table()) == (1, None)


def test_all_rows_of_an_interval_are_in_its_window() -> None:
    pace = Pace(rows_per_batch=7, every_ms=50, batches_per_interval=3)
    texts = SkewedTexts(KeyStream(make_vocabulary(30), 2, TASKS, 0.85, 1.0), pace)
    application = SkewedWords(texts, pace)
    for number in range(7):
        times = application.batch(number)["time"].cast(pa.int64()).to_numpy() // 1_000
        assert times.min() == number * 50
        assert times.max() < (number + 1) * 50
        assert set((times // pace.interval_ms).tolist()) == {pace.interval_of(number)}


@pytest.mark.parametrize("cost", [0.0, 2_000.0])
def test_every_row_costs_its_node_time(cost: float) -> None:
    tester = OperatorTester(WindowedWordCount(WINDOW_MS, cost), key="word", schema=WORD_SCHEMA, tasks=1, nodes=1)
    tester.run([rows_of(("a", 0))])
    began = time.perf_counter()
    tester.run([rows_of(*[("a", 1)] * 50)])
    assert (time.perf_counter() - began >= 0.1) == bool(cost)
