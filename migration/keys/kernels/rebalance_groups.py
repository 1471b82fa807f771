"""Phases II and III of paper 000 over groups of equal keys, in one compiled loop.

A group is a number of keys with the same work and size on one node. The loop does what `keys.kernels.rebalance` does
with single keys, in the same order, but takes and places as many equal keys at once as it can. Its cost depends on the
number of groups, not on the number of keys.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from migration.keys.kernels.heaps import Rows, heapify, priority, push, remove_first
from migration.keys.loads import Floats, Nodes
from migration.optional_compiling import compiled

Counts = NDArray[np.int64]
Places = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Placement(NamedTuple):
    """`keys` keys of each of these groups were taken from their node and are now on `node`."""

    group: NDArray[np.int32]
    node: Nodes
    keys: Counts


def rebalance_groups(
    work: Floats,
    size: Floats,
    node: Nodes,
    count: Counts,
    node_count: int,
    limit: float,
    beta: float | None,
) -> tuple[Counts, Placement] | None:
    """Take keys from nodes above the limit, by highest work or by c^beta / S, and place them with LLFD and Adjust.

    Return how many keys of each group were never taken, and where the others are now; None if no node accepts a key.
    O(G + taken groups * (log G + N^2)) for G groups, as long as few keys have to be exchanged.
    """
    remaining = count.copy()
    room = max(len(work), 16)
    while True:
        groups, nodes, counts = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int64)
        placed = _rebalance(
            work,
            size,
            node,
            remaining,
            node_count,
            limit,
            beta is None,
            0.0 if beta is None else beta,
            groups,
            nodes,
            counts,
        )
        if placed != _NO_ROOM:
            break
        remaining = count.copy()
        room *= 4
    if placed == _NOT_PLACED:
        return None
    return remaining, Placement(groups[:placed], nodes[:placed], counts[:placed])


_NOT_PLACED, _NO_ROOM = -1, -2


@compiled
def count_needed(excess: float, work: float, most: int) -> int:
    """The fewest keys of this work that weigh at least `excess`, at least 1 and at most `most`."""
    if excess > work * most:
        return most
    needed = max(math.ceil(excess / work), 1)
    while needed < most and excess - needed * work > 0:
        needed += 1
    return min(needed, most)


@compiled
def count_rounds(order: Places, loads: Floats, active: int, work: float, limit: float, waiting: int) -> int:
    """How often each of the `active` least loaded nodes gets a key, before another node or the limit is reached.

    LLFD gives the next key to the least loaded node. As long as the loads of these nodes differ by less than the work
    of a key, it serves them in turn, and their order stays the same.
    """
    heaviest = loads[order[active - 1]]
    rounds = waiting // active
    rounds = min(rounds, int(max(math.floor((limit - heaviest) / work), 0.0)))
    if active < len(order):
        rounds = min(rounds, math.ceil((loads[order[active]] - heaviest) / work))
    while rounds > 0 and heaviest + rounds * work > limit:
        rounds -= 1
    return rounds


@compiled
def _sort_nodes(order: Places, loads: Floats) -> None:
    """Sort nodes by ascending load, then by index; nearly sorted ones in O(nodes)."""
    for place in range(1, len(order)):
        node = order[place]
        while place > 0:
            other = order[place - 1]
            if loads[other] < loads[node] or (loads[other] == loads[node] and other < node):
                break
            order[place] = other
            place -= 1
        order[place] = node


@compiled
def _list_groups(node_of: Nodes, chosen: Flags, ends: Places, work: Floats, groups: Rows) -> None:
    """Append the groups of chosen nodes to the lists of these nodes: that of node d goes on at `groups[ends[d]]`."""
    for group in range(len(node_of)):
        node = node_of[group]
        if chosen[node] and work[group] > 0:  # moving keys without work relieves no node
            groups[ends[node]] = group
            ends[node] += 1


@compiled
def _rank_groups(
    groups: Rows, remaining: Counts, work: Floats, size: Floats, by_work: bool, beta: float, values: Floats, rows: Rows
) -> int:
    """Make a heap, highest work or c^beta / S first, of the groups that have keys left; return its length."""
    length = 0
    for group in groups:
        if remaining[group] > 0:
            values[length] = work[group] if by_work else priority(work[group], size[group], beta)
            rows[length] = group
            length += 1
    heapify(values, rows, length, work)
    return length


@compiled
def _rebalance(
    work: Floats,
    size: Floats,
    node_of: Nodes,
    remaining: Counts,
    node_count: int,
    limit: float,
    by_work: bool,
    beta: float,
    placed_group: Rows,
    placed_node: Nodes,
    placed_count: Counts,
) -> int:
    """Lower `remaining` and fill the columns of placements; return their number, `_NOT_PLACED` or `_NO_ROOM`."""
    total = len(work)
    loads, starts = np.zeros(node_count), np.zeros(node_count + 1, np.int64)
    for group in range(total):
        loads[node_of[group]] += work[group] * remaining[group]
        starts[node_of[group] + 1] += 1
    overloaded = loads > limit
    if not overloaded.any():
        return 0
    starts = np.cumsum(starts)
    ends = starts[:-1].copy()

    # Phase II. A group stays first of its heap until all of its keys were taken.
    waiting = np.zeros(total, np.int64)
    grouped = np.empty(total, np.int32)
    ranked_values, ranked_rows, ranked = np.empty(total), np.empty(total, np.int32), np.full(node_count, -1)
    candidate_values, candidate_rows, candidates = np.empty(total), np.empty(total, np.int32), 0
    _list_groups(node_of, overloaded, ends, work, grouped)
    for node in range(node_count):
        if not overloaded[node]:
            continue
        start, end = starts[node], ends[node]
        values, rows = ranked_values[start:end], ranked_rows[start:end]
        length = _rank_groups(grouped[start:end], remaining, work, size, by_work, beta, values, rows)
        while loads[node] > limit and length > 0:
            group = rows[0]
            taken = count_needed(loads[node] - limit, work[group], remaining[group])
            remaining[group] -= taken
            loads[node] -= taken * work[group]
            waiting[group] = taken
            push(candidate_values, candidate_rows, candidates, work[group], group, work)
            candidates += 1
            if remaining[group] == 0:
                remove_first(values, rows, length, work)
                length -= 1
        ranked[node] = length

    # Phase III. `fixed` is the work that cannot leave a node any more, as in the loop over single keys.
    fixed = np.zeros(node_count)
    heavy_values, heavy_rows, heavy = np.empty(total), np.empty(total, np.int32), np.full(node_count, -1)
    all_grouped = False
    placed = 0
    order = np.argsort(loads, kind="mergesort")
    while candidates > 0:
        group = candidate_rows[0]
        weight = work[group]
        remove_first(candidate_values, candidate_rows, candidates, work)
        candidates -= 1
        while waiting[group] > 0:
            if placed + node_count > len(placed_group):
                return _NO_ROOM
            active = 1
            while active < node_count and loads[order[active]] < loads[order[0]] + weight:
                active += 1
            rounds = count_rounds(order, loads, active, weight, limit, waiting[group])
            if rounds > 0:
                for position in range(active):
                    node = order[position]
                    loads[node] += rounds * weight
                    fixed[node] += rounds * weight
                    placed_group[placed], placed_node[placed], placed_count[placed] = group, node, rounds
                    placed += 1
                waiting[group] -= rounds * active
                _sort_nodes(order, loads)
                continue
            position = 0
            while position < node_count:
                node = order[position]
                if loads[node] + weight <= limit:
                    break
                if fixed[node] + weight > limit:
                    position += 1
                    continue
                if not all_grouped and not overloaded[node]:
                    _list_groups(node_of, ~overloaded, ends, work, grouped)
                    all_grouped = True
                start, end = starts[node], ends[node]
                values, rows = heavy_values[start:end], heavy_rows[start:end]
                if heavy[node] < 0:
                    heavy[node] = _rank_groups(grouped[start:end], remaining, work, size, True, beta, values, rows)
                while heavy[node] > 0 and values[0] >= weight:
                    fixed[node] += values[0] * remaining[rows[0]]
                    remove_first(values, rows, heavy[node], work)
                    heavy[node] -= 1
                if fixed[node] + weight > limit:
                    position += 1
                    continue
                values, rows = ranked_values[start:end], ranked_rows[start:end]
                if ranked[node] < 0:
                    ranked[node] = _rank_groups(grouped[start:end], remaining, work, size, by_work, beta, values, rows)
                while loads[node] + weight > limit and ranked[node] > 0:
                    lighter = rows[0]
                    if work[lighter] < weight and remaining[lighter] > 0:
                        taken = count_needed(loads[node] + weight - limit, work[lighter], remaining[lighter])
                        remaining[lighter] -= taken
                        loads[node] -= taken * work[lighter]
                        if waiting[lighter] == 0:
                            push(candidate_values, candidate_rows, candidates, work[lighter], lighter, work)
                            candidates += 1
                        waiting[lighter] += taken
                        if remaining[lighter] > 0:
                            continue
                    remove_first(values, rows, ranked[node], work)
                    ranked[node] -= 1
                break
            if position == node_count:
                return _NOT_PLACED
            node = order[position]
            loads[node] += weight
            fixed[node] += weight
            placed_group[placed], placed_node[placed], placed_count[placed] = group, node, 1
            placed += 1
            waiting[group] -= 1
            _sort_nodes(order, loads)
    return placed
