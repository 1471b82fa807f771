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
from elastic.routing import hash_keys
from elastic.routing.partial import NodeTasks, choose_tasks
from examples.mining import __main__ as command
from examples.mining.naive_bayes import (
    CLASSES,
    KEY,
    VALUES,
    Examples,
    FeatureCounts,
    NaiveBayes,
    draw_examples,
    naive_bayes_stages,
)
from examples.mining.run import Report, Size, draw_words
from examples.mining.space_saving import (
    SUMMARY_SCHEMA,
    HeavyHitters,
    find_violation,
    space_saving_stages,
    summarise,
)
from examples.mining.top_words import CandidateWords, Ranked, rank, top_words_stages
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


def read_summary(words: list[str], counters: int) -> dict[str, tuple[int, int]]:
    summary = summarise(pa.chunked_array([pa.array(words, pa.string())]), counters)
    return {row["word"]: (row["count"], row["error"]) for row in summary.to_pylist()}


def test_rankings_are_exact_through_crashes_and_scaling() -> None:
    tester = run_disturbed(top_words_stages(5), "word", WORDS)
    assert tester.state(0, "Ranked") == rank(COUNTED, 5)


def test_only_candidates_for_the_ranking_are_emitted() -> None:
    tester = OperatorTester(CandidateWords(2), key="word", nodes=1, tasks=1)
    emitted = tester.run([[{"word": word} for word in "aaabbc"], [{"word": word} for word in "cb"]])
    assert sorted((row["word"], row["count"]) for row in emitted) == [("a", 3), ("b", 2), ("b", 3)]
    assert {row["board"] for row in emitted} == {0}


def test_a_ranking_keeps_words_that_are_not_in_a_batch() -> None:
    tester = OperatorTester(Ranked(2), key="board")
    rows = [[("a", 3), ("b", 2)], [("c", 4)], [("b", 5)]]
    emitted = tester.run([[{"board": 0, "word": word, "count": count} for word, count in batch] for batch in rows])
    assert [(row["word"], row["count"]) for row in emitted[-2:]] == [("b", 5), ("c", 4)]


def test_equal_counts_are_ranked_in_alphabetical_order() -> None:
    assert rank({"b": 2, "c": 3, "a": 2, "d": 1}, 3) == [("c", 3), ("a", 2), ("b", 2)]


def test_a_model_of_split_counts_is_the_one_trained_on_all_examples() -> None:
    batches = [draw_examples(0, batch, 30) for batch in range(3)]
    tester = run_disturbed(naive_bayes_stages(), KEY, [batch.to_features() for batch in batches])
    streamed = NaiveBayes.query(tester.state)
    everything = Examples.concatenate(batches)
    trained = NaiveBayes.train(everything)
    assert streamed.features.tolist() == trained.features.tolist()
    assert streamed.classes.tolist() == trained.classes.tolist() == np.bincount(everything.labels).tolist()
    assert (trained.predict(everything.values) == everything.labels).mean() > 0.8


def test_merged_features_have_the_sums_of_their_examples_by_class() -> None:
    operator = FeatureCounts()
    partials = operator.combine(draw_examples(0, 0, 40).to_features())
    merged = operator.merge(pa.concat_tables([partials, partials, partials.slice(3, 1)]))
    expected = [
        {name: count if name in KEY else count * (3 if place == 3 else 2) for name, count in row.items()}
        for place, row in enumerate(partials.to_pylist())
    ]
    assert merged.to_pylist() == expected


def test_a_prediction_follows_bayes_with_the_correction_of_laplace() -> None:
    model = NaiveBayes.train(draw_examples(3, 0, 50))
    values = np.random.default_rng(0).integers(0, VALUES, (100, model.features.shape[0]))

    def score(example: list[int], label: int) -> float:
        product = model.classes[label] / model.classes.sum()
        for attribute, value in enumerate(example):
            product *= (model.features[attribute, value, label] + 1) / (model.classes[label] + VALUES)
        return float(product)

    expected = [max(range(CLASSES), key=lambda label: score(example, label)) for example in values.tolist()]
    assert model.predict(values).tolist() == expected
    assert (model.features == 0).any()  # values that were never seen with a class


def test_a_class_without_examples_is_never_predicted() -> None:
    examples = draw_examples(0, 0, 60)
    model = NaiveBayes.train(Examples(examples.values, np.where(examples.labels == 2, 0, examples.labels)))
    assert model.classes[2] == 0
    assert 2 not in model.predict(draw_examples(0, 1, 200).values)


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
    tester = OperatorTester(space_saving_stages(4), key="word")
    emitted = tester.run([[{"word": "a"}, {"word": "b"}], [{"word": "b"}]])
    assert emitted[-1] == {"word": "b", "count": 2, "error": 0}
    assert len(emitted) == 3


def test_heavy_hitters_keep_their_bounds_through_crashes_and_scaling() -> None:
    counters = 4
    tester = run_disturbed(space_saving_stages(counters), "word", WORDS)
    found = {word: tester.state(word) for word in COUNTED}
    assert find_violation(COUNTED, found, COUNTED.total() / counters) is None
    assert {word: count for word, (count, _) in found.items()} != COUNTED
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


@pytest.mark.parametrize("application", list(command.APPLICATIONS))
def test_an_application_is_right_while_its_job_scales(application: str) -> None:
    options = ["--batches", "6", "--rows", "300" if application != "spdt" else "3000"]
    ended = CliRunner().invoke(command.main, [application, *options])
    assert ended.exit_code == 0, ended.output
    assert "right: " in ended.output


def test_a_wrong_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(command.APPLICATIONS, "spdt", lambda *_: Report("spdt", {}, "fine", "2 totals differ"))
    ended = CliRunner().invoke(command.main, ["spdt"])
    assert (ended.exit_code, "WRONG: 2 totals differ" in ended.output) == (1, True)
