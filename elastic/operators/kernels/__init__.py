"""The inner loops of keyed columns: compiled where numba is installed, plain NumPy where it is not.

Chosen once, when the first of them is used: a compiler takes time and memory that an operator without keyed columns
need not spend on every node. `ELASTIC_KERNEL=numpy` asks for the NumPy version although numba is there. Both number
rows alike, so a state may move between nodes of both kinds.
"""

import logging
import os
from types import ModuleType
from typing import TYPE_CHECKING, Any

from elastic.operators.kernels.shared import Bytes, Slots, Words

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
        take_texts,
    )

__all__ = [
    "NAME",
    "Bytes",
    "Slots",
    "Words",
    "count_rows",
    "find_texts",
    "find_words",
    "index_texts",
    "index_words",
    "insert_texts",
    "insert_words",
    "take_texts",
]

_log = logging.getLogger(__name__)


def _chosen() -> ModuleType:
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
    kernels = _chosen()
    globals().update({kernel: getattr(kernels, kernel) for kernel in __all__ if kernel not in globals()})
    return globals()[name]
