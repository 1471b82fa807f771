"""Decision trees on split keys: histograms keep their bounds, and splits are nearly the best of their candidates."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.operators.testing import Crash, OperatorTester, Scale
from examples.mining.histogram import Floats, Histogram, Integers, find_cuts
from examples.mining.spdt import (
    ATTRIBUTES,
    CLASSES,
    KEY,
    MAX_DEPTH,
    MIN_ROWS,
    LeafHistograms,
    draw_points,
    grow,
    grow_exactly,
    grow_in_batches,
    spdt_stages,
    to_rows,
)
from examples.mining.split_choice import ByClass, choose_split, find_difference, gini_gain
from examples.mining.tree import Tree

VALUES = st.lists(st.floats(-1e3, 1e3), max_size=40)


def join(*parts: Histogram, bins: int) -> Histogram:
    columns = zip(*((one.centres, one.counts, one.lows, one.highs) for one in parts), strict=True)
    centres, counts, lows, highs = (np.concatenate(column) for column in columns)
    return Histogram.merge(centres, counts, lows, highs, bins)


def histograms_of(values: Floats, labels: Integers, bins: int) -> list[ByClass]:
    return [
        [Histogram.of(values[labels == label, attribute], bins) for label in range(CLASSES)]
        for attribute in range(ATTRIBUTES)
    ]


@given(VALUES, VALUES, st.integers(1, 8), st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=5))
def test_merged_histograms_keep_their_bounds(
    first: list[float], second: list[float], bins: int, at: list[float]
) -> None:
    merged = join(*(Histogram.of(np.array(part, np.float64), bins) for part in (first, second)), bins=bins)
    values, thresholds = np.array(first + second), np.array(sorted(at + first))
    assert len(merged.counts) <= bins
    assert merged.total == len(values)
    exact = np.array([(values <= threshold).sum() for threshold in thresholds])
    bounds, estimates = merged.bounds_below(thresholds), merged.count_below(thresholds)
    assert (bounds.fewest <= exact).all()
    assert (exact <= bounds.most).all()
    assert (bounds.fewest <= estimates).all()
    assert (estimates <= bounds.most).all()
    assert all(low <= high for low, high in pairwise(estimates)), (estimates.tolist(), merged)


@given(VALUES, st.integers(40, 50))
def test_a_histogram_with_a_bin_for_every_value_is_exact(values: list[float], bins: int) -> None:
    thresholds = np.array([*values, 0.5])
    bounds = Histogram.of(np.array(values, np.float64), bins).bounds_below(thresholds)
    exact = [sum(value <= threshold for value in values) for threshold in thresholds]
    assert bounds.fewest.tolist() == bounds.most.tolist() == exact


def test_the_nearest_bins_are_merged_at_their_weighted_mean() -> None:
    merged = Histogram.of(np.array([9.0, 1.0, 2.0, 2.0]), 2)
    assert merged.counts.tolist() == [3, 1]
    assert merged.centres.tolist() == pytest.approx([5 / 3, 9.0])
    assert (merged.lows.tolist(), merged.highs.tolist()) == ([1.0, 9.0], [2.0, 9.0])


def test_estimates_follow_a_trapezoid_between_centres() -> None:
    pair = Histogram(np.array([0.0, 2.0]), np.array([4, 8]), np.array([-2.0, 0.0]), np.array([2.0, 3.0]))
    assert pair.count_below(np.array([-1.0, 0.0, 1.0, 2.0])).tolist() == [0.0, 2.0, 4.5, 12.0]
    assert pair.bounds_below(np.array([-3.0, -1.0, 0.0, 2.0, 3.0])).fewest.tolist() == [0, 0, 0, 4, 12]
    assert pair.bounds_below(np.array([-3.0, -1.0, 0.0, 2.0, 3.0])).most.tolist() == [0, 4, 12, 12, 12]
    single = Histogram(np.array([1.0]), np.array([4]), np.array([0.0]), np.array([2.0]))
    assert single.count_below(np.array([0.5, 1.0])).tolist() == [0.0, 4.0]


def test_candidates_are_halfway_between_the_bins_of_all_classes() -> None:
    parts = [Histogram.of(np.array(values), 4) for values in ([0.0, 4.0], [1.0, 10.0])]
    assert find_cuts(parts, 4).tolist() == [0.5, 2.5, 7.0]
    assert find_cuts(parts, 3).tolist() == [2.25, 7.0]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([2.0, 1.0], [1, 1], [2.0, 1.0], [2.0, 1.0]), "must ascend"),
        (([1.0, 2.0], [1, 1], [1.0], [1.0, 2.0]), "a low and a high for every bin"),
    ],
)
def test_bins_that_are_no_histogram_are_refused(columns: tuple[list[float], ...], message: str) -> None:
    centres, counts, lows, highs = columns
    with pytest.raises(ValueError, match=message):
        Histogram(np.array(centres), np.array(counts), np.array(lows), np.array(highs))


def test_the_gini_gain_of_a_perfect_split_is_all_impurity() -> None:
    total = np.array([6.0, 2.0])
    gains = gini_gain(np.array([[6.0, 0.0], [3.0, 1.0], [0.0, 0.0], [6.0, 1.0]]), total)
    assert gains.tolist() == pytest.approx([0.375, 0.0, 0.0, 0.375 - 7 / 8 * 12 / 49])


@given(st.tuples(*[st.integers(0, 30)] * 4), st.integers(0, 1), st.integers(1, 5))
def test_an_example_changes_the_gini_gain_by_at_most_two_of_all(
    counts: tuple[int, ...], label: int, moved: int
) -> None:
    left, right = np.array([counts[:2]], np.float64), np.array(counts[2:], np.float64)
    right[label] += moved
    total, more = left[0] + right, left.copy()
    more[0, label] += moved
    assert abs(gini_gain(more, total) - gini_gain(left, total))[0] <= 2 * moved / total.sum() + 1e-12


@pytest.mark.parametrize("bins", [4, 10, 40])
@pytest.mark.parametrize("seed", range(3))
def test_no_candidate_is_better_than_the_chosen_split_by_more_than_its_regret(seed: int, bins: int) -> None:
    values, labels = draw_points(seed, 0, 300)
    parts = [histograms_of(values[part], labels[part], bins) for part in (slice(100), slice(100, 300))]
    merged: list[ByClass] = [
        [join(*pair, bins=bins) for pair in zip(*by_class, strict=True)] for by_class in zip(*parts, strict=True)
    ]
    assert find_difference(merged, values, labels, bins) is None
    choice = choose_split(merged, bins)
    assert choice is not None
    totals = np.bincount(labels).astype(np.float64)

    def exact_gains(attribute: int, cuts: Floats) -> Floats:
        is_left = values[:, attribute, None] <= cuts
        return gini_gain(np.stack([is_left[labels == label].sum(axis=0) for label in (0, 1)], axis=1) * 1.0, totals)

    chosen = exact_gains(choice.attribute, np.array([choice.threshold]))[0]
    best = max(exact_gains(attribute, find_cuts(merged[attribute], bins)).max() for attribute in range(ATTRIBUTES))
    assert best <= chosen + choice.regret
    assert (choice.attribute, choice.regret > 0) == (0, True)


def test_regret_is_the_best_that_another_candidate_can_be_less_the_worst_of_the_chosen_one() -> None:
    values, labels, bins = *draw_points(0, 0, 120), 6
    by_class = histograms_of(values, labels, bins)[0]
    cuts = find_cuts(by_class, bins)
    bounds = [one.bounds_below(cuts) for one in by_class]
    slack = 2 * (bounds[0].most - bounds[0].fewest + bounds[1].most - bounds[1].fewest) / 120
    gains = gini_gain(
        np.stack([one.count_below(cuts) for one in by_class], axis=1), np.bincount(labels).astype(np.float64)
    )
    choice, place = choose_split([by_class], bins), int(np.argmax(gains))
    assert choice is not None
    assert (choice.threshold, choice.gain) == (cuts[place], gains[place])
    assert slack[place] > 0
    assert choice.regret == pytest.approx((gains + slack).max() - (gains[place] - slack[place]))


def test_a_choice_by_exact_histograms_has_no_regret() -> None:
    values, labels = draw_points(0, 0, 60)
    choice = choose_split(histograms_of(values, labels, 100), 100)
    assert choice is not None
    assert choice.regret == 0.0
    assert choose_split([[Histogram.of(np.zeros(0), 4)] * CLASSES] * ATTRIBUTES, 4) is None


def test_histograms_of_other_examples_are_noticed() -> None:
    values, labels = draw_points(0, 0, 60)
    given = histograms_of(values, labels, 8)
    assert "values instead of" in str(find_difference(given, values[1:], labels[1:], 8))
    assert "outside the bounds" in str(find_difference(given, values + 1, labels, 8))
    assert "outside the bounds" in str(find_difference(given, values - 1, labels, 8))


def test_a_split_that_is_not_nearly_the_best_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    values, labels = draw_points(0, 0, 60)
    given = histograms_of(values, labels, 100)
    poor = choose_split([*given[:0], *[given[2]] * ATTRIBUTES], 100)
    assert poor is not None
    monkeypatch.setattr("examples.mining.split_choice.choose_split", lambda *_: poor._replace(attribute=2))
    assert "the best one" in str(find_difference(given, values, labels, 100))


def test_histograms_are_within_bounds_through_crashes_and_scaling() -> None:
    chance, bins = np.random.default_rng(0), 5
    leaves, labels, values = chance.integers(0, 2, 90), chance.integers(0, 2, 90), chance.normal(size=(90, 4))
    first, second, third = (
        to_rows(leaves[part], values[part], labels[part]) for part in (slice(30), slice(30, 60), slice(60, 90))
    )
    tester = OperatorTester(spdt_stages(bins), key=KEY, nodes=2, tasks=8)
    tester.run([first, Scale(3), second, Crash("node-1"), Scale(2), third])
    for leaf in (0, 1):
        found = [tester.state((leaf, attribute)) for attribute in range(ATTRIBUTES)]
        assert find_difference(found, values[leaves == leaf], labels[leaves == leaf], bins) is None
        assert max(len(one.counts) for by_class in found for one in by_class) == bins


def test_merged_partials_are_bins_of_their_leaf_attribute_and_class() -> None:
    operator = LeafHistograms(2)
    rows = to_rows(np.array([0, 0, 0, 7]), np.arange(16.0).reshape(4, 4), np.array([0, 0, 0, 1]))
    partials = operator.combine(rows)
    merged = operator.merge(pa.concat_tables([partials, partials]))
    assert merged.schema == partials.schema
    bins = [row for row in merged.to_pylist() if row["attribute"] == 1]
    shared = {"leaf": 0, "attribute": 1, "label": 0}
    assert bins == [
        {**shared, "centre": 3.0, "count": 4, "low": 1.0, "high": 5.0},
        {**shared, "centre": 9.0, "count": 2, "low": 9.0, "high": 9.0},
        {"leaf": 7, "attribute": 1, "label": 1, "centre": 13.0, "count": 2, "low": 13.0, "high": 13.0},
    ]


def test_new_leaves_predict_the_class_of_their_side_before_they_have_examples() -> None:
    values = np.random.default_rng(0).normal(size=(MIN_ROWS, ATTRIBUTES))
    labels = (values[:, 2] > 0.3).astype(np.int64)
    tree = Tree()
    choice = grow(tree, 0, histograms_of(values, labels, 40), 40)
    assert choice is not None
    assert choice.attribute == 2
    assert choice.threshold == pytest.approx(0.3, abs=0.1)
    assert (tree.labels, tree.leaves, tree.depths) == ({0: 0, 1: 0, 2: 1}, [1, 2], {0: 0, 1: 1, 2: 1})
    assert grow(tree, 1, histograms_of(values[:0], labels[:0], 40), 40) is None
    assert tree.labels[1] == 0


def test_a_leaf_with_few_examples_or_of_one_class_is_not_split() -> None:
    values = np.random.default_rng(0).normal(size=(MIN_ROWS, ATTRIBUTES))
    labels = (values[:, 2] > -0.3).astype(np.int64)
    tree = Tree()
    assert grow(tree, 0, histograms_of(values[1:], labels[1:], 20), 20) is None
    assert grow(tree, 0, histograms_of(values, np.ones_like(labels), 20), 20) is None
    assert tree.labels == {0: 1}


def test_a_leaf_is_split_for_a_small_gain_unless_it_is_deep() -> None:
    chance = np.random.default_rng(0)
    values = chance.normal(size=(MIN_ROWS, ATTRIBUTES))
    labels = ((values[:, 1] > 0) ^ (chance.random(MIN_ROWS) < 0.3)).astype(np.int64)
    given = histograms_of(values, labels, 20)
    choice = grow(Tree(depths={0: MAX_DEPTH - 1}), 0, given, 20)
    assert choice is not None
    assert 0.05 < choice.gain < 0.15
    assert grow(Tree(depths={0: MAX_DEPTH}), 0, given, 20) is None


def test_values_up_to_the_threshold_go_left() -> None:
    tree = Tree()
    tree.split(0, 1, 0.5, (1, 0))
    values = np.array([[9.0, 0.4], [9.0, 0.5], [-9.0, 0.6]])
    assert tree.find_leaves(values).tolist() == [1, 1, 2]
    assert tree.predict(values).tolist() == [1, 1, 0]


def test_a_batch_tree_finds_the_corner_of_a_class() -> None:
    values = np.random.default_rng(0).normal(size=(2_000, ATTRIBUTES))
    labels = ((values[:, 0] > 0) & (values[:, 1] <= 0.5)).astype(np.int64)
    tree = grow_exactly(values, labels)
    assert (tree.predict(values) == labels).mean() > 0.99
    assert {test.attribute for test in tree.splits.values()} == {0, 1}
    assert max(tree.depths.values()) <= 3


def test_a_leaf_of_a_stream_has_only_the_examples_since_its_split() -> None:
    values, labels = draw_points(0, 0, 2 * MIN_ROWS)
    once = grow_in_batches(values, labels, 1)
    assert list(once.splits) == [0]
    assert once.splits[0] == grow_exactly(values, labels).splits[0]
    twice = grow_in_batches(values, labels, 2)
    assert list(twice.splits) == [0]  # leaves have half of the second batch each, too few for a split
    assert twice.splits[0] == grow_in_batches(values[:MIN_ROWS], labels[:MIN_ROWS], 1).splits[0]


def test_a_tree_by_histograms_is_nearly_as_accurate_as_one_by_exact_values() -> None:
    values, labels = draw_points(0, 0, 2_100)
    unseen, truth = draw_points(0, 1, 2_000)
    tree, leaves, bins = Tree(), np.zeros(0, np.int64), 30
    for batch in np.split(values, 3):
        leaves = np.append(leaves, tree.find_leaves(batch))
        for leaf in tree.leaves:
            here = np.flatnonzero(leaves == leaf)
            grow(tree, leaf, histograms_of(values[here], labels[here], bins), bins)
    exact = grow_in_batches(values, labels, 3)
    assert len(tree.leaves) == len(exact.leaves) > 2
    accuracies = [(one.predict(unseen) == truth).mean() for one in (tree, exact)]
    assert accuracies[0] > 0.9
    assert accuracies[0] == pytest.approx(accuracies[1], abs=0.03)
