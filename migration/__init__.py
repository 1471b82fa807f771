"""Which state moves where: assignments, workloads, optimal plans and transfer schedules.

Pure: no Spark, no storage, no clock. Start with `plan(Assignment.even(64, 8), 10, workload)`.

The planner is imported on first use: it brings a compiler with it, and every node of a cluster needs assignments, but
no node plans.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from migration.errors import (
    Infeasible,
    InvalidAssignment,
    InvalidInput,
    InvalidPlan,
    InvalidSchedule,
    InvalidStandbys,
    InvalidWorkload,
    KeysInfeasible,
    MigrationError,
    TooManyEntries,
    TooManyPartitions,
    UnknownNode,
    UnknownOption,
    UnknownStrategy,
    ValueDoesNotFit,
)
from migration.model import (
    Assignment,
    Copy,
    Move,
    NodeLoad,
    Ownership,
    Plan,
    ScatteredAssignment,
    Standbys,
    Workload,
    apply_moves,
    compute_moves,
    ownership_from_dict,
)

if TYPE_CHECKING:
    from migration.kernels import KernelInfo, kernel_info
    from migration.keys import KeyLoads, KeyPlan, plan_keys
    from migration.planning import (
        STRATEGIES,
        AdditiveTerms,
        AdditiveValue,
        SearchGuide,
        ValueFunction,
        plan,
        plan_sequence,
    )

__all__ = [
    "STRATEGIES",
    "AdditiveTerms",
    "AdditiveValue",
    "Assignment",
    "Copy",
    "Infeasible",
    "InvalidAssignment",
    "InvalidInput",
    "InvalidPlan",
    "InvalidSchedule",
    "InvalidStandbys",
    "InvalidWorkload",
    "KernelInfo",
    "KeyLoads",
    "KeyPlan",
    "KeysInfeasible",
    "MigrationError",
    "Move",
    "NodeLoad",
    "Ownership",
    "Plan",
    "ScatteredAssignment",
    "SearchGuide",
    "Standbys",
    "TooManyEntries",
    "TooManyPartitions",
    "UnknownNode",
    "UnknownOption",
    "UnknownStrategy",
    "ValueDoesNotFit",
    "ValueFunction",
    "Workload",
    "apply_moves",
    "compute_moves",
    "kernel_info",
    "ownership_from_dict",
    "plan",
    "plan_keys",
    "plan_sequence",
]

_LAZY = {
    **dict.fromkeys(("KernelInfo", "kernel_info"), "migration.kernels"),
    **dict.fromkeys(("KeyLoads", "KeyPlan", "plan_keys"), "migration.keys"),
    **dict.fromkeys(
        ("STRATEGIES", "AdditiveTerms", "AdditiveValue", "SearchGuide", "ValueFunction", "plan", "plan_sequence"),
        "migration.planning",
    ),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'migration' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
