"""Which state moves where: assignments, workloads, optimal plans and transfer schedules.

Pure: no Spark, no storage, no clock. Start with `plan(Assignment.even(64, 8), 10, workload)`.
"""

from migration.errors import (
    Infeasible,
    InvalidAssignment,
    InvalidInput,
    InvalidPlan,
    InvalidSchedule,
    InvalidWorkload,
    MigrationError,
    TooManyPartitions,
    UnknownNode,
    UnknownOption,
    UnknownStrategy,
)
from migration.kernels import KernelInfo, kernel_info
from migration.model import (
    Assignment,
    Move,
    NodeLoad,
    Ownership,
    Plan,
    ScatteredAssignment,
    Workload,
    after_moves,
    moves_between,
    ownership_from_dict,
)
from migration.planning import (
    STRATEGIES,
    AdditiveTerms,
    AdditiveValue,
    ValueFunction,
    plan,
    plan_sequence,
)

__all__ = [
    "STRATEGIES",
    "AdditiveTerms",
    "AdditiveValue",
    "Assignment",
    "Infeasible",
    "InvalidAssignment",
    "InvalidInput",
    "InvalidPlan",
    "InvalidSchedule",
    "InvalidWorkload",
    "KernelInfo",
    "MigrationError",
    "Move",
    "NodeLoad",
    "Ownership",
    "Plan",
    "ScatteredAssignment",
    "TooManyPartitions",
    "UnknownNode",
    "UnknownOption",
    "UnknownStrategy",
    "ValueFunction",
    "Workload",
    "after_moves",
    "kernel_info",
    "moves_between",
    "ownership_from_dict",
    "plan",
    "plan_sequence",
]
