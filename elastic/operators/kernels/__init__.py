"""The inner loops of keyed columns: compiled where numba is installed, plain NumPy where it is not.

Chosen once, at import. `ELASTIC_KERNEL=numpy` asks for the NumPy version although numba is there. Both number rows
alike, so a state may move between nodes of both kinds.
"""

import logging
import os

from elastic.operators.kernels.shared import Bytes, Slots, Words

_log = logging.getLogger(__name__)

if os.environ.get("ELASTIC_KERNEL", "") != "numpy":
    try:
        from elastic.operators.kernels import compiled as _chosen
    except ImportError as cause:
        from elastic.operators.kernels import vectorised as _chosen  # type: ignore[no-redef]

        _log.info("numba is not available (%s); keyed state uses NumPy. Install spark-elastic[fast] for speed.", cause)
else:
    from elastic.operators.kernels import vectorised as _chosen  # type: ignore[no-redef]

NAME = _chosen.NAME
count_rows = _chosen.count_rows
find_texts = _chosen.find_texts
find_words = _chosen.find_words
index_texts = _chosen.index_texts
index_words = _chosen.index_words
insert_texts = _chosen.insert_texts
insert_words = _chosen.insert_words
take_texts = _chosen.take_texts

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
