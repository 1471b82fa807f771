"""The applications of paper 001: answers on split keys equal those of batch computations, or keep their bounds."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from elastic.operators.testing import Crash, OperatorTester, Scale
from elastic.routing.partial import NodeTasks, choose_tasks
from examples.mining import __main__ as command
from examples.mining.histogram import Histogram
from examples.mining.naive_bayes import KEY, NaiveBayes, draw_examples, naive_bayes_stages
from examples.mining.run import Report, Size, draw_words
from examples.mining.space_saving import Summary, find_violation, space_saving_stages
from examples.mining.spdt import grow_exactly, spdt_stages, to_rows
from examples.mining.top_words import rank, top_words_stages
from migration import Assignment

SIZE = Size(3, 60)
WORDS = [draw_words(SIZE, batch, words=40) for batch in range(3)]
COUNTED = Counter(word for rows in WORDS for word in rows["word"].to_pylist())


def run_disturbed(stages: Any, key: Any, batches: list[pa.Table]) -> OperatorTester:
    """Run three batches, with a crash and changes of nodes between them."""
    tester = OperatorTester(stages, key=key, nodes=2, tasks=8)
    first, second, third = batches
    tester.run([first, Scale(3), second, Crash("node-1"), Scale(2), third])
    return tester


def test_rankings_are_exact_through_crashes_and_scaling() -> None:
    tester = run_disturbed(top_words_stages(5), "word", WORDS)
    assert tester.state(0, "Ranked") == rank(COUNTED, 5)


def test_equal_counts_are_ranked_in_alphabetical_order() -> None:
    assert rank({"b": 2, "c": 3, "a": 2, "d": 1}, 3) == [("c", 3), ("a", 2), ("b", 2)]


def test_a_model_of_split_counts_is_the_one_trained_on_all_examples() -> None:
    batches = [draw_examples(0, batch, 30) for batch in range(3)]
    tester = run_disturbed(naive_bayes_stages(), KEY, [batch.to_features() for batch in batches])
    streamed = NaiveBayes.query(tester.state)
    everything = type(batches[0])(
        np.concatenate([one.values for one in batches]), np.concatenate([one.labels for one in batches])
    )
    trained = NaiveBayes.train(everything)
    assert streamed.features.tolist() == trained.features.tolist()
    assert streamed.classes.tolist() == trained.classes.tolist() == np.bincount(everything.labels).tolist()
    assert (trained.predict(everything.values) == everything.labels).mean() > 0.8


@given(st.lists(st.integers(0, 12), max_size=80), st.integers(1, 6))
def test_a_summary_keeps_its_bounds(keys: list[int], counters: int) -> None:
    words, exact = list(map(str, keys)), Counter(map(str, keys))
    summary = Summary(counters).add(words)
    assert len(summary.counts) <= counters
    assert sum(summary.counts.values()) == len(words)
    assert summary.floor <= len(words) / counters
    for word, rows in exact.items():
        count, error = summary.counts.get(word, summary.floor), summary.errors.get(word, summary.floor)
        assert count - error <= rows <= count
        assert error <= len(words) / counters


@pytest.mark.parametrize("seed", range(3))
def test_under_two_choices_the_error_of_a_key_is_that_of_at_most_two_summaries(seed: int) -> None:
    hashes = np.random.default_rng(seed).zipf(1.3, 3_000) % 200
    nodes, counters = 6, 8
    tasks = NodeTasks.of(Assignment.even(12, nodes))
    chosen = choose_tasks(hashes, np.zeros(len(hashes), np.bool_), tasks, np.zeros(nodes), splits_tail=True)
    summaries = {
        task: Summary(counters).add(map(str, hashes[chosen == task].tolist())) for task in set(chosen.tolist())
    }
    for key in set(hashes.tolist()):
        its = [summaries[task] for task in set(chosen[hashes == key].tolist())]
        assert len(its) <= 2
        upper = sum(one.counts.get(str(key), one.floor) for one in its)
        error = sum(one.errors.get(str(key), one.floor) for one in its)
        assert upper - error <= (hashes == key).sum() <= upper
        assert error <= sum(sum(one.counts.values()) for one in its) / counters


def test_heavy_hitters_keep_their_bounds_through_crashes_and_scaling() -> None:
    counters = 4
    tester = run_disturbed(space_saving_stages(counters), "word", WORDS)
    found = {word: tester.state(word) for word in COUNTED}
    assert find_violation(COUNTED, found, COUNTED.total() / counters) is None
    assert sum(count for count, _ in found.values()) == COUNTED.total()
    assert any(error for _, error in found.values())


def test_counts_outside_their_bounds_are_noticed() -> None:
    counted = Counter(a=5)
    assert find_violation(counted, {"a": (4, 0)}, 1.0) is None
    assert "outside 4 to 4" in str(find_violation(counted, {"a": (4, 0)}, 0.5))
    assert find_violation(counted, {"a": (7, 2)}, 0.0) is None
    assert find_violation(counted, {"a": (7, 1)}, 0.0) is not None


@given(st.lists(st.floats(-1e3, 1e3), max_size=40), st.integers(1, 8))
def test_a_histogram_has_few_bins_and_exact_totals(values: list[float], bins: int) -> None:
    merged = Histogram.merge(np.array(values), np.ones(len(values), np.int64), bins)
    assert len(merged.counts) <= bins
    assert merged.total == len(values) == merged.count_below(1e4)
    estimates = [merged.count_below(value) for value in sorted(values)]
    assert estimates == sorted(estimates)


def test_the_nearest_bins_are_merged_at_their_weighted_mean() -> None:
    merged = Histogram.merge(np.array([9.0, 1.0, 2.0, 2.0]), np.array([1, 1, 1, 1]), 2)
    assert merged.counts.tolist() == [3, 1]
    assert merged.centres.tolist() == pytest.approx([5 / 3, 9.0])
    pair = Histogram(np.array([0.0, 2.0]), np.array([4, 8]))
    assert [pair.count_below(value) for value in (-1.0, 0.0, 1.0, 2.0)] == [0.0, 2.0, 4.5, 12.0]
    with pytest.raises(ValueError, match="must ascend"):
        Histogram(np.array([2.0, 1.0]), np.array([1, 1]))


def test_histogram_totals_are_exact_through_crashes_and_scaling() -> None:
    chance = np.random.default_rng(0)
    leaves, labels, values = chance.integers(0, 2, 90), chance.integers(0, 2, 90), chance.normal(size=(90, 4))
    parts = [slice(start, start + 30) for start in (0, 30, 60)]
    batches = [to_rows(leaves[part], values[part], labels[part]) for part in parts]
    tester = run_disturbed(spdt_stages(5), ("leaf", "attribute"), batches)
    for leaf, attribute in np.ndindex(2, 4):
        found = tester.state((leaf, attribute))
        assert [one.total for one in found] == np.bincount(labels[leaves == leaf], minlength=2).tolist()
        assert max(len(one.counts) for one in found) <= 5


def test_a_tree_finds_the_corner_of_a_class() -> None:
    values = np.random.default_rng(0).normal(size=(3_000, 4))
    labels = ((values[:, 0] > 0) & (values[:, 1] <= 0.5)).astype(np.int64)
    tree = grow_exactly(values, labels)
    assert (tree.predict(values) == labels).mean() > 0.98
    assert {test.attribute for test in tree.splits.values()} >= {0, 1}


@pytest.mark.parametrize("application", list(command.APPLICATIONS))
def test_an_application_is_right_while_its_job_scales(application: str) -> None:
    options = ["--batches", "6", "--rows", "300" if application != "spdt" else "4000"]
    ended = CliRunner().invoke(command.main, [application, *options])
    assert ended.exit_code == 0, ended.output
    assert "right: " in ended.output


def test_a_wrong_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(command.APPLICATIONS, "spdt", lambda _size: Report("spdt", {}, "fine", "2 totals differ"))
    ended = CliRunner().invoke(command.main, ["spdt"])
    assert (ended.exit_code, "WRONG: 2 totals differ" in ended.output) == (1, True)
