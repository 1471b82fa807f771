"""The arithmetic on slots that compiled kernels share."""

import numba
import numpy as np

from elastic.operators.kernels import shared
from migration.compiling import compiled

NAME = f"numba {numba.__version__}"

HALF = np.uint64(shared.ROW_BITS)
ROW = np.uint64((1 << shared.ROW_BITS) - 1)
ONE = np.uint64(1)
FREE = np.uint64(0)
BLOCK = 32  # keys whose memory is fetched together; more would push each other out of the nearest cache

mixed = compiled(shared.words_mixed)


@compiled
def entry(hashed: np.uint64, row: int) -> np.uint64:
    """What stands in a slot for a key of this hash."""
    return (hashed >> HALF) << HALF | np.uint64(row + 1)
