"""Heavy hitters on split keys: counts and errors of merged summaries keep their bounds."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.operators.testing import Crash, OperatorTester, Scale
from elastic.routing import hash_keys
from elastic.routing.node_tasks import NodeTasks
from elastic.routing.partial import choose_tasks
from examples.mining.run import Size, draw_words
from examples.mining.space_saving import SUMMARY_SCHEMA, HeavyHitters, find_violation, space_saving_stages, summarise
from migration import Assignment


def read_summary(words: list[str], counters: int) -> dict[str, tuple[int, int]]:
    summary = summarise(pa.chunked_array([pa.array(words, pa.string())]), counters)
    return {row["word"]: (row["count"], row["error"]) for row in summary.to_pylist()}


@given(st.lists(st.integers(0, 12), max_size=80), st.integers(1, 6))
def test_a_summary_keeps_its_bounds(keys: list[int], counters: int) -> None:
    words, exact = list(map(str, keys)), Counter(map(str, keys))
    summary = read_summary(words, counters)
    assert len(summary) <= counters
    for word, rows in exact.items():
        count, error = summary.get(word, (0, 0))
        missed = 0 if word in summary else len(words) / counters
        assert count - error <= rows <= count + missed
        assert 0 <= error <= len(words) / counters
    assert exact.keys() >= summary.keys()


def test_a_summary_with_a_counter_for_every_word_is_exact() -> None:
    assert read_summary(["b", "a", "b", "c", "b"], 3) == {"a": (1, 0), "b": (3, 0), "c": (1, 0)}


@pytest.mark.parametrize("seed", range(3))
def test_under_two_choices_the_error_of_a_word_is_that_of_at_most_two_summaries(seed: int) -> None:
    numbers = np.random.default_rng(seed).zipf(1.3, 3_000) % 200
    words = np.array([f"w{number}" for number in numbers])
    nodes, counters = 6, 8
    tasks = NodeTasks.of(Assignment.even(12, nodes))
    is_head = np.zeros(len(words), np.bool_)
    chosen = choose_tasks(hash_keys([pa.array(words)]), is_head, tasks, np.zeros(nodes), splits_tail=True)
    operator = HeavyHitters(counters)
    summaries = {
        task: operator.combine(pa.table({"word": words[chosen == task]})) for task in np.unique(chosen).tolist()
    }
    merged = {
        row["word"]: (row["count"], row["error"])
        for row in operator.merge(pa.concat_tables(summaries.values())).to_pylist()
    }
    bounds = []
    for word, rows in Counter(words.tolist()).items():
        its = np.unique(chosen[words == word]).tolist()
        assert len(its) <= 2
        bounds.append(sum((chosen == task).sum() for task in its) / counters)
        assert find_violation(Counter({word: rows}), merged, bounds[-1]) is None
    assert max(bounds) < len(words) / counters / 2  # far below that of all tasks


def test_merged_summaries_have_the_sums_of_counts_and_errors() -> None:
    operator = HeavyHitters(2)
    first = pa.table([["a", "b"], [5, 3], [2, 1]], schema=SUMMARY_SCHEMA)
    second = pa.table([["b", "c"], [4, 2], [3, 0]], schema=SUMMARY_SCHEMA)
    merged = operator.merge(pa.concat_tables([first, second]))
    assert merged.schema == first.schema
    assert sorted(map(tuple, merged.to_pandas().to_numpy().tolist())) == [("a", 5, 2), ("b", 7, 4), ("c", 2, 0)]


def test_heavy_hitters_emit_the_words_of_a_batch() -> None:
    tester = OperatorTester(space_saving_stages(4), key="word", nodes=1, tasks=1)
    emitted = tester.run([[{"word": "a"}, {"word": "b"}], [{"word": "b"}]])
    assert emitted[-1] == {"word": "b", "count": 2, "error": 0}
    assert len(emitted) == 3


def test_heavy_hitters_keep_their_bounds_through_crashes_and_scaling() -> None:
    counters = 4
    first, second, third = (draw_words(Size(3, 60), batch, words=40) for batch in range(3))
    counted = Counter(word for rows in (first, second, third) for word in rows["word"].to_pylist())
    tester = OperatorTester(space_saving_stages(counters), key="word", nodes=2, tasks=8)
    tester.run([first, Scale(3), second, Crash("node-1"), Scale(2), third])
    found = {word: tester.state(word) for word in counted}
    assert find_violation(counted, found, counted.total() / counters) is None
    assert {word: count for word, (count, _) in found.items()} != counted  # something was lost
    assert tester.state("unknown") == (0, 0)


@pytest.mark.parametrize(
    ("count", "error", "bound", "is_right"),
    [
        (4, 0, 1.0, True),  # five rows, of which a summary missed one
        (4, 0, 0.5, False),
        (7, 2, 2.0, True),
        (7, 1, 2.0, False),  # at least six rows, says the counter
        (7, 2, 1.5, False),  # an error above the bound
        (4, 1, 1.0, False),  # the error and the missing row are of two summaries
    ],
)
def test_counts_outside_their_bounds_are_noticed(count: int, error: int, bound: float, is_right: bool) -> None:
    assert (find_violation(Counter(a=5), {"a": (count, error)}, bound) is None) is is_right


def test_a_word_that_no_summary_has_is_within_a_bound_of_its_rows() -> None:
    assert find_violation(Counter(a=5), {}, 5.0) is None
    assert "'a' has 5 rows" in str(find_violation(Counter(a=5), {}, 4.0))
