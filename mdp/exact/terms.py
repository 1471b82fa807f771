"""Exact values as the planner takes them: an additive stand-in for each node count, and how far it can be above."""

import numpy as np

from mdp.approximate.fitting import Fit
from mdp.approximate.terms import edge_terms
from mdp.exact.guide import Guide
from mdp.kernels.paths import Floats
from mdp.lattice import Lattice
from migration.planning.values import AdditiveTerms

_MOST_SAMPLES = 20_000
_RIDGE = 0.1  # as if a tenth of a partition had said that a term is 0: what is rarely seen stays near the mean


def additive_terms(lattice: Lattice, values: Floats) -> tuple[AdditiveTerms, float]:
    """Terms on boundaries and intervals near the values, and the most by which their sum is above one of them."""
    ranks = np.arange(0, lattice.count, -(-lattice.count // _MOST_SAMPLES))
    rows = np.array([lattice.partition(int(rank)) for rank in ranks], np.int64)
    fit = Fit(rows, lattice.tasks, "both", _RIDGE)
    terms = fit.as_terms(*fit.solve(values[ranks]))
    return terms, float(Guide.of_terms(lattice, values, edge_terms(terms, lattice)).above.max())
