"""An additive function near the values of all partitions onto n nodes, with proven errors.

It turns the inner minimum into a dynamic program, and its errors make the result exact; see `mdp.kernels.minimum`.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mdp.approximate.fitting import Fit
from mdp.approximate.terms import edge_terms
from mdp.kernels import guide as kernels
from mdp.kernels.paths import Floats
from mdp.lattice import Lattice
from migration.planning.values import AdditiveTerms

_MAX_SAMPLES = 60_000  # per node count: some fifty a coefficient, and a second or two of counting at most
_RIDGE = 1e-6  # of the mean meeting: constants can move between layers, and some edges are rarely used
_MAX_TERM_SAMPLES = 20_000
_TERM_RIDGE = 0.1  # as if a tenth of a partition had said that a term is 0: what is rarely seen stays near the mean


@dataclass(frozen=True)
class EdgeGuide:
    """For every edge of a lattice its term, and the most by which a sum with it is above the value of a partition.

    Invariant: for every partition P, sum of terms - C[P] is at most the smallest `above` of its edges.
    """

    term: Floats
    above: Floats

    @classmethod
    def exactly(cls, term: Floats) -> "EdgeGuide":
        """The guide of values that are such a sum themselves."""
        return cls(term, np.zeros(len(term)))

    @classmethod
    def fit(cls, lattice: Lattice, values: Floats) -> "EdgeGuide":
        """Least squares over partitions evenly spread by rank, with errors over all. O(partitions * n + edges^3)."""
        stride = -(-lattice.count // _MAX_SAMPLES)
        meetings, sums = kernels.normal_equations(
            values, stride, lattice.low, lattice.before, lattice.edge_at, lattice.begin
        )
        return cls.of_terms(lattice, values, solve_normal_equations(meetings, sums))

    @classmethod
    def of_terms(cls, lattice: Lattice, values: Floats, term: Floats) -> "EdgeGuide":
        """The guide with these terms, and the errors they have."""
        above = kernels.worst_errors(
            values, term, lattice.low, lattice.high, lattice.furthest, lattice.edge_at, lattice.begin
        )
        return cls(term, above)


def sum_terms(lattice: Lattice, term: Floats) -> Floats:
    """The sum of terms of every partition, in order of ranks."""
    found: Floats = kernels.path_sums(
        term, lattice.count, lattice.low, lattice.high, lattice.furthest, lattice.edge_at, lattice.begin
    )
    return found


def solve_normal_equations(meetings: Floats, sums: Floats) -> Floats:
    """Solve the normal equations of a ridge regression for its coefficients."""
    size = len(sums)
    meetings[np.diag_indices(size)] += _RIDGE * max(float(np.trace(meetings)) / size, 1.0)
    solution: Floats = cho_solve(cho_factor(meetings, lower=True, overwrite_a=True), sums)
    return solution


def fit_additive_terms(lattice: Lattice, values: Floats) -> tuple[AdditiveTerms, float]:
    """Fit terms on boundaries and intervals to values, for the planner; and the most by which a sum exceeds a value."""
    ranks = np.arange(0, lattice.count, -(-lattice.count // _MAX_TERM_SAMPLES))
    rows = np.array([lattice.partition(int(rank)) for rank in ranks], np.int64)
    fit = Fit(rows, lattice.tasks, "both", _TERM_RIDGE)
    terms = fit.as_terms(*fit.solve(values[ranks]))
    return terms, float(EdgeGuide.of_terms(lattice, values, edge_terms(terms, lattice)).above.max())
