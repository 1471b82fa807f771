"""Balance keys that have standbys (paper 002): moves that switch roles where they can, and switches alone.

A key that goes to a node where it has a standby switches roles: nothing moves, and the node that it leaves becomes the
standby. A standby works `share` of what its key does, so that only the rest of the work changes its node.
"""

import numpy as np
from numpy.typing import NDArray

from migration.keys.kernels.heaps import remove_first
from migration.keys.kernels.order import Keys, fill_chunks, make_order
from migration.keys.kernels.rebalance import Balance, add_keys, exchange, reorder, select
from migration.keys.loads import Floats, Nodes
from migration.optional_compiling import compiled

NodeRows = NDArray[np.int32]
Rows = NDArray[np.int64]


@compiled
def sum_standby_loads(standbys: NodeRows, work: Floats, share: float, pinned: Floats) -> Floats:
    """The work of every node as standby, beside its `pinned` work: rows in their order."""
    loads = pinned.copy()
    for row in range(len(standbys)):
        for node in standbys[row]:
            if node >= 0:
                loads[node] += share * work[row]
    return loads


@compiled
def find_standby(standbys: NodeRows, row: int, node: int) -> int:
    """The column in which a key has its standby on a node, or -1."""
    for column in range(standbys.shape[1]):
        if standbys[row, column] == node:
            return column
    return -1


@compiled
def rebalance_with_standbys(
    work: Floats,
    size: Floats,
    destination: Nodes,
    standbys: NodeRows,
    share: float,
    pinned: Floats,
    limit: float,
    beta: float,
) -> int:
    """Algorithm 3 of paper 002, in `destination` and `standbys`; returns a row that no node accepts, or -1.

    As `rebalance` of paper 000 but for standbys: their work counts, and a key that is placed where it has one switches
    roles with it. `size` is what M(k) has above work^beta. The cursor of a node, the most work that a displaced key may
    have, is the work of the candidate: candidates come by falling work. O(K + taken * (log K + nodes)).
    """
    node_count = len(pinned)
    fixed = sum_standby_loads(standbys, work, share, pinned)
    load, start = add_keys(work, destination, fixed)
    overloaded = load > limit
    if not overloaded.any():
        return -1
    keys = Keys(work, size, destination, np.zeros(len(work), np.bool_))
    groups, ranked, candidates = select(keys, start, overloaded, load, limit, beta)  # first phase

    # Second phase: distribute them again.
    balance = Balance(load, fixed, np.argsort(load, kind="mergesort"))  # stable, so ties by node
    heavy = make_order(-1.0, start)
    can_exchange = False
    while candidates.length[0] > 0:
        row = candidates.rows[0]
        remove_first(candidates.values, candidates.rows, candidates.length[0], work)
        candidates.length[0] -= 1
        source = destination[row]
        position = 0
        while position < node_count:
            node = balance.order[position]
            saved = 0.0
            if find_standby(standbys, row, node) >= 0:
                saved = share * work[row]
                if load[source] + saved > limit:
                    position += 1
                    continue
            if load[node] + work[row] <= limit + saved:
                break
            if not can_exchange:
                fill_chunks(ranked, ~overloaded, keys)
                fill_chunks(heavy, np.ones(node_count, np.bool_), keys)
                can_exchange = True
            if exchange(row, node, limit + saved, balance, ranked, heavy, groups, keys, candidates):
                break
            position += 1
        if position == node_count:
            return int(row)
        _place(row, position, source, share, standbys, balance, keys)
    return -1


@compiled
def _place(
    row: int, position: int, source: int, share: float, standbys: NodeRows, balance: Balance, keys: Keys
) -> None:
    """Place a key on the node at `position` of the order; its standby there, if any, goes to the source."""
    node, work = balance.order[position], keys.work[row]
    column = find_standby(standbys, row, node)
    keys.destination[row] = node
    amount = work
    if column >= 0:
        standbys[row, column] = source
        amount = work - share * work
        balance.load[source] += share * work
        balance.fixed[source] += share * work
    balance.load[node] += amount
    balance.fixed[node] += amount
    reorder(balance.order, balance.load, position)
    if column >= 0:
        reorder(balance.order, balance.load, np.flatnonzero(balance.order == source)[0])


