"""Readj's moves and swaps of heavy keys between the most loaded node and all others."""

import numpy as np
from numpy.typing import NDArray

from migration.keys.kernels.columns import Rows
from migration.keys.loads import Floats, Nodes
from migration.optional_compiling import compiled

Places = NDArray[np.int64]


@compiled
def move_or_swap(tracked: Rows, work: Floats, size: Floats, limit: float, destination: Nodes, loads: Floats) -> int:
    """Move and swap tracked keys until no node exceeds the limit; return -1, or a key of the node that still does.

    `tracked` holds rows by ascending work, then row. In each step the most loaded node gives a key to another node, or
    swaps it for a lighter one, such that the larger of both loads becomes smallest; then such that the least state
    moves. O(T + t N log T) a step, for T tracked keys of which the most loaded node has t.
    """
    node_count = len(loads)
    starts = np.zeros(node_count + 1, np.int64)
    ordered, ordered_work = np.empty(len(tracked), np.int64), np.empty(len(tracked))
    while True:
        source = np.argmax(loads)
        highest = loads[source]
        if highest <= limit:
            return -1
        sort_by_node(tracked, work, destination, starts, ordered, ordered_work)
        best_load, best_size = highest, np.inf
        given, returned, target = -1, -1, -1
        for node in range(node_count):
            if node == source:
                continue
            start, stop = starts[node], starts[node + 1]
            half = (highest - loads[node]) / 2
            for place in range(starts[source], starts[source + 1]):
                row = ordered[place]
                # To take the wanted work over, the key is swapped for one of about its work less that.
                near = start + np.searchsorted(ordered_work[start:stop], work[row] - half)
                for option in range(3):
                    other = -1
                    if option > 0:
                        index = near - option + 1
                        if index < start or index >= stop:
                            continue
                        other = ordered[index]
                    difference = work[row] if other < 0 else work[row] - work[other]
                    if difference <= 0:
                        continue
                    load = max(highest - difference, loads[node] + difference)
                    moved = size[row] if other < 0 else size[row] + size[other]
                    if load < best_load or (load == best_load and moved < best_size and given >= 0):
                        best_load, best_size, given, returned, target = load, moved, row, other, node
        if given < 0:
            heaviest = -1
            for row in range(len(work)):
                if destination[row] == source and (heaviest < 0 or work[row] > work[heaviest]):
                    heaviest = row
            return heaviest
        destination[given] = target
        loads[source] -= work[given]
        loads[target] += work[given]
        if returned >= 0:
            destination[returned] = source
            loads[target] -= work[returned]
            loads[source] += work[returned]


@compiled
def sort_by_node(
    tracked: Rows, work: Floats, destination: Nodes, starts: Places, ordered: Places, ordered_work: Floats
) -> None:
    """Group tracked rows by node and keep their order: those of node d from `starts[d]`."""
    starts[:] = 0
    for row in tracked:
        starts[destination[row] + 1] += 1
    for node in range(len(starts) - 1):
        starts[node + 1] += starts[node]
    ends = starts[:-1].copy()
    for row in tracked:
        place = ends[destination[row]]
        ordered[place] = row
        ordered_work[place] = work[row]
        ends[destination[row]] += 1
