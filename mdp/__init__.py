"""The decision process: which migrations are likely, what they will cost, and a table the planner loads.

Log -> node counts -> `learn` -> `TransitionMatrix` -> `project` -> `ValueTable` -> `migration.plan(strategy="mtm")`.
Pure but for `mdp.spark`, which hands the work to Spark. What plans is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mdp.errors import (
    InvalidLog,
    InvalidMatrix,
    InvalidProjection,
    InvalidTable,
    MdpError,
    NothingBalanced,
    UnknownPartition,
)
from mdp.matrix import TransitionMatrix

if TYPE_CHECKING:
    from mdp.learning import learn
    from mdp.process import DecisionProcess
    from mdp.projecting import Place, project
    from mdp.table.table import ValueTable

__all__ = [
    "DecisionProcess",
    "InvalidLog",
    "InvalidMatrix",
    "InvalidProjection",
    "InvalidTable",
    "MdpError",
    "NothingBalanced",
    "Place",
    "TransitionMatrix",
    "UnknownPartition",
    "ValueTable",
    "learn",
    "project",
]

_LAZY = {
    "learn": "mdp.learning",
    "DecisionProcess": "mdp.process",
    "Place": "mdp.projecting",
    "project": "mdp.projecting",
    "ValueTable": "mdp.table.table",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'mdp' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
