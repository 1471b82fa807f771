"""The values of planning: assignments, workloads, moves and plans. Immutable, pure."""

from migration.model.assignment import Assignment
from migration.model.moves import Move, compute_moves
from migration.model.ownership import Ownership, Run
from migration.model.plan import NodeLoad, Plan
from migration.model.scattered import ScatteredAssignment, apply_moves, ownership_from_dict
from migration.model.standbys import Copy, Standbys, compute_copies
from migration.model.workload import Workload

__all__ = [
    "Assignment",
    "Copy",
    "Move",
    "NodeLoad",
    "Ownership",
    "Plan",
    "Run",
    "ScatteredAssignment",
    "Standbys",
    "Workload",
    "apply_moves",
    "compute_copies",
    "compute_moves",
    "ownership_from_dict",
]
