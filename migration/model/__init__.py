"""The values everything else speaks of: assignments, workloads, moves and plans. Immutable, pure."""

from migration.model.assignment import Assignment
from migration.model.moves import Move, moves_between
from migration.model.ownership import Ownership, Run
from migration.model.plan import NodeLoad, Plan
from migration.model.scattered import ScatteredAssignment, after_moves, ownership_from_dict
from migration.model.workload import Workload

__all__ = [
    "Assignment",
    "Move",
    "NodeLoad",
    "Ownership",
    "Plan",
    "Run",
    "ScatteredAssignment",
    "Workload",
    "after_moves",
    "moves_between",
    "ownership_from_dict",
]
