"""The inner loops of keyed columns: compiled if numba is installed, else in NumPy.

The implementation is selected on first use: numba takes time and memory that operators without keyed columns should not
pay on every node. `ELASTIC_KERNEL=numpy` selects NumPy even with numba installed. Both number rows alike, so state may
move between nodes of both kinds.
"""

import logging
import os
from types import ModuleType
from typing import TYPE_CHECKING, Any

from elastic.operators.kernels.shared import Buckets, Bytes, Words

if TYPE_CHECKING:
    from elastic.operators.kernels.vectorised import (
        NAME,
        count_rows,
        find_texts,
        find_words,
        index_texts,
        index_words,
        insert_texts,
        insert_words,
        link_rows,
        match_rows,
        take_texts,
    )

__all__ = [
    "NAME",
    "Buckets",
    "Bytes",
    "Words",
    "count_rows",
    "find_texts",
    "find_words",
    "index_texts",
    "index_words",
    "insert_texts",
    "insert_words",
    "link_rows",
    "match_rows",
    "take_texts",
]

_log = logging.getLogger(__name__)


def _select() -> ModuleType:
    from elastic.operators.kernels import vectorised

    if os.environ.get("ELASTIC_KERNEL", "") == "numpy":
        return vectorised
    try:
        from elastic.operators.kernels import compiled
    except ImportError as cause:
        _log.info("numba is not available (%s); keyed state uses NumPy. Install spark-elastic[fast] for speed.", cause)
        return vectorised
    return compiled


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    kernels = _select()
    globals().update({kernel: getattr(kernels, kernel) for kernel in __all__ if kernel not in globals()})
    return globals()[name]
