"""Compile loops with numba where it is installed; elsewhere they run as plain, slow Python.

For a loop that also has a fast NumPy version, import `migration.compiling` and fall back to NumPy on ImportError.
"""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

_log = logging.getLogger(__name__)
_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def _plain(function: _Kernel) -> _Kernel:
    return function


try:
    from migration.compiling import compiled
except ImportError as cause:
    compiled = _plain
    _log.info("numba is not available (%s); loops run in Python. Install spark-elastic[fast] for speed.", cause)

__all__ = ["compiled"]
