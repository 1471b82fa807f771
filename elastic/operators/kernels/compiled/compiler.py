"""How kernels are compiled, and the arithmetic on slots that they share.

Compiled code is cached on disk beside these files, or in numba's per-user cache folder where that is read-only,
or in NUMBA_CACHE_DIR where it is set.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from elastic.operators.kernels import shared

NAME = f"numba {numba.__version__}"

HALF = np.uint64(shared.ROW_BITS)
ROW = np.uint64((1 << shared.ROW_BITS) - 1)
ONE = np.uint64(1)
FREE = np.uint64(0)
BLOCK = 32  # keys whose memory is fetched together; more would push each other out of the nearest cache

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def compiled(function: _Kernel) -> _Kernel:
    """Machine code that lets other threads run."""
    try:
        return cast("_Kernel", numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:
        # Nowhere to keep a cache (a read-only installation without a home folder): compile in every process.
        return cast("_Kernel", numba.njit(nogil=True)(function))


mixed = compiled(shared.words_mixed)


@compiled
def entry(hashed: np.uint64, row: int) -> np.uint64:
    """What stands in a slot for a key of this hash."""
    return (hashed >> HALF) << HALF | np.uint64(row + 1)
