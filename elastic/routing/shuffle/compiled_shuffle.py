"""The loops of this package, compiled by numba; imported only if numba is installed."""

import numpy as np
import numpy.typing as npt

from migration.compiling import compiled

_HALF = np.uint64(32)

Unsigned = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@compiled
def _column(factors: Unsigned, row: int, key_hash: np.uint64, columns: np.uint64) -> np.int64:
    return np.int64((((factors[row, 0] * key_hash + factors[row, 1]) >> _HALF) * columns) >> _HALF)


@compiled
def add_groups(
    factors: Unsigned, hashes: Unsigned, rows: Integers, seconds: Floats, frequencies: Integers, totals: Floats
) -> None:
    """Add groups of rows to both matrices of a sketch."""
    columns = np.uint64(frequencies.shape[1])
    for group in range(len(hashes)):
        for row in range(len(factors)):
            column = _column(factors, row, hashes[group], columns)
            frequencies[row, column] += rows[group]
            totals[row, column] += seconds[group]


@compiled
def estimate_rows(factors: Unsigned, hashes: Unsigned, frequencies: Integers, seconds: Floats, found: Floats) -> None:
    """Fill `found` with the seconds of the cell that has the fewest rows."""
    columns = np.uint64(frequencies.shape[1])
    for place in range(len(hashes)):
        column = _column(factors, 0, hashes[place], columns)
        fewest, estimate = frequencies[0, column], seconds[0, column]
        for row in range(1, len(factors)):
            column = _column(factors, row, hashes[place], columns)
            if frequencies[row, column] < fewest:
                fewest, estimate = frequencies[row, column], seconds[row, column]
        found[place] = estimate


@compiled
def assign_rows(costs: Floats, weights: Floats, first: int, loads: Floats, nodes: Integers) -> None:
    """Fill `nodes` with the node that would finish each row first, and add the row to its load."""
    count = len(loads)
    for row in range(len(costs)):
        node, least = first, loads[first] + costs[row] * weights[first]
        for step in range(1, count):
            other = first + step if first + step < count else first + step - count
            end = loads[other] + costs[row] * weights[other]
            if end < least:
                node, least = other, end
        loads[node] = least
        nodes[row] = node
