"""How loops are compiled, here and in the packages above; imported only where numba is installed.

Compiled code is cached on disk beside its source, or in numba's per-user cache folder where that is read-only, or in
NUMBA_CACHE_DIR where it is set.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def compiled(function: _Kernel) -> _Kernel:
    """Machine code that lets other threads run."""
    try:
        return cast("_Kernel", numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:
        # Nowhere to keep a cache (a read-only installation without a home folder): compile in every process.
        return cast("_Kernel", numba.njit(nogil=True)(function))
