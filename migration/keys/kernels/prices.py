"""Prices of nodes and of table entries: the dual of planning by key, if keys could be divided."""

import numpy as np

from migration.keys.kernels.heaps import heapify, remove_first
from migration.keys.loads import Floats, Nodes
from migration.optional_compiling import compiled


@compiled
def price_at_home(work: float, size: float, price: float, current_price: float) -> float:
    """What a key that its plan moves home costs more elsewhere: back at its entry, or with another one.

    Functions of numbers, not of columns: the compiler then inlines them.
    """
    return min(price, price - size + current_price * work)


@compiled
def price_at_entry(work: float, size: float, price: float, home_price: float) -> float:
    """What a key with an entry costs more where it is not: elsewhere, or at home without an entry."""
    return min(size, size - price + home_price * work)


@compiled
def price_nodes(
    home: Nodes,
    current: Nodes,
    work: Floats,
    size: Floats,
    fixed: Floats,
    limit: float,
    price: float,
    node_prices: Floats,
) -> Floats:
    """The least price of work on every node at which no more keys prefer it than it can carry.

    A key stays on a node while work there costs less than its limit price: what it costs to be elsewhere, per unit of
    work, at the given prices of other nodes and of entries. `fixed` is the other work on every node.
    O(K + k log K) for the k keys that are priced out.
    """
    node_count = len(node_prices)
    loads, starts = fixed.copy(), np.zeros(node_count + 1, np.int64)
    for row in range(len(work)):
        weight = work[row]
        node, back = current[row], home[row]
        if weight == 0:
            continue
        if node == back:
            if size[row] + price > 0:
                loads[node] += weight
                starts[node + 1] += 1
            continue
        if price_at_entry(weight, size[row], price, node_prices[back]) > 0:
            loads[node] += weight
            starts[node + 1] += 1
        if price_at_home(weight, size[row], price, node_prices[node]) > 0:
            loads[back] += weight
            starts[back + 1] += 1
    result = np.zeros(node_count)
    overloaded = loads > limit
    if not overloaded.any():
        return result
    for node in range(node_count):
        if not overloaded[node]:
            starts[node + 1] = 0
    starts = np.cumsum(starts)
    values, rows = np.empty(starts[-1]), np.empty(starts[-1], np.int32)
    # Keys far above the price at hand are not priced out: look at the others first, and at all if these do not suffice.
    for likely in (2.0, np.inf):
        ends, near = starts[:-1].copy(), np.zeros(node_count)
        highest = np.where(node_prices > 0, likely * node_prices, np.inf)
        for row in range(len(work)):
            weight = work[row]
            node, back = current[row], home[row]
            if weight == 0 or not (overloaded[node] or overloaded[back]):
                continue
            if overloaded[node]:
                most = size[row] + price
                if node != back:
                    most = price_at_entry(weight, size[row], price, node_prices[back])
                if 0 < most <= highest[node] * weight:
                    values[ends[node]] = -(most / weight)
                    rows[ends[node]] = row
                    ends[node] += 1
                    near[node] += weight
            if node != back and overloaded[back]:
                most = price_at_home(weight, size[row], price, node_prices[node])
                if 0 < most <= highest[back] * weight:
                    values[ends[back]] = -(most / weight)
                    rows[ends[back]] = row
                    ends[back] += 1
                    near[back] += weight
        if (near >= np.where(overloaded, loads - 0.99 * limit, 0.0)).all():
            break
    for node in range(node_count):
        start, count = starts[node], ends[node] - starts[node]
        heapify(values[start:], rows[start:], count, work)
        while loads[node] > limit and count > 0:
            result[node] = -values[start]
            loads[node] -= work[rows[start]]
            remove_first(values[start:], rows[start:], count, work)
            count -= 1
    result -= result.min()
    return result


@compiled
def value_prices(
    home: Nodes,
    current: Nodes,
    work: Floats,
    size: Floats,
    limit: float,
    most_entries: int,
    price: float,
    node_prices: Floats,
) -> tuple[float, int]:
    """The value of the dual at these prices, and how many keys prefer an entry. O(K).

    Every key chooses what is cheapest: to stay, to go home, or to go to a node where work costs nothing.
    """
    total = 0.0
    entries = 0
    for row in range(len(work)):
        stay = node_prices[current[row]] * work[row]
        leave = size[row] + price
        if home[row] == current[row]:
            if leave < stay:
                entries += 1
                total += leave
            else:
                total += stay
        else:
            back = size[row] + node_prices[home[row]] * work[row]
            other = min(stay + price, leave)
            if other < back:
                entries += 1
                total += other
            else:
                total += back
    return total - price * most_entries - limit * node_prices.sum(), entries


@compiled
def cheapest_parts(current: Nodes, work: Floats, size: Floats, loads: Floats, limit: float) -> float:
    """The least state that leaves overloaded nodes, if keys could be divided and the table had no limit.

    A key counts for at most the excess of its node, because that is all that it can cover. O(K + k log K) for the k
    keys that leave.
    """
    node_count = len(loads)
    starts = np.zeros(node_count + 1, np.int64)
    for row in range(len(work)):
        node = current[row]
        if loads[node] > limit and work[row] > 0:
            starts[node + 1] += 1
    starts = np.cumsum(starts)
    values, rows = np.empty(starts[-1]), np.empty(starts[-1], np.int32)
    ends = starts[:-1].copy()
    for row in range(len(work)):
        node = current[row]
        if loads[node] > limit and work[row] > 0:
            values[ends[node]] = -size[row] / min(work[row], loads[node] - limit)
            rows[ends[node]] = row
            ends[node] += 1
    total = 0.0
    for node in range(node_count):
        start, count = starts[node], ends[node] - starts[node]
        heapify(values[start:], rows[start:], count, work)
        missing = loads[node] - limit
        most = missing
        while missing > 0 and count > 0:
            row = rows[start]
            part = min(work[row], most)
            total -= values[start] * min(part, missing)
            missing -= part
            remove_first(values[start:], rows[start:], count, work)
            count -= 1
    return total
