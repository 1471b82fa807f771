"""The planners' inner loops: compiled where numba is installed, plain NumPy where it is not.

Chosen once, at import. `ELASTIC_KERNEL=numpy` selects the NumPy version even if numba is installed.
Both work on prefix sums and boundaries, not on nodes, and give identical results.
"""

import logging
import os
from typing import NamedTuple

from migration.kernels.shared import Floats, Ints

_log = logging.getLogger(__name__)


class KernelInfo(NamedTuple):
    """The kernels that this process uses, and the folder of their compiled code (empty if nothing is compiled)."""

    name: str
    cache: str


if os.environ.get("ELASTIC_KERNEL", "") != "numpy":
    try:
        from migration.kernels import compiled as _chosen
    except ImportError as cause:
        from migration.kernels import vectorised as _chosen  # type: ignore[no-redef]

        _log.info("numba is not available (%s); planning uses NumPy. Install spark-elastic[fast] for speed.", cause)
else:
    from migration.kernels import vectorised as _chosen  # type: ignore[no-redef]

lightest_starts = _chosen.lightest_starts
partition = _chosen.partition
best_gains = _chosen.best_gains
match = _chosen.match
label_partition = _chosen.label_partition
cheapest_sources = _chosen.cheapest_sources
undominated = _chosen.undominated


def kernel_info() -> KernelInfo:
    """The kernels of this process; `elastic --version` prints them."""
    stats = getattr(partition, "stats", None)
    return KernelInfo(_chosen.NAME, getattr(stats, "cache_path", "") or "")


__all__ = [
    "Floats",
    "Ints",
    "KernelInfo",
    "best_gains",
    "cheapest_sources",
    "kernel_info",
    "label_partition",
    "lightest_starts",
    "match",
    "partition",
    "undominated",
]
