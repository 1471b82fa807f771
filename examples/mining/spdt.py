"""The streaming parallel decision tree (SPDT) on split keys.

Every attribute of an example is a row with the example's leaf. The job keeps a histogram for each (leaf, attribute,
class), keyed by leaf and attribute; the tree grows between batches, by splits that are decided on merged histograms.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from elastic.operators import Context, Operator, Stage, State, partial
from elastic.operators.operator import Yields
from examples.mining.histogram import Histogram, find_cuts
from examples.mining.run import Report, Size, start_job
from examples.mining.tree import Floats, Integers, Tree, gini_gain

CLASSES = 2
ATTRIBUTES = 4
KEY = ("leaf", "attribute")
VALUE_SCHEMA = pa.schema(
    [("leaf", pa.int64()), ("attribute", pa.int64()), ("label", pa.int64()), ("value", pa.float64())]
)
BIN_SCHEMA = VALUE_SCHEMA.append(pa.field("count", pa.int64()))  # a bin: its value is the centre
MAX_DEPTH = 3
MIN_ROWS = 600  # of a leaf that is split
MIN_GAIN = 0.01
MAX_LOSS = 0.03  # of accuracy, against a tree of the exact values

Histograms = dict[tuple[int, int, int], Histogram]


def merge_bins(bins: pa.Table, most: int) -> Histograms:
    """Return the bins of each (leaf, attribute, class) as one histogram."""
    keys = np.stack([bins[name].to_numpy() for name in ("leaf", "attribute", "label")], axis=1)
    centres, counts = bins["value"].to_numpy(), bins["count"].to_numpy()
    found, inverse = np.unique(keys, axis=0, return_inverse=True)
    inverse = inverse.ravel()
    return {
        tuple(key): Histogram.merge(centres[inverse == place], counts[inverse == place], most)
        for place, key in enumerate(found.tolist())
    }


def to_bins(histograms: Histograms) -> pa.Table:
    """Return a row for every bin."""
    keys = np.array([key for key, one in histograms.items() for _ in one.counts], np.int64).reshape(-1, 3)
    centres = np.concatenate([np.zeros(0), *(one.centres for one in histograms.values())])
    counts = np.concatenate([np.zeros(0, np.int64), *(one.counts for one in histograms.values())])
    return pa.Table.from_arrays(
        [*(pa.array(keys[:, i]) for i in range(3)), pa.array(centres), pa.array(counts)], schema=BIN_SCHEMA
    )


class LeafHistograms(Operator):
    """Keeps histograms of at most `bins` bins; a partial is the bins of some values."""

    def __init__(self, bins: int) -> None:
        self._bins = bins

    def initial_state(self) -> pa.Table:
        return BIN_SCHEMA.empty_table()

    def combine(self, rows: pa.Table) -> pa.Table:
        return self.merge(
            rows.select(VALUE_SCHEMA.names).append_column("count", pa.array(np.ones(rows.num_rows, np.int64)))
        )

    def merge(self, partials: pa.Table) -> pa.Table:
        return to_bins(merge_bins(partials, self._bins))

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> Yields:
        state.value = self.merge(pa.concat_tables([state.value, rows.select(BIN_SCHEMA.names).cast(BIN_SCHEMA)]))

    def lookup(self, value: pa.Table, key: tuple[Any, ...]) -> list[Histogram]:
        """Return the histograms of an attribute at a leaf, by class."""
        found = merge_bins(value, self._bins)
        empty = Histogram(np.zeros(0), np.zeros(0, np.int64))
        return [found.get((key[0], key[1], label), empty) for label in range(CLASSES)]


def spdt_stages(bins: int) -> tuple[Stage, Stage]:
    return partial(Stage(LeafHistograms(bins), KEY))


def to_rows(leaves: Integers, values: Floats, labels: Integers) -> pa.Table:
    """Return a row for every attribute of every example."""
    count, attributes = values.shape
    columns = [np.repeat(leaves, attributes), np.tile(np.arange(attributes), count), np.repeat(labels, attributes)]
    return pa.Table.from_arrays([pa.array(column) for column in [*columns, values.ravel()]], schema=VALUE_SCHEMA)


def grow(tree: Tree, leaf: int, histograms: list[list[Histogram]], bins: int) -> bool:
    """Label a leaf, and split it where the Gini gain is highest; return whether it was split."""
    totals = np.array([one.total for one in histograms[0]], np.float64)
    if totals.sum():
        tree.labels[leaf] = int(np.argmax(totals))
    if totals.sum() < MIN_ROWS or tree.depths[leaf] >= MAX_DEPTH:
        return False
    best = (MIN_GAIN, 0, 0.0)
    for attribute, by_class in enumerate(histograms):
        cuts = find_cuts(by_class, bins)
        if not len(cuts):
            continue
        left = np.array([[one.count_below(cut) for one in by_class] for cut in cuts])
        gains = gini_gain(left, totals)
        best = max(best, (float(gains.max()), attribute, float(cuts[np.argmax(gains)])))
    if best[0] > MIN_GAIN:
        tree.split(leaf, best[1], best[2])
    return best[0] > MIN_GAIN


def grow_exactly(values: Floats, labels: Integers) -> Tree:
    """Return the tree of examples at rest: the same rules, with every value a bin of its own."""
    tree = Tree()
    grown = True
    while grown:
        leaves, grown = tree.find_leaves(values), False
        for leaf in [one for one in tree.leaves if tree.depths[one] <= MAX_DEPTH]:
            here = leaves == leaf
            exact = [
                [_count_values(values[here & (labels == label), attribute]) for label in range(CLASSES)]
                for attribute in range(ATTRIBUTES)
            ]
            grown |= grow(tree, leaf, exact, len(labels))
    return tree


def _count_values(values: Floats) -> Histogram:
    return Histogram.merge(values, np.ones(len(values), np.int64), len(values) + 1)


def draw_points(seed: int, batch: int, count: int) -> tuple[Floats, Integers]:
    """Return points of two classes: a corner of the first two attributes, with a twentieth of all labels wrong."""
    chance = np.random.default_rng([seed, batch])
    values = chance.normal(size=(count, ATTRIBUTES))
    is_corner = (values[:, 0] > 0.2) & (values[:, 1] <= 0.5)
    return values, (is_corner ^ (chance.random(count) < 0.05)).astype(np.int64)


def run_spdt(size: Size, bins: int = 30) -> Report:
    """Grow a tree on a stream; compare histogram totals with the examples, and accuracy with a batch tree."""
    tree, sent = Tree(), []
    expected: dict[tuple[int, int], int] = {}
    with start_job(spdt_stages(bins), KEY, VALUE_SCHEMA, size.batches) as feed:
        for batch in range(size.batches):
            values, labels = draw_points(size.seed, batch, size.rows // 10)
            leaves = tree.find_leaves(values)
            for place in zip(leaves.tolist(), labels.tolist(), strict=True):
                expected[place] = expected.get(place, 0) + 1
            sent.append((values, labels))
            feed.send(to_rows(leaves, values, labels))
            for leaf in tree.leaves:
                grow(tree, leaf, [feed.ask((leaf, attribute)) for attribute in range(ATTRIBUTES)], bins)
        totals = {
            (leaf, label): {feed.ask((leaf, attribute))[label].total for attribute in range(ATTRIBUTES)}
            for leaf, label in expected
        }
    wrong = [place for place, count in expected.items() if totals[place] != {count}]
    unseen, truth = draw_points(size.seed, size.batches, 4_000)
    exact = grow_exactly(*(np.concatenate(parts) for parts in zip(*sent, strict=True)))
    accuracy, best = (float((one.predict(unseen) == truth).mean()) for one in (tree, exact))
    figures = {
        "examples": f"{sum(expected.values()):,}",
        "leaves": f"{len(tree.leaves)}",
        "accuracy": f"{accuracy:.3f}",
        "accuracy of a batch tree": f"{best:.3f}",
    }
    verdict = f"all histogram totals are exact, and accuracy is within {MAX_LOSS} of a batch tree"
    difference = f"{len(wrong)} totals differ; accuracy {accuracy:.3f}, of a batch tree {best:.3f}"
    return Report("spdt", figures, verdict, difference if wrong or accuracy < best - MAX_LOSS else None)
