"""The control plane: turns a scale request into a plan, a schedule and a live migration, and keeps a journal.

It knows the cluster through one port (`Cluster`), and nothing of Spark. Names are imported on first use: the command
line reads the defaults of `ScaleRequest`, and must not load the planner for that.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elastic.control.autoscale import POLICIES, Autoscaler, AutoscalerSettings, Decision, Observation, Policy
    from elastic.control.cluster import Cluster, NodeCounters, NodeStep, TaskCounters, Vitals
    from elastic.control.handle import MigrationProgress
    from elastic.control.key_request import LEVEL_OPTIONS, LEVELS, KeyRequest, make_requests
    from elastic.control.levels import LevelPlans
    from elastic.control.load import Load
    from elastic.control.migration import KeyMigration, Migration, TaskMigration
    from elastic.control.monitor import OBSERVE_SECONDS, Monitor
    from elastic.control.periodic import PeriodicThread
    from elastic.control.request import MODES, TRANSFERS, ScaleRequest
    from elastic.control.scaler import Scaler
    from storage.journal import JobJournal, JournalPage

_MODULES = {
    "elastic.control.autoscale": ("POLICIES", "Autoscaler", "AutoscalerSettings", "Decision", "Observation", "Policy"),
    "elastic.control.cluster": ("Cluster", "NodeCounters", "NodeStep", "TaskCounters", "Vitals"),
    "elastic.control.load": ("Load",),
    "elastic.control.handle": ("MigrationProgress",),
    "elastic.control.key_request": ("LEVELS", "LEVEL_OPTIONS", "KeyRequest", "make_requests"),
    "elastic.control.levels": ("LevelPlans",),
    "elastic.control.migration": ("KeyMigration", "Migration", "TaskMigration"),
    "elastic.control.monitor": ("OBSERVE_SECONDS", "Monitor"),
    "elastic.control.periodic": ("PeriodicThread",),
    "elastic.control.request": ("MODES", "TRANSFERS", "ScaleRequest"),
    "elastic.control.scaler": ("Scaler",),
    "storage.journal": ("JobJournal", "JournalPage"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "LEVELS",
    "LEVEL_OPTIONS",
    "MODES",
    "OBSERVE_SECONDS",
    "POLICIES",
    "TRANSFERS",
    "Autoscaler",
    "AutoscalerSettings",
    "Cluster",
    "Decision",
    "JobJournal",
    "JournalPage",
    "KeyMigration",
    "KeyRequest",
    "LevelPlans",
    "Load",
    "Migration",
    "MigrationProgress",
    "Monitor",
    "NodeCounters",
    "NodeStep",
    "Observation",
    "PeriodicThread",
    "Policy",
    "ScaleRequest",
    "Scaler",
    "TaskCounters",
    "TaskMigration",
    "Vitals",
    "make_requests",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'elastic.control' has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)
