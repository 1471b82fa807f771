"""The control plane: a scale request becomes a plan, a schedule and a live migration; what happened is written down.

Knows the cluster through one port (`Cluster`), and nothing of Spark.
"""

from elastic.control.autoscale import POLICIES, Autoscaler, Autoscaling, Decision, Observation, Policy
from elastic.control.cluster import Cluster, NodeCounters, NodeStep, TaskCounters, Vitals
from elastic.control.journal import Journal, JournalPage
from elastic.control.load import Load
from elastic.control.migration import Migration, MigrationProgress
from elastic.control.monitor import OBSERVE_SECONDS, Monitor
from elastic.control.repeating import Repeating
from elastic.control.request import MODES, TRANSFERS, ScaleRequest
from elastic.control.scaler import Scaler

__all__ = [
    "MODES",
    "OBSERVE_SECONDS",
    "POLICIES",
    "TRANSFERS",
    "Autoscaler",
    "Autoscaling",
    "Cluster",
    "Decision",
    "Journal",
    "JournalPage",
    "Load",
    "Migration",
    "MigrationProgress",
    "Monitor",
    "NodeCounters",
    "NodeStep",
    "Observation",
    "Policy",
    "Repeating",
    "ScaleRequest",
    "Scaler",
    "TaskCounters",
    "Vitals",
]
