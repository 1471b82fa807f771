"""The Markov decision process of migrations: how likely they are, what they will cost, and a table for the planner.

Log -> node counts -> `learn` -> `TransitionMatrix` -> `project` -> `ValueTable` -> `migration.plan(strategy="mtm")`.
Pure except for `mdp.spark`, which runs the work on Spark. The planner is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mdp.errors import (
    DuplicatedTime,
    GapInLog,
    InvalidLog,
    InvalidMatrix,
    InvalidProjection,
    InvalidRecipe,
    InvalidTable,
    MdpError,
    MissingPackage,
    NothingBalanced,
    SingleState,
    UnknownPartition,
)
from mdp.matrix import TransitionMatrix

if TYPE_CHECKING:
    from mdp.learning import learn
    from mdp.process import DecisionProcess
    from mdp.projection import CheckpointLocation, project
    from mdp.table.table import ValueTable

__all__ = [
    "CheckpointLocation",
    "DecisionProcess",
    "DuplicatedTime",
    "GapInLog",
    "InvalidLog",
    "InvalidMatrix",
    "InvalidProjection",
    "InvalidRecipe",
    "InvalidTable",
    "MdpError",
    "MissingPackage",
    "NothingBalanced",
    "SingleState",
    "TransitionMatrix",
    "UnknownPartition",
    "ValueTable",
    "learn",
    "project",
]

_LAZY = {
    "learn": "mdp.learning",
    "DecisionProcess": "mdp.process",
    "CheckpointLocation": "mdp.projection",
    "project": "mdp.projection",
    "ValueTable": "mdp.table.table",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'mdp' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
