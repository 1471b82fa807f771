"""Whether there is anything to schedule: rows that all cost the same are best given to the nodes in turn.

A scheduler that follows the noise of measurements is worse than round-robin, whose balance is exact.
"""

from collections.abc import Sequence

import numpy as np

from elastic.routing.shuffle.sketch import ExecutionSketch, Floats

# Of the mean cost, as a standard deviation. Of n rows whose costs have this deviation, round-robin leaves a node about
# 0.1 / sqrt(n) above the mean: 3 % for ten rows, 0.1 % for ten thousand. A scheduler that has a row too many somewhere,
# since rows cannot be divided and estimates are off, is not better.
LEAST_DIFFERENCE = 0.1
_SIGNIFICANCE = 0.001  # the probability that noise alone makes such a difference


def has_uniform_costs(sketches: Sequence[ExecutionSketch], slowness: Floats) -> bool:
    """Return whether nodes have the same speed and cost keys the same cost, as far as their sketches can tell.

    Nodes differ if the slowness of one is more than `LEAST_DIFFERENCE` from 1, with what `measure_slowness` allows for
    few rows. For keys it is an analysis of variance with random effects, weighted by rows: nodes measure the same cell
    independently, so they say how large the noise is.

    - MSW, within cells: sum F_nc (m_nc - M_c)^2 / (measurements - cells), m_nc the mean of cell c on node n over the
      slowness of the node, M_c the mean of the cell. Between cells: MSB = sum F_c (M_c - M)^2 / (cells - 1).
    - Costs differ by the deviation sqrt((MSB - MSW) / n0), n0 = (F - sum F_c^2 / F) / (cells - 1), and significantly if
      noise alone makes MSB / MSW as large with a probability of 0.1 % at most (F-test).

    Each row of a sketch is tested: a key that shares its cell with a frequent one in one row does not in all. The
    answer may change with every heartbeat: a batch is placed by it, and nothing moves. O(nodes cells).
    """
    from scipy.special import fdtrc  # takes 0.1 s to load, and only jobs with shuffled stages need it

    if np.abs(slowness - 1).max() > LEAST_DIFFERENCE:
        return False
    frequencies = np.stack([sketch.frequencies for sketch in sketches]).astype(np.float64)
    seconds = np.stack([sketch.seconds for sketch in sketches]) / slowness[:, None, None]
    of_cell, measurements, cells = frequencies.sum(axis=0), (frequencies > 0).sum(axis=(0, 2)), _count(frequencies)
    total = of_cell.sum(axis=1)
    means = _divide(seconds.sum(axis=0), of_cell)
    mean = seconds.sum(axis=(0, 2)) / total
    within = (frequencies * (_divide(seconds, frequencies) - means) ** 2).sum(axis=(0, 2))
    between = (of_cell * (means - mean[:, None]) ** 2).sum(axis=1)
    between_free, within_free = np.maximum(cells - 1, 1), measurements - cells
    msb, msw = between / between_free, _divide(within, within_free)
    rows_of_cell = (total - (of_cell**2).sum(axis=1) / total) / between_free
    deviation = np.sqrt(_divide(np.maximum(msb - msw, 0.0), rows_of_cell))
    # Without noise every difference is significant; so it is where no cell was measured twice: the size decides then.
    chance = np.where(msw > 0, fdtrc(between_free, np.maximum(within_free, 1), _divide(msb, msw)), 0.0)
    return not bool(((chance < _SIGNIFICANCE) & (deviation > LEAST_DIFFERENCE * mean)).any())


def _count(frequencies: Floats) -> Floats:
    """Return the number of cells with rows, by row of the sketches."""
    counts: Floats = (frequencies > 0).any(axis=0).sum(axis=1).astype(np.float64)
    return counts


def _divide(dividend: Floats, divisor: Floats) -> Floats:
    """Return the quotients, 0 where the divisor is not positive."""
    quotients: Floats = np.zeros(dividend.shape)
    np.divide(dividend, divisor, out=quotients, where=divisor > 0)
    return quotients
