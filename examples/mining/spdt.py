"""The streaming parallel decision tree (SPDT) on split keys.

Every attribute of an example is a row with the example's leaf. The job keeps a histogram for each (leaf, attribute,
class), keyed by leaf and attribute; the tree grows between batches, by splits that are chosen by merged histograms.

The answer is not that of a batch computation: a leaf starts without examples when its parent is split, and histograms
depend on the order of merges. What is checked against a batch computation is what the algorithm guarantees: counts
of the examples are exact, estimates are within the bounds of their histograms, and no candidate for a split is better
than the chosen one by more than its `regret`.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from elastic.operators import Context, Operator, Stage, State, partial
from elastic.operators.operator import Yields
from examples.mining.histogram import Floats, Histogram, Integers
from examples.mining.run import Report, Size, StartJob
from examples.mining.split_choice import ByClass, SplitChoice, choose_split, find_difference
from examples.mining.tree import Tree

CLASSES = 2
ATTRIBUTES = 4
KEY = ("leaf", "attribute")
VALUE_SCHEMA = pa.schema(
    [("leaf", pa.int64()), ("attribute", pa.int64()), ("label", pa.int64()), ("value", pa.float64())]
)
_BIN = ("centre", "count", "low", "high")
BIN_SCHEMA = pa.schema(
    [
        *((name, pa.int64()) for name in (*KEY, "label")),
        *((name, pa.int64() if name == "count" else pa.float64()) for name in _BIN),
    ]
)
MAX_DEPTH = 3
MIN_ROWS = 600  # of a leaf that is split
MIN_GAIN = 0.01

Histograms = dict[tuple[int, int, int], Histogram]


def merge_bins(bins: pa.Table, most: int) -> Histograms:
    """Return the bins of each (leaf, attribute, class) as one histogram."""
    keys = np.stack([bins[name].to_numpy() for name in (*KEY, "label")], axis=1)
    centres, counts, lows, highs = (bins[name].to_numpy() for name in _BIN)
    found, inverse = np.unique(keys, axis=0, return_inverse=True)
    places = [np.flatnonzero(inverse.ravel() == number) for number in range(len(found))]
    return {
        tuple(key): Histogram.merge(centres[at], counts[at], lows[at], highs[at], most)
        for key, at in zip(found.tolist(), places, strict=True)
    }


def to_bins(histograms: Histograms) -> pa.Table:
    """Return a row for every bin."""
    rows = [BIN_SCHEMA.empty_table()]
    for key, one in histograms.items():
        columns = [*(np.full(len(one.counts), part) for part in key), one.centres, one.counts, one.lows, one.highs]
        rows.append(pa.Table.from_arrays([pa.array(column) for column in columns], schema=BIN_SCHEMA))
    return pa.concat_tables(rows).combine_chunks()


class LeafHistograms(Operator):
    """Keeps histograms of at most `bins` bins; a partial is the bins of some values."""

    def __init__(self, bins: int) -> None:
        self._bins = bins

    def initial_state(self) -> pa.Table:
        return BIN_SCHEMA.empty_table()

    def combine(self, rows: pa.Table) -> pa.Table:
        """Return values as bins, merged."""
        values, ones = rows["value"], pa.array(np.ones(rows.num_rows, np.int64))
        keys = [rows[name] for name in (*KEY, "label")]
        return self.merge(pa.Table.from_arrays([*keys, values, ones, values, values], schema=BIN_SCHEMA))

    def merge(self, partials: pa.Table) -> pa.Table:
        """Return at most `bins` bins for each (leaf, attribute, class)."""
        return to_bins(merge_bins(partials, self._bins))

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> Yields:
        state.value = self.merge(pa.concat_tables([state.value, rows.select(BIN_SCHEMA.names).cast(BIN_SCHEMA)]))

    def lookup(self, value: pa.Table, key: tuple[Any, ...]) -> list[Histogram]:
        """Return the histograms of an attribute at a leaf, by class."""
        found = merge_bins(value, self._bins)
        empty = Histogram.of(np.zeros(0), self._bins)
        return [found.get((key[0], key[1], label), empty) for label in range(CLASSES)]


def spdt_stages(bins: int) -> tuple[Stage, Stage]:
    """Return the stages: histograms of the rows that a task takes, and those of all rows."""
    return partial(Stage(LeafHistograms(bins), KEY))


def to_rows(leaves: Integers, values: Floats, labels: Integers) -> pa.Table:
    """Return a row for every attribute of every example."""
    count, attributes = values.shape
    columns = [np.repeat(leaves, attributes), np.tile(np.arange(attributes), count), np.repeat(labels, attributes)]
    return pa.Table.from_arrays([pa.array(column) for column in [*columns, values.ravel()]], schema=VALUE_SCHEMA)


def grow(tree: Tree, leaf: int, attributes: list[ByClass], bins: int) -> SplitChoice | None:
    """Label a leaf, and split it where the Gini gain is highest; return the split, None if there is none."""
    totals = [one.total for one in attributes[0]]
    if sum(totals):
        tree.labels[leaf] = int(np.argmax(totals))
    if sum(totals) < MIN_ROWS or tree.depths[leaf] >= MAX_DEPTH:
        return None
    choice = choose_split(attributes, bins)
    if choice is None or choice.gain <= MIN_GAIN:
        return None
    tree.split(leaf, choice.attribute, choice.threshold, choice.labels)
    return choice


def grow_exactly(values: Floats, labels: Integers) -> Tree:
    """Return the tree of examples at rest: the same rules, with every value a bin of its own."""
    tree, grown = Tree(), True
    while grown:
        leaves, grown = tree.find_leaves(values), False
        for leaf in tree.leaves:
            here = leaves == leaf
            grown |= _grow_leaf(tree, leaf, values[here], labels[here])
    return tree


def grow_in_batches(values: Floats, labels: Integers, batches: int) -> Tree:
    """Return the tree of the same examples in so many equal batches: exact, and a leaf has only those since its split.

    What SPDT loses against it is due to histograms; the rest is due to the stream being short.
    """
    tree, leaves = Tree(), np.zeros(0, np.int64)
    for batch in np.split(values, batches):
        leaves = np.append(leaves, tree.find_leaves(batch))
        for leaf in tree.leaves:
            here = np.flatnonzero(leaves == leaf)
            _grow_leaf(tree, leaf, values[here], labels[here])
    return tree


def _grow_leaf(tree: Tree, leaf: int, values: Floats, labels: Integers) -> bool:
    exact: list[ByClass] = [
        [Histogram.of(values[labels == label, attribute], len(labels)) for label in range(CLASSES)]
        for attribute in range(ATTRIBUTES)
    ]
    return grow(tree, leaf, exact, len(labels)) is not None


def draw_points(seed: int, batch: int, count: int) -> tuple[Floats, Integers]:
    """Return points of two classes: a corner of the first two attributes, with a twentieth of all labels wrong."""
    chance = np.random.default_rng([seed, batch])
    values = chance.normal(size=(count, ATTRIBUTES))
    is_corner = (values[:, 0] > 0.2) & (values[:, 1] <= 0.5)
    return values, (is_corner ^ (chance.random(count) < 0.05)).astype(np.int64)


def run_spdt(size: Size, start_job: StartJob, bins: int = 60) -> Report:
    """Grow a tree on a stream, and check every leaf after every batch against the examples that it has."""
    tree = Tree()
    leaves, values, labels = np.zeros(0, np.int64), np.zeros((0, ATTRIBUTES)), np.zeros(0, np.int64)
    wrong: list[str] = []
    regrets = [0.0]
    with start_job(spdt_stages(bins), KEY, VALUE_SCHEMA, size) as feed:
        for batch in range(size.batches):
            new_values, new_labels = draw_points(size.seed, batch, size.rows // 10)
            new_leaves = tree.find_leaves(new_values)
            feed.send(to_rows(new_leaves, new_values, new_labels))
            leaves, values = np.append(leaves, new_leaves), np.concatenate([values, new_values])
            labels = np.append(labels, new_labels)
            for leaf in tree.leaves:
                found: list[ByClass] = [feed.job.state((leaf, attribute)) for attribute in range(ATTRIBUTES)]
                here = leaves == leaf
                difference = find_difference(found, values[here], labels[here], bins)
                if difference is not None:
                    wrong.append(f"after batch {batch}, leaf {leaf}: {difference}")
                if (choice := grow(tree, leaf, found, bins)) is not None:
                    regrets.append(choice.regret)
    unseen, truth = draw_points(size.seed, size.batches, 4_000)
    trees = {
        "accuracy": tree,
        "accuracy with exact values": grow_in_batches(values, labels, size.batches),
        "accuracy of a batch tree": grow_exactly(values, labels),
    }
    figures = {
        "examples": f"{len(labels):,}",
        "leaves": f"{len(tree.leaves)}",
        "largest regret of a split": f"{max(regrets):.3f}",
        **{name: f"{(one.predict(unseen) == truth).mean():.3f}" for name, one in trees.items()},
    }
    verdict = "counts are exact, and estimates and splits within their bounds, at every leaf after every batch"
    return Report("spdt", figures, verdict, wrong[0] if wrong else None)
