"""The best split of a leaf, by histograms, and how much better another one can be."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from examples.mining.histogram import Floats, Histogram, Integers, find_cuts

# Moving one example of n to the other side changes the Gini gain by at most 2/n: n times the impurity of a side is
# s - sum of c^2 / s for the counts c of its classes and their sum s, and its derivative by a count is 1 - 2 p + sum of
# p^2 for the shares p, which is between 0 and 2.
_GAIN_PER_EXAMPLE = 2.0

ByClass = Sequence[Histogram]


class SplitChoice(NamedTuple):
    """The candidate with the highest estimated gain.

    Invariant: the exact gain of every candidate is at most `regret` higher than the exact gain of this one.
    """

    attribute: int
    threshold: float
    gain: float
    regret: float
    labels: tuple[int, int]  # the most frequent class on the left, and on the right


def gini_gain(left: Floats, total: Floats) -> Floats:
    """Return by how much splits reduce the Gini impurity; `left` has a row of counts by class for every split."""
    rows = total.sum()

    def impurity(counts: Floats) -> Floats:
        sums = np.maximum(counts.sum(axis=-1), 1e-12)  # a side without examples is pure
        return np.asarray((sums - (counts**2).sum(axis=-1) / sums) / rows)

    return np.asarray(impurity(total) - impurity(left) - impurity(total - left))


def choose_split(attributes: Sequence[ByClass], bins: int) -> SplitChoice | None:
    """Return the best candidate by histograms for each attribute and class; None without candidates.

    With the estimated gain g(t) of a candidate t, and the uncertain examples u(t) of n, the exact gain is within
    g(t) -+ 2 u(t) / n. So no candidate exceeds the choice c by more than max over t of (g(t) + 2 u(t) / n) less
    (g(c) - 2 u(c) / n).
    """
    totals = np.array([one.total for one in attributes[0]], np.float64)
    best: SplitChoice | None = None
    highest = 0.0  # that the exact gain of a candidate can be
    for attribute, by_class in enumerate(attributes):
        cuts = find_cuts(by_class, bins)
        if not len(cuts):
            continue
        left = np.stack([one.count_below(cuts) for one in by_class], axis=1)
        bounds = [one.bounds_below(cuts) for one in by_class]
        slack = _GAIN_PER_EXAMPLE * sum(one.most - one.fewest for one in bounds) / totals.sum()
        gains = gini_gain(left, totals)
        highest = max(highest, float((gains + slack).max()))
        place = int(np.argmax(gains))
        if best is None or gains[place] > best.gain:
            labels = int(np.argmax(left[place])), int(np.argmax(totals - left[place]))
            best = SplitChoice(attribute, float(cuts[place]), float(gains[place]), float(slack[place]), labels)
    if best is None:
        return None
    return best._replace(regret=highest - best.gain + best.regret)


def find_difference(attributes: Sequence[ByClass], values: Floats, labels: Integers, bins: int) -> str | None:
    """Return how histograms and the choice by them contradict the examples they are of; None if they do not."""
    classes = range(len(attributes[0]))
    total = np.bincount(labels, minlength=len(classes)).astype(np.float64)
    best = chosen = 0.0
    choice = choose_split(attributes, bins)
    for attribute, by_class in enumerate(attributes):
        cuts = find_cuts(by_class, bins)
        is_left = values[:, attribute, None] <= cuts[None, :]
        exact = np.stack([is_left[labels == label].sum(axis=0) for label in classes], axis=1)
        for label, one in enumerate(by_class):
            where = f"attribute {attribute}, class {label}"
            if one.total != total[label]:
                return f"{where}: {one.total} values instead of {total[label]:.0f}"
            bounds = one.bounds_below(cuts)
            if (exact[:, label] < bounds.fewest).any() or (exact[:, label] > bounds.most).any():
                return f"{where}: values up to a threshold are outside the bounds of the histogram"
        if choice is not None and len(cuts):
            best = max(best, float(gini_gain(exact.astype(np.float64), total).max()))
            if choice.attribute == attribute:
                chosen = float(gini_gain(exact[cuts == choice.threshold].astype(np.float64), total).max())
    if choice is not None and best > chosen + choice.regret + 1e-9:
        return f"a split has a gain of {chosen:.4f}, the best one {best:.4f}: more than {choice.regret:.4f} higher"
    return None
