"""Compile loops with numba, here and in the packages above; imported only where numba is installed.

Compiling all loops takes 5 to 60 s, once per user and installation. A process logs a warning before the first loop that
it has to compile, so that the delay is explained.

Compiled code is cached on disk beside its source, or in numba's per-user cache folder where that is read-only, or in
NUMBA_CACHE_DIR where it is set.
"""

import logging
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import event

_log = logging.getLogger(__name__)

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


_functions: set[Callable[..., Any]] = set()  # functions of this package and the packages above


class _Announcement(event.Listener):
    """Logs the first compilation in this process; loading a loop from the cache is no compilation."""

    def __init__(self) -> None:
        self._is_due = True

    def on_start(self, event: event.Event) -> None:
        if self._is_due and event.data["dispatcher"].py_func in _functions:
            self._is_due = False
            # A warning, because a program that does not configure logging shows nothing below.
            _log.warning("compiling loops for this installation, once; this takes up to a minute")

    def on_end(self, event: event.Event) -> None: ...


event.register("numba:compile", _Announcement())  # type: ignore[no-untyped-call]


def compiled(function: _Kernel) -> _Kernel:
    """Compile a function to machine code that releases the GIL."""
    _functions.add(function)
    try:
        return cast("_Kernel", numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:
        # There is no place for a cache (a read-only installation without a home folder): compile in every process.
        return cast("_Kernel", numba.njit(nogil=True)(function))
