"""Single passes over the columns of keys."""

import numpy as np
from numpy.typing import NDArray

from migration.keys.loads import Floats, Nodes
from migration.optional_compiling import compiled

Rows = NDArray[np.int64]


@compiled
def sum_loads(destination: Nodes, work: Floats, pinned: Floats) -> Floats:
    """The work of every node: its `pinned` work, and its keys added in the order of rows."""
    loads = pinned.copy()
    for row in range(len(work)):
        loads[destination[row]] += work[row]
    return loads


@compiled
def find_differences(one: Nodes, other: Nodes) -> Rows:
    """Rows in which two assignments differ, ascending."""
    count = 0
    for row in range(len(one)):
        count += one[row] != other[row]
    rows = np.empty(count, np.int64)
    place = 0
    for row in range(len(one)):
        if one[row] != other[row]:
            rows[place] = row
            place += 1
    return rows
