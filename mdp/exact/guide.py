"""An additive function near the values of all partitions onto n nodes, with proven errors.

It makes the inner minimum a dynamic program, and its errors make the answer exact: see `mdp.kernels.minimum`.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mdp.kernels import guide as kernels
from mdp.kernels.paths import Floats
from mdp.lattice import Lattice

_MOST_SAMPLES = 60_000  # per node count: some fifty a coefficient, and a second or two of counting at most
_RIDGE = 1e-6  # of the mean meeting: constants can move between layers, and some edges are rarely used


@dataclass(frozen=True)
class Guide:
    """For every edge of a lattice its term, and the most by which a sum with it is above the value of a partition.

    Invariant: for every partition P, sum of terms - C[P] is at most the smallest `above` of its edges.
    """

    term: Floats
    above: Floats

    @classmethod
    def exactly(cls, term: Floats) -> "Guide":
        """For values that are such a sum."""
        return cls(term, np.zeros(len(term)))

    @classmethod
    def fitted(cls, lattice: Lattice, values: Floats) -> "Guide":
        """Least squares over partitions evenly spread by rank; errors over all of them. O(partitions * n + edges^3)."""
        stride = -(-lattice.count // _MOST_SAMPLES)
        meetings, sums = kernels.normal_equations(
            values, stride, lattice.low, lattice.before, lattice.edge_at, lattice.begin
        )
        return cls.of_terms(lattice, values, solved(meetings, sums))

    @classmethod
    def of_terms(cls, lattice: Lattice, values: Floats, term: Floats) -> "Guide":
        """With the errors that these terms have."""
        above = kernels.worst_errors(
            values, term, lattice.low, lattice.high, lattice.furthest, lattice.edge_at, lattice.begin
        )
        return cls(term, above)


def sums_of(lattice: Lattice, term: Floats) -> Floats:
    """What the terms give for every partition, in order of ranks."""
    found: Floats = kernels.path_sums(
        term, lattice.count, lattice.low, lattice.high, lattice.furthest, lattice.edge_at, lattice.begin
    )
    return found


def solved(meetings: Floats, sums: Floats) -> Floats:
    """The coefficients of a ridge regression, from its normal equations."""
    size = len(sums)
    meetings[np.diag_indices(size)] += _RIDGE * max(float(np.trace(meetings)) / size, 1.0)
    solution: Floats = cho_solve(cho_factor(meetings, lower=True, overwrite_a=True), sums)
    return solution
