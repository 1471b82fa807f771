"""Naive Bayes over categorical attributes: a stream counts features by class, and the counts are the model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastic.operators import Context, KeyedColumns, Operator, Stage, State, partial
from elastic.operators.operator import Yields
from examples.mining.run import Report, Size, StartJob

CLASSES = 3
VALUES = 6  # of an attribute
ATTRIBUTES = 8
CLASS = -1  # the attribute that every example has with value 0: it counts the classes, and is the hottest key
FEATURE_SCHEMA = pa.schema([("attribute", pa.int64()), ("value", pa.int64()), ("label", pa.int64())])
KEY = ("attribute", "value")
_COLUMNS = [f"class_{label}" for label in range(CLASSES)]

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Examples:
    """A value of every attribute, and a class, for each example."""

    values: Integers
    labels: Integers

    @classmethod
    def concatenate(cls, batches: Sequence["Examples"]) -> "Examples":
        """Return the examples of all batches."""
        return cls(np.concatenate([one.values for one in batches]), np.concatenate([one.labels for one in batches]))

    def to_features(self) -> pa.Table:
        """Return a row for every value of an example, and one for its class."""
        count, attributes = self.values.shape
        numbers = np.tile(np.append(np.arange(attributes), CLASS), count)
        values = np.column_stack([self.values, np.zeros(count, np.int64)]).ravel()
        columns = [numbers, values, np.repeat(self.labels, attributes + 1)]
        return pa.Table.from_arrays([pa.array(column) for column in columns], schema=FEATURE_SCHEMA)


def draw_examples(seed: int, batch: int, count: int) -> Examples:
    """Return examples of unequally frequent classes; values depend on the class, and are skewed."""
    usual = np.random.default_rng(seed).integers(0, VALUES, (CLASSES, ATTRIBUTES))
    chance = np.random.default_rng([seed, batch])
    labels = chance.choice(CLASSES, count, p=[0.6, 0.3, 0.1])
    noise = np.minimum(chance.geometric(0.5, (count, ATTRIBUTES)) - 1, VALUES - 1)
    return Examples((usual[labels] + noise) % VALUES, labels)


class FeatureCounts(Operator):
    """Counts, for every value of an attribute, the examples of each class that have it."""

    output_schema = pa.schema([*((name, pa.int64()) for name in (*KEY, *_COLUMNS))])

    def initial_state(self) -> KeyedColumns:
        return KeyedColumns("attribute long, value long", dict.fromkeys(_COLUMNS, "int64"))

    def combine(self, rows: pa.Table) -> pa.Table:
        """Return each feature once, with its examples by class."""
        counts, labels = self.initial_state(), rows["label"].to_numpy()
        numbers = counts.rows_for(rows)
        for label, column in enumerate(_COLUMNS):
            counts.count(column, numbers, (labels == label).astype(np.int64))
        return counts.to_table()

    def merge(self, partials: pa.Table) -> pa.Table:
        """Return each feature once, with the sums of its examples by class."""
        counts = self.initial_state()
        _add(counts, partials)
        return counts.to_table()

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> Yields:
        yield state.value.to_table(_add(state.value, rows))

    def lookup(self, value: KeyedColumns, key: tuple[Any, ...]) -> list[int]:
        """Return the counts of a feature by class."""
        found = value.get(key)
        return [0 if found is None else int(found[column]) for column in _COLUMNS]


def _add(counts: KeyedColumns, partials: pa.Table) -> Integers:
    numbers = counts.rows_for(partials)
    for column in _COLUMNS:
        counts.count(column, numbers, partials[column].to_numpy())
    return np.unique(numbers)


@dataclass(frozen=True, eq=False)
class NaiveBayes:
    """Examples by (class), and by (attribute, value, class).

    The class c of values x maximises log n(c) + sum over attributes a of log((n(a, x_a, c) + 1) / (n(c) + VALUES)),
    the lowest class on a tie: Laplace's correction gives values that were never seen a probability.
    """

    classes: Integers
    features: Integers

    @classmethod
    def train(cls, examples: Examples) -> "NaiveBayes":
        """Count examples at rest."""
        features = np.zeros((ATTRIBUTES, VALUES, CLASSES), np.int64)
        for attribute in range(ATTRIBUTES):
            np.add.at(features[attribute], (examples.values[:, attribute], examples.labels), 1)
        return cls(np.bincount(examples.labels, minlength=CLASSES), features)

    @classmethod
    def query(cls, counts: Callable[[tuple[int, int]], list[int]]) -> "NaiveBayes":
        """Ask for the counts of every feature, such as the state of a job."""
        features = [[counts((attribute, value)) for value in range(VALUES)] for attribute in range(ATTRIBUTES)]
        return cls(np.array(counts((CLASS, 0))), np.array(features))

    def predict(self, values: Integers) -> Integers:
        """Return the most probable class of each example."""
        likelihood = np.log((self.features + 1) / (self.classes + VALUES))
        chosen = likelihood[np.arange(ATTRIBUTES), values].sum(axis=1)
        with np.errstate(divide="ignore"):  # a class without examples is never predicted
            return np.asarray(np.argmax(np.log(self.classes) + chosen, axis=1))


def naive_bayes_stages() -> tuple[Stage, Stage]:
    """Return the stages: partial counts, and counts by feature."""
    return partial(Stage(FeatureCounts(), KEY))


def run_naive_bayes(size: Size, start_job: StartJob) -> Report:
    """Train on a stream, and compare the counts and the predictions with those of a model trained on all examples."""
    batches = [draw_examples(size.seed, batch, size.rows // 10) for batch in range(size.batches)]
    with start_job(naive_bayes_stages(), KEY, FEATURE_SCHEMA, size) as feed:
        for examples in batches:
            feed.send(examples.to_features())
        streamed = NaiveBayes.query(feed.job.state)
    everything = Examples.concatenate(batches)
    trained, unseen = NaiveBayes.train(everything), draw_examples(size.seed, size.batches, 2_000)
    found, expected = streamed.predict(unseen.values), trained.predict(unseen.values)
    counts = int((streamed.features != trained.features).sum() + (streamed.classes != trained.classes).sum())
    wrong = int((found != expected).sum())
    figures = {
        "examples": f"{len(everything.labels):,}",
        "counts": f"{trained.features.size + CLASSES:,}",
        "accuracy": f"{(found == unseen.labels).mean():.3f}",
    }
    verdict = f"all counts and {len(found):,} predictions equal those of a model trained on all examples"
    difference = f"{counts} counts and {wrong} predictions differ from a model trained on all examples"
    return Report("naive-bayes", figures, verdict, difference if counts or wrong else None)
