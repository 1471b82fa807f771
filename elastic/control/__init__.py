"""The control plane: a scale request becomes a plan, a schedule and a live migration; what happened is written down.

Knows the cluster through one port (`Cluster`), and nothing of Spark.
"""

from elastic.control.cluster import Cluster, TaskCounters
from elastic.control.journal import Journal
from elastic.control.migration import Migration, MigrationProgress
from elastic.control.monitor import Monitor
from elastic.control.request import MODES, TRANSFERS, ScaleRequest
from elastic.control.scaler import Scaler

__all__ = [
    "MODES",
    "TRANSFERS",
    "Cluster",
    "Journal",
    "Migration",
    "MigrationProgress",
    "Monitor",
    "ScaleRequest",
    "Scaler",
    "TaskCounters",
]
