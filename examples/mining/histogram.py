"""The mergeable histogram of Ben-Haim and Tom-Tov (JMLR 2010), with bounds of its estimates."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Bounds(NamedTuple):
    """For every threshold, the fewest and the most values that can be at most that."""

    fewest: Integers
    most: Integers


@dataclass(frozen=True, eq=False)
class Histogram:
    """Bins with ascending centres; each has a count, and the lowest and the highest of its values.

    The published histogram has centres and counts, and no bound on its error. The extents of the bins bound it: a bin
    up to a threshold is counted whole, a bin above it not at all, and only bins that the threshold is in are uncertain.

    Invariant: whatever was merged, in whatever order, the counts add up to the number of values, and `bounds_below`
    holds. Centres, and so estimates within the bounds, depend on the order.
    """

    centres: Floats
    counts: Integers
    lows: Floats
    highs: Floats

    def __post_init__(self) -> None:
        if len({len(self.centres), len(self.counts), len(self.lows), len(self.highs)}) > 1:
            raise ValueError("expected a centre, a count, a low and a high for every bin. Use Histogram.of.")
        if (np.diff(self.centres) <= 0).any():
            raise ValueError("centres must ascend. Use Histogram.merge, which sorts bins.")

    @classmethod
    def of(cls, values: Floats, bins: int) -> "Histogram":
        """Return the histogram of values: bins with a count of 1, merged."""
        return cls.merge(values, np.ones(len(values), np.int64), values, values, bins)

    @classmethod
    def merge(cls, centres: Floats, counts: Integers, lows: Floats, highs: Floats, bins: int) -> "Histogram":
        """Merge bins in any order to at most `bins`: while there are more, the two nearest become one at their mean.

        O(n log n + (n - bins) n) for n bins.
        """
        places: Floats
        places, inverse = np.unique(centres, return_inverse=True)
        merged: Integers = np.zeros(len(places), np.int64)
        low, high = places.copy(), places.copy()
        np.add.at(merged, inverse, counts)
        np.minimum.at(low, inverse, lows)
        np.maximum.at(high, inverse, highs)
        while len(places) > bins:
            left = int(np.argmin(np.diff(places)))
            right = left + 1
            # The mean of neighbours may round to one of them, never beyond: centres still ascend.
            places[left] = np.average(places[left : right + 1], weights=merged[left : right + 1])
            merged[left] += merged[right]
            low[left], high[left] = min(low[left], low[right]), max(high[left], high[right])
            places, low, high = (np.delete(column, right) for column in (places, low, high))
            merged = np.delete(merged, right)
        return cls(places, merged, low, high)

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def bounds_below(self, thresholds: Floats) -> Bounds:
        """Return how many values are at most each threshold, at least and at most."""
        whole, touched = (extents[None, :] <= thresholds[:, None] for extents in (self.highs, self.lows))
        return Bounds(whole @ self.counts, touched @ self.counts)

    def count_below(self, thresholds: Floats) -> Floats:
        """Estimate how many values are at most each threshold (the procedure Sum), within the bounds.

        Half of a bin lies on each side of its centre, and between two centres the density is a trapezoid.
        """
        if not len(self.centres):
            return np.zeros(len(thresholds))
        if len(self.centres) == 1:
            return np.where(thresholds >= self.centres[0], float(self.total), 0.0).clip(*self.bounds_below(thresholds))
        left = np.clip(np.searchsorted(self.centres, thresholds, side="right") - 1, 0, len(self.centres) - 2)
        low, high = self.counts[left], self.counts[left + 1]
        start, end = self.centres[left], self.centres[left + 1]
        share = (np.clip(thresholds, start, end) - start) / (end - start)  # 0 or 1 outside of all centres
        at_threshold = low + (high - low) * share
        inside = (np.cumsum(self.counts) - self.counts)[left] + low / 2 + (low + at_threshold) / 2 * share
        outside = np.where(thresholds < self.centres[0], 0.0, float(self.total))
        is_inside = (thresholds >= start) & (thresholds < end)
        return np.asarray(np.where(is_inside, inside, outside).clip(*self.bounds_below(thresholds)))


def find_cuts(histograms: Iterable[Histogram], bins: int) -> Floats:
    """Return candidate thresholds: halfway between the bins of all histograms together."""
    given = list(histograms)
    merged = Histogram.merge(
        np.concatenate([one.centres for one in given]),
        np.concatenate([one.counts for one in given]),
        np.concatenate([one.lows for one in given]),
        np.concatenate([one.highs for one in given]),
        bins,
    )
    return np.asarray((merged.centres[1:] + merged.centres[:-1]) / 2)
