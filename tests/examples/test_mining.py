"""The applications of paper 001: answers on split keys equal those of batch computations, or keep their bounds."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from elastic.operators import Stage
from elastic.operators.testing import Crash, OperatorTester, Scale
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
from examples.mining.run import Feed, Report, Size, draw_words, start_in_threads
from examples.mining.top_words import CandidateWords, Ranked, rank, top_words_stages

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


@pytest.mark.parametrize("application", list(command.APPLICATIONS))
def test_an_application_is_right_while_its_job_scales(application: str) -> None:
    options = ["--batches", "6", "--rows", "300" if application != "spdt" else "3000"]
    ended = CliRunner().invoke(command.main, [application, *options])
    assert ended.exit_code == 0, ended.output
    assert "right: " in ended.output


class TwiceFed(Feed):
    """Sends every batch twice."""

    def send(self, rows: pa.Table) -> None:
        super().send(pa.concat_tables([rows, rows]))


@contextmanager
def start_twice_fed(stages: Sequence[Stage], key: Any, schema: pa.Schema, size: Size) -> Iterator[Feed]:
    with start_in_threads(stages, key, schema, size) as feed:
        yield TwiceFed(feed.job, feed.batches, feed.append)


@pytest.mark.parametrize("application", list(command.APPLICATIONS))
def test_an_application_notices_rows_that_are_counted_twice(application: str) -> None:
    report = command.APPLICATIONS[application](Size(3, 100), start_twice_fed)
    assert report.difference is not None


def test_a_job_scales_while_it_is_fed() -> None:
    stages, schema = top_words_stages(2), pa.schema([("word", pa.string())])
    nodes = []
    with start_in_threads(stages, "word", schema, SIZE) as feed:
        for rows in WORDS:
            feed.send(rows)
            if feed.job.migration is not None:
                feed.job.migration.wait(60)
            nodes.append(len(feed.job.assignment().nodes))
    assert nodes == [3, 5, 2]


def test_a_wrong_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(command.APPLICATIONS, "spdt", lambda *_: Report("spdt", {}, "fine", "2 totals differ"))
    ended = CliRunner().invoke(command.main, ["spdt"])
    assert (ended.exit_code, "WRONG: 2 totals differ" in ended.output) == (1, True)
