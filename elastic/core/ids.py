"""The types of identifiers. All are integers or pairs of them at run time; the type checker keeps them apart.

A `UnitId` names a unit of state, a task of a stage. Logs and arrays hold its `number` instead.
"""

from typing import NewType

from storage.state import UnitId

Task = NewType("Task", int)
Batch = NewType("Batch", int)
Epoch = NewType("Epoch", int)

NO_BATCH = Batch(-1)  # before the first one
FIRST_EPOCH = Epoch(0)  # of a node that has no units yet

__all__ = ["FIRST_EPOCH", "NO_BATCH", "Batch", "Epoch", "Task", "UnitId"]
