"""Smooth the rows of a matrix that have few observations, or none."""

import numpy as np

from mdp.learning.logs import Floats, Ints

PRIOR = "steps of near rows, each row further away half as much, and one observation of near counts"


def prior(counts: Ints, *, diagonal: bool) -> Floats:
    """Derive each row from its neighbours: Q[i, i + d] is proportional to

        near[i, i + d] + sum over rows r of 2^-|i - r| * counts[r, r + d]

    with near[i, j] proportional to 2^-|i - j| and of one observation in all. Steps are borrowed, not destinations: a
    log that climbs by ones from 8 to 14 says of 15 that 16 is next, not that 14 is. Steps out of the range are left
    out, and without `diagonal` so are steps of 0. Every other entry is above 0. O(size^3).
    """
    size = len(counts)
    place = np.arange(size)
    closeness = 0.5 ** np.abs(place[:, None] - place)
    step = place - place[:, None] + size - 1  # [r, j]: the number of step j - r
    steps = np.zeros((size, 2 * size - 1))
    steps[place[:, None], step] = counts
    borrowed = (closeness @ steps)[place[:, None], step]
    allowed = np.ones((size, size)) if diagonal else 1 - np.eye(size)
    near = closeness * allowed
    return _shares(near / near.sum(axis=1, keepdims=True) + borrowed * allowed)


def smooth(counts: Ints, prior_rows: Floats, strength: float) -> Floats:
    """(counts + strength * prior_rows) / (seen + strength), row by row: a Dirichlet prior of that many observations.

    Rows without observations are the prior. With strength 0 the others are frequencies, as in paper 003, section 4.2.
    """
    seen = counts.sum(axis=1, keepdims=True)
    weight = np.where(seen == 0, 1.0, strength)
    return _shares((counts + weight * prior_rows) / (seen + weight))


def _shares(rows: Floats) -> Floats:
    shares: Floats = rows / rows.sum(axis=1, keepdims=True)
    return shares
