"""Phases II and III of paper 000: take keys from overloaded nodes, and place them with LLFD and Adjust.

A stationary key is one that was never taken from its node. Candidates are placed in descending order of work and only
lighter keys are exchanged for them, so each key is taken at most once, a placed key never moves again, and a stationary
key that is at least as heavy as a candidate stays where it is for good. A node's keys are therefore read in order once,
and what is found too heavy is dropped.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from migration.keys.kernels.heaps import Places, Rows, push, remove_first
from migration.keys.kernels.order import (
    Groups,
    Keys,
    Order,
    fill_chunks,
    has_next,
    make_groups,
    make_order,
    peek,
    skip,
)
from migration.keys.loads import Floats, Nodes
from migration.optional_compiling import compiled


class Candidates(NamedTuple):
    """Keys that wait for a node: a heap of `length[0]` rows, highest work first."""

    values: Floats
    rows: Rows
    length: Places


class Balance(NamedTuple):
    """The load of every node, and the nodes in ascending `order` of load.

    `fixed` is the work that cannot leave a node any more: pinned work, placed keys, and stationary ones that are at
    least as heavy as the candidate was when the node was last asked.
    """

    load: Floats
    fixed: Floats
    order: Places


@compiled
def rebalance(work: Floats, size: Floats, destination: Nodes, pinned: Floats, limit: float, beta: float) -> int:
    """Take keys from nodes above the limit and place them in `destination`; return a row that no node accepts, or -1.

    `pinned` is work on every node besides that of its keys, at most the limit.
    Keys are taken by highest work if `beta` is negative, else by highest `priority`. O(K + taken * (log K + nodes));
    two passes over all keys if no key has to be exchanged.
    """
    node_count = len(pinned)
    load, start = add_keys(work, destination, pinned)
    overloaded = load > limit
    if not overloaded.any():
        return -1
    keys = Keys(work, size, destination, np.zeros(len(work), np.bool_))
    groups, ranked, candidates = select(keys, start, overloaded, load, limit, beta)

    # Phase III
    balance = Balance(load, pinned.copy(), np.argsort(load, kind="mergesort"))  # stable, so ties by node
    heavy = ranked if beta < 0 else make_order(-1.0, start)
    can_exchange = False
    while candidates.length[0] > 0:
        row = candidates.rows[0]
        remove_first(candidates.values, candidates.rows, candidates.length[0], work)
        candidates.length[0] -= 1
        position = 0
        while position < node_count:
            node = balance.order[position]
            if load[node] + work[row] <= limit:
                break
            if not can_exchange:
                fill_chunks(ranked, ~overloaded, keys)
                if beta >= 0:
                    fill_chunks(heavy, np.ones(node_count, np.bool_), keys)
                can_exchange = True
            if exchange(row, node, limit, balance, ranked, heavy, groups, keys, candidates):
                break
            position += 1
        if position == node_count:
            return int(row)
        place(row, position, balance, keys)
    return -1


@compiled
def add_keys(work: Floats, destination: Nodes, fixed: Floats) -> tuple[Floats, Places]:
    """The load of every node with its keys, beside its `fixed` work; and where its keys start, ordered by node."""
    load, start = fixed.copy(), np.zeros(len(fixed) + 1, np.int64)
    for row in range(len(work)):
        load[destination[row]] += work[row]
        start[destination[row] + 1] += 1
    return load, np.cumsum(start)


@compiled
def select(
    keys: Keys, start: Places, overloaded: NDArray[np.bool_], load: Floats, limit: float, beta: float
) -> tuple[Groups, Order, Candidates]:
    """Phase II: take keys from overloaded nodes until none exceeds the limit, and return them as candidates.

    What is left of the order by `beta` is returned, too, for keys that are exchanged later.
    """
    groups = make_groups(start)
    candidates = Candidates(np.empty(len(keys.work)), np.empty(len(keys.work), np.int32), np.zeros(1, np.int64))
    ranked = make_order(beta, start)
    fill_chunks(ranked, overloaded, keys)
    for node in range(len(load)):
        while load[node] > limit and has_next(ranked, node, groups, keys):
            take(peek(ranked, node), node, load, keys, candidates)
            skip(ranked, node, keys)
    return groups, ranked, candidates


@compiled
def take(row: int, node: int, load: Floats, keys: Keys, candidates: Candidates) -> None:
    """Take a stationary key from its node and make it a candidate."""
    keys.taken[row] = True
    load[node] -= keys.work[row]
    push(candidates.values, candidates.rows, candidates.length[0], keys.work[row], row, keys.work)
    candidates.length[0] += 1


@compiled
def exchange(
    row: int,
    node: int,
    limit: float,
    balance: Balance,
    ranked: Order,
    heavy: Order,
    groups: Groups,
    keys: Keys,
    candidates: Candidates,
) -> bool:
    """Take lighter stationary keys from a node, in the order `ranked`, until it accepts the key.

    False, and nothing taken, if not even all of them would do. `heavy` is the order by highest work.
    """
    work = keys.work[row]
    if balance.fixed[node] + work > limit:
        return False
    while has_next(heavy, node, groups, keys):
        top = peek(heavy, node)
        if keys.work[top] < work:
            break
        skip(heavy, node, keys)
        if not keys.taken[top]:
            balance.fixed[node] += keys.work[top]
    if balance.fixed[node] + work > limit:
        return False
    while balance.load[node] + work > limit and has_next(ranked, node, groups, keys):
        other = peek(ranked, node)
        skip(ranked, node, keys)
        if keys.work[other] < work and not keys.taken[other]:
            take(other, node, balance.load, keys, candidates)
    return True


@compiled
def place(row: int, position: int, balance: Balance, keys: Keys) -> None:
    """Place a key on the node at `position` of the order."""
    node = balance.order[position]
    keys.destination[row] = node
    balance.load[node] += keys.work[row]
    balance.fixed[node] += keys.work[row]
    reorder(balance.order, balance.load, position)


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
