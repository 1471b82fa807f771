"""Fit values of partitions by terms on their boundaries and intervals."""

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array

from mdp.kernels.paths import Floats, Ints
from migration.planning.values import AdditiveTerms

TERMS = ("boundary", "interval", "both")


class Fit:
    """Ridge regression over some partitions onto one node count, factorised once: v0 + sum of terms.

    v0 is the mean of the values; terms that occur in no partition are 0, as good as the mean. The normal equations are
    solved over terms or over partitions, whichever are fewer.
    """

    def __init__(self, rows: Ints, tasks: int, terms: str, ridge: float) -> None:
        self._tasks = tasks
        self._terms = terms
        self._codes = np.unique(_encode(rows, tasks, terms))
        self.design = self.encode(rows)
        self._over_terms = self.design.shape[1] <= self.design.shape[0]
        design = self.design.T if self._over_terms else self.design
        gram = (design @ design.T).toarray() + ridge * np.eye(design.shape[0])
        self._factor = cho_factor(gram, lower=True, overwrite_a=True, check_finite=False) if gram.size else None

    def encode(self, rows: Ints) -> csr_array:
        """The design matrix: a row per partition, a column per fitted term, 1 where the partition has the term."""
        codes = _encode(rows, self._tasks, self._terms)
        columns = np.searchsorted(self._codes, codes)
        columns[columns == len(self._codes)] = 0
        known = self._codes[columns] == codes
        starts = np.concatenate(([0], np.cumsum(known.sum(axis=1))))
        return csr_array((np.ones(starts[-1]), columns[known], starts), shape=(len(rows), len(self._codes)))

    def solve(self, values: Floats) -> tuple[float, Floats]:
        """v0 and the terms, in the order of the columns of `encode`."""
        constant = float(values.mean())
        if self._factor is None:  # one node has no inner boundary
            return constant, np.zeros(0)
        if self._over_terms:
            weights = cho_solve(self._factor, self.design.T @ (values - constant), check_finite=False)
        else:
            weights = self.design.T @ cho_solve(self._factor, values - constant, check_finite=False)
        return constant, weights

    def as_terms(self, constant: float, weights: Floats) -> AdditiveTerms:
        size = self._tasks + 1
        boundary, interval = np.zeros(size), np.zeros((size, size))
        of_boundary = self._codes < size
        boundary[self._codes[of_boundary]] = weights[of_boundary]
        interval.flat[self._codes[~of_boundary] - size] = weights[~of_boundary]
        return AdditiveTerms(boundary, None if self._terms == "boundary" else interval, constant)


def _encode(rows: Ints, tasks: int, terms: str) -> Ints:
    """Number the terms of every row: x for a boundary, m + 1 + a * (m + 1) + x for an interval [a, x)."""
    size = tasks + 1
    boundaries, intervals = rows[:, 1:-1], size + rows[:, :-1] * size + rows[:, 1:]
    if terms == "boundary":
        return boundaries
    return intervals if terms == "interval" else np.concatenate((boundaries, intervals), axis=1)
