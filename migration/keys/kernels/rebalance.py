"""Phases II and III of paper 000: take keys from overloaded nodes, and place them with LLFD and Adjust.

All in one loop over lazy heaps. A stationary key is one that was never taken from its node. Candidates are placed in
descending order of work and only lighter keys are exchanged for them, so each key is taken at most once, a placed key
never moves again, and a stationary key that is at least as heavy as a candidate stays where it is for good. Heaps
therefore only shrink: what is found taken or too heavy is dropped.
"""

import math

import numpy as np
from numpy.typing import NDArray

from migration.keys.kernels.heaps import Rows, heapify, push, remove_first
from migration.keys.loads import Floats, Nodes
from migration.optional_compiling import compiled

Flags = NDArray[np.bool_]
Places = NDArray[np.int64]


@compiled
def priority(work: float, size: float, beta: float) -> float:
    """gamma(k) = c^beta / S: infinite for a key without state, which moves for nothing; 0 for a key without work."""
    if work == 0:
        return 0.0
    if size == 0:
        return np.inf
    # Powers that are not needed take as long as the rest of the loop.
    if beta == 1.5:
        return work * math.sqrt(work) / size
    if beta == 1:
        return work / size
    return work**beta / size


@compiled
def group_rows(destination: Nodes, chosen: Flags, ends: Places, work: Floats, taken: Flags, rows: Rows) -> None:
    """Append the stationary rows of chosen nodes to their groups: that of node d goes on at `rows[ends[d]]`.

    Rows without work are left out, because moving them relieves no node.
    """
    for row in range(len(destination)):
        node = destination[row]
        if chosen[node] and work[row] > 0 and not taken[row]:
            rows[ends[node]] = row
            ends[node] += 1


@compiled
def rank_rows(
    group: Rows, taken: Flags, work: Floats, size: Floats, by_work: bool, beta: float, values: Floats, rows: Rows
) -> int:
    """Make a heap, highest work or priority first, of the stationary rows of a group; return its length."""
    count = 0
    for row in group:
        if not taken[row]:
            values[count] = work[row] if by_work else priority(work[row], size[row], beta)
            rows[count] = row
            count += 1
    heapify(values, rows, count, work)
    return count


@compiled
def reorder(order: Places, loads: Floats, position: int) -> None:
    """Move the node at `position` of the ascending order to where its changed load belongs. O(nodes), mostly O(1)."""
    node = order[position]
    load = loads[node]
    while position > 0:
        other = order[position - 1]
        if loads[other] < load or (loads[other] == load and other < node):
            break
        order[position] = other
        position -= 1
    while position + 1 < len(order):
        other = order[position + 1]
        if loads[other] > load or (loads[other] == load and other > node):
            break
        order[position] = other
        position += 1
    order[position] = node


@compiled
def rebalance(
    work: Floats, size: Floats, destination: Nodes, node_count: int, limit: float, by_work: bool, beta: float
) -> int:
    """Take keys from nodes above the limit and place them in `destination`; return a row that no node accepts, or -1.

    Keys are taken by highest work, or by highest `priority`. O(K + taken * (log K + nodes)).
    """
    keys = len(work)
    loads, starts = np.zeros(node_count), np.zeros(node_count + 1, np.int64)
    for row in range(keys):
        loads[destination[row]] += work[row]
        starts[destination[row] + 1] += 1
    overloaded = loads > limit
    if not overloaded.any():
        return -1
    starts = np.cumsum(starts)
    ends = starts[:-1].copy()

    # Phase II. Large arrays cost nothing where they are not touched.
    taken = np.zeros(keys, np.bool_)
    grouped = np.empty(keys, np.int32)
    ranked_values, ranked_rows, ranked = np.empty(keys), np.empty(keys, np.int32), np.full(node_count, -1)
    candidate_values, candidate_rows, candidates = np.empty(keys), np.empty(keys, np.int32), 0
    group_rows(destination, overloaded, ends, work, taken, grouped)
    for node in range(node_count):
        if not overloaded[node]:
            continue
        start, end = starts[node], ends[node]
        values, rows = ranked_values[start:end], ranked_rows[start:end]
        count = rank_rows(grouped[start:end], taken, work, size, by_work, beta, values, rows)
        while loads[node] > limit and count > 0:
            row = rows[0]
            remove_first(values, rows, count, work)
            count -= 1
            taken[row] = True
            loads[node] -= work[row]
            push(candidate_values, candidate_rows, candidates, work[row], row, work)
            candidates += 1
        ranked[node] = count

    # Phase III. `fixed` is the work that cannot leave a node any more: placed keys, and stationary ones that are at
    # least as heavy as the candidate was when the node was last asked. These come from `heavy`, heaviest first.
    fixed = np.zeros(node_count)
    heavy_values, heavy_rows, heavy = ranked_values, ranked_rows, ranked
    if not by_work:
        heavy_values, heavy_rows, heavy = np.empty(keys), np.empty(keys, np.int32), np.full(node_count, -1)
    all_grouped = False
    order = np.argsort(loads, kind="mergesort")  # stable: nodes of equal load in their order
    while candidates > 0:
        candidate = candidate_rows[0]
        weight = work[candidate]
        remove_first(candidate_values, candidate_rows, candidates, work)
        candidates -= 1
        position = 0
        while position < node_count:
            node = order[position]
            if loads[node] + weight <= limit:
                break
            if fixed[node] + weight > limit:
                position += 1
                continue
            if not all_grouped and not overloaded[node]:
                group_rows(destination, ~overloaded, ends, work, taken, grouped)
                all_grouped = True
            start, end = starts[node], ends[node]
            values, rows = heavy_values[start:end], heavy_rows[start:end]
            if heavy[node] < 0:
                heavy[node] = rank_rows(grouped[start:end], taken, work, size, True, beta, values, rows)
            while heavy[node] > 0 and values[0] >= weight:
                if not taken[rows[0]]:
                    fixed[node] += values[0]
                remove_first(values, rows, heavy[node], work)
                heavy[node] -= 1
            if fixed[node] + weight > limit:
                position += 1
                continue
            values, rows = ranked_values[start:end], ranked_rows[start:end]
            if ranked[node] < 0:
                ranked[node] = rank_rows(grouped[start:end], taken, work, size, by_work, beta, values, rows)
            while loads[node] + weight > limit and ranked[node] > 0:
                row = rows[0]
                remove_first(values, rows, ranked[node], work)
                ranked[node] -= 1
                if work[row] < weight and not taken[row]:
                    taken[row] = True
                    loads[node] -= work[row]
                    push(candidate_values, candidate_rows, candidates, work[row], row, work)
                    candidates += 1
            break
        if position == node_count:
            return candidate
        node = order[position]
        destination[candidate] = node
        loads[node] += weight
        fixed[node] += weight
        reorder(order, loads, position)
    return -1