@compiled
def switch_roles(
    rows: Rows,
    work: Floats,
    destination: Nodes,
    standbys: NodeRows,
    share: float,
    loads: Floats,
    limit: float,
    spreads: bool,
    most: int,
) -> int:
    """Switch roles of keys on overloaded nodes, row by row, while their node exceeds the limit; returns how many.

    That is `most` keys, at most.

    A key goes to the least loaded node where it has a standby, if that stays within the limit; with `spreads` also if
    that is then less loaded than the key's node, which evens out the two and leaves the rest to the next round.
    O(rows * standbys).
    """
    switched = 0
    for row in rows:
        source = destination[row]
        amount = work[row] - share * work[row]
        if switched == most:
            break
        if loads[source] <= limit or amount <= 0:
            continue
        best = -1
        for column in range(standbys.shape[1]):
            node = standbys[row, column]
            if node < 0 or (best >= 0 and loads[node] >= loads[standbys[row, best]]):
                continue
            if loads[node] + amount <= limit or (spreads and loads[node] + amount < loads[source] - amount):
                best = column
        if best >= 0:
            node = standbys[row, best]
            destination[row], standbys[row, best] = node, source
            loads[source] -= amount
            loads[node] += amount
            switched += 1
    return switched


@compiled
def switch_home(rows: Rows, home: Nodes, destination: Nodes, standbys: NodeRows, most: int) -> int:
    """Switch keys to the standby that they have at home, row by row, at most so many; returns how many."""
    switched = 0
    for row in rows:
        if switched == most:
            break
        column = find_standby(standbys, row, home[row])
        if column >= 0:
            standbys[row, column] = destination[row]
            destination[row] = home[row]
            switched += 1
    return switched


@compiled
def complete_standbys(
    key_home: Nodes, standby_home: NodeRows, destination: Nodes, current: NodeRows, node_count: int
) -> NodeRows:
    """The standbys that keys have now, with those that are missing added and those beyond their number left out.

    A missing one goes where the second hash leads, else to the key's home, else to the next node that has no copy.
    """
    standbys = current.copy()
    for row in range(len(standbys)):
        wanted = 0
        have = 0
        for column in range(standbys.shape[1]):
            wanted += standby_home[row, column] >= 0
            have += standbys[row, column] >= 0
        for column in range(standbys.shape[1] - 1, -1, -1):
            if have > wanted and standbys[row, column] >= 0:
                standbys[row, column] = -1
                have -= 1
        for choice in range(standbys.shape[1] + 1 + node_count):
            if have >= wanted:
                break
            if choice < standbys.shape[1]:
                node = standby_home[row, choice]
            elif choice == standbys.shape[1]:
                node = key_home[row]
            else:
                node = (destination[row] + choice - standbys.shape[1]) % node_count
            if node < 0 or node == destination[row] or find_standby(standbys, row, node) >= 0:
                continue
            for column in range(standbys.shape[1]):
                if standbys[row, column] < 0:
                    standbys[row, column] = node
                    break
            have += 1
    return standbys


@compiled
def count_overrides(
    key_home: Nodes, standby_home: NodeRows, destination: Nodes, standbys: NodeRows, overridden: NDArray[np.bool_]
) -> int:
    """Mark the keys that are not where both hashes lead to, whatever the order of their standbys; return how many."""
    count = 0
    for row in range(len(destination)):
        away = destination[row] != key_home[row]
        missing = 0
        for node in standby_home[row]:
            missing += node >= 0
        for node in standbys[row]:
            if node >= 0:
                missing -= 1
                away |= find_standby(standby_home, row, node) < 0
        away |= missing != 0
        overridden[row] = away
        count += away
    return count
