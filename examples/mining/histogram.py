"""The mergeable histogram of Ben-Haim and Tom-Tov (JMLR 2010): at most B bins, each a centre and a count."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Histogram:
    """Bins with ascending centres. Invariant: the counts add up to the values, exactly, whatever was merged."""

    centres: Floats
    counts: Integers

    def __post_init__(self) -> None:
        if len(self.centres) != len(self.counts) or (np.diff(self.centres) <= 0).any():
            raise ValueError("centres must ascend, with a count each. Use Histogram.merge to sort bins.")

    @classmethod
    def merge(cls, centres: Floats, counts: Integers, bins: int) -> "Histogram":
        """Return bins in any order as at most `bins`: the two nearest become one at their mean, while there are more.

        Values are bins with a count of 1. O(n log n + (n - bins) n) for n bins.
        """
        places, inverse = np.unique(centres, return_inverse=True)
        merged = np.zeros(len(places), np.int64)
        np.add.at(merged, inverse, counts)
        while len(places) > bins:
            near = int(np.argmin(np.diff(places)))
            pair = slice(near, near + 2)
            # The mean of neighbours may round to one of them, never beyond: centres still ascend.
            places[near] = np.average(places[pair], weights=merged[pair])
            merged[near] = merged[pair].sum()
            places, merged = np.delete(places, near + 1), np.delete(merged, near + 1)
        return cls(places, merged)

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def count_below(self, value: float) -> float:
        """Estimate how many values are at most `value` (the procedure Sum).

        Half of a bin lies on each side of its centre, and between two centres the density is a trapezoid.
        """
        if not len(self.centres) or value < self.centres[0]:
            return 0.0
        if value >= self.centres[-1]:
            return float(self.total)
        left = int(np.searchsorted(self.centres, value, side="right")) - 1
        low, high = self.counts[left], self.counts[left + 1]
        share = (value - self.centres[left]) / (self.centres[left + 1] - self.centres[left])
        at_value = low + (high - low) * share
        return float(self.counts[:left].sum() + low / 2 + (low + at_value) / 2 * share)


def find_cuts(histograms: Iterable[Histogram], bins: int) -> Floats:
    """Return candidate thresholds: halfway between the bins of all histograms together."""
    given = list(histograms)
    centres = [histogram.centres for histogram in given]
    counts = [histogram.counts for histogram in given]
    places = Histogram.merge(np.concatenate(centres), np.concatenate(counts), bins).centres
    return np.asarray((places[1:] + places[:-1]) / 2)
