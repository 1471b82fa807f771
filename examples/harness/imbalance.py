"""How unevenly rows are distributed over the nodes."""

import numpy as np
import pyarrow as pa

from elastic.routing import Routing, hash_keys
from storage.state import UnitId


def measure_imbalance(routing: Routing, keys: pa.ChunkedArray, stage: int = 0) -> float:
    """Return the rows of the node with most of them, divided by the mean: max L(d) / mean L in paper 000."""
    units, counts = np.unique(routing.unit_numbers(hash_keys([keys]), stage), return_counts=True)
    rows = dict.fromkeys(routing.assignment.nodes, 0)
    for unit, count in zip(units.tolist(), counts.tolist(), strict=True):
        for node in routing.owners(UnitId.from_number(unit)):
            rows[node] += count
    return max(rows.values()) * len(rows) / len(keys)
