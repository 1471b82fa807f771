"""Cover the excess of overloaded nodes with the cheapest keys, and place these, at a given price of a table entry.

A key leaves its node at the price that `price_to_leave` states, and nodes hold their keys in heaps by ascending price
per unit of work. A heap is consumed from the front and what leaves it is kept behind its end, so that the keys of a
node can be walked more than once in that order: it sorts as many keys as a walk needs.
"""

import numpy as np
from numpy.typing import NDArray

from migration.keys.kernels.heaps import Rows, heapify, push, remove_first
from migration.keys.kernels.prices import price_at_entry, price_at_home
from migration.keys.loads import Floats, Nodes
from migration.optional_compiling import compiled

Flags = NDArray[np.bool_]
Places = NDArray[np.int64]

WORTHWHILE = 0.999  # a walk ends when what it may still save is less than a thousandth of its cover


@compiled
def price_to_leave(
    weight: float,
    size: float,
    node: int,
    home: int,
    current: int,
    price: float,
    home_price: float,
    current_price: float,
) -> float:
    """What it costs in state, table entries and work elsewhere if a key leaves `node`, where the plan has it so far.

    `price` is that of a table entry; the others are those of a unit of work at home and where the key is now.
    """
    if current != node:
        return price_at_home(weight, size, price, current_price)
    if home == node:
        return size + price
    return price_at_entry(weight, size, price, home_price)


@compiled
def move_home(
    home: Nodes,
    current: Nodes,
    work: Floats,
    size: Floats,
    price: float,
    node_prices: Floats,
    destination: Nodes,
    loads: Floats,
) -> None:
    """Send keys home whose entry costs more than to move them, and sum up the loads that result."""
    for row in range(len(work)):
        node = current[row]
        back = home[row]
        if node != back and size[row] - price < (node_prices[node] - node_prices[back]) * work[row]:
            node = back
        destination[row] = node
        loads[node] += work[row]


@compiled
def rank_keys(
    chosen: Flags,
    taken: Flags,
    home: Nodes,
    current: Nodes,
    work: Floats,
    size: Floats,
    price: float,
    node_prices: Floats,
    destination: Nodes,
    starts: Places,
    counts: Places,
    values: Floats,
    rows: Rows,
) -> None:
    """Make the heaps of chosen nodes, without taken keys: that of node d from `starts[d]`, with `counts[d]` keys."""
    for row in range(len(work)):
        node = destination[row]
        if work[row] > 0 and not taken[row] and chosen[node]:
            leaving = price_to_leave(
                work[row], size[row], node, home[row], current[row], price,
                node_prices[home[row]], node_prices[current[row]],
            )  # fmt: skip
            place = starts[node] + counts[node]
            values[place] = -leaving / work[row]
            rows[place] = row
            counts[node] += 1
    for node in range(len(chosen)):
        if chosen[node]:
            start = starts[node]
            heapify(values[start:], rows[start:], counts[node], work)


@compiled
def cover(
    node: int,
    load: float,
    limit: float,
    heaviest: float,
    home: Nodes,
    current: Nodes,
    work: Floats,
    size: Floats,
    price: float,
    node_prices: Floats,
    destination: Nodes,
    values: Floats,
    rows: Rows,
    counts: Places,
    total: int,
    picked: Rows,
) -> tuple[int, float, float]:
    """Pick keys of a node, none above `heaviest`, whose work covers `load - limit`; return count, price, load left.

    Keys are taken by price per work. One that would complete the cover is not taken but remembered if its cover is the
    cheapest so far, and the walk goes on until no later key can complete one that is worthwhile: it costs at least its
    price per work for all that is missing. What a cover does not need is given back, dearest first. The count is -1 if
    these keys do not suffice. `values`, `rows` and `total` are the keys of the node, of which `counts[node]` are left
    in the heap.
    """
    cheapest, last, taken_before_last = np.inf, -1, 0
    taken = 0
    spent = 0.0
    left = load
    place = total
    while place > 0:
        place -= 1
        if place < counts[node]:
            value, row = values[0], rows[0]
            remove_first(values, rows, counts[node], work)
            counts[node] -= 1
            values[place], rows[place] = value, row
        row = rows[place]
        if destination[row] != node or work[row] > heaviest:
            continue
        if spent - values[place] * (left - limit) >= WORTHWHILE * cheapest:
            break
        leaving = price_to_leave(
                work[row], size[row], node, home[row], current[row], price,
                node_prices[home[row]], node_prices[current[row]],
            )  # fmt: skip
        if left - work[row] > limit:
            picked[taken] = row
            taken += 1
            spent += leaving
            left -= work[row]
        elif spent + leaving < cheapest:
            cheapest, last, taken_before_last = spent + leaving, row, taken
    if last < 0:
        return -1, np.inf, load
    taken = taken_before_last + 1
    picked[taken_before_last] = last
    prices = np.empty(taken)
    for index in range(taken):
        row = picked[index]
        load -= work[row]
        prices[index] = price_to_leave(
                work[row], size[row], node, home[row], current[row], price,
                node_prices[home[row]], node_prices[current[row]],
            )  # fmt: skip
    kept = 0
    spent = 0.0
    dearest_first = np.argsort(-prices, kind="mergesort")
    chosen = picked[:taken][dearest_first]
    for index in range(taken):
        row = chosen[index]
        if load + work[row] <= limit:
            load += work[row]
        else:
            picked[kept] = row
            kept += 1
            spent += prices[dearest_first[index]]
    return kept, spent, load


@compiled
def give_back(
    home: Nodes,
    current: Nodes,
    work: Floats,
    size: Floats,
    limit: float,
    price: float,
    destination: Nodes,
    loads: Floats,
) -> None:
    """Leave keys where they are now if there is room after all, unless their entry costs more than the move."""
    for row in range(len(work)):
        node, before = destination[row], current[row]
        if (
            node != before
            and loads[before] + work[row] <= limit
            and (before == home[row] or node != home[row] or size[row] > price)
        ):
            loads[node] -= work[row]
            loads[before] += work[row]
            destination[row] = before


@compiled
def plan_at_price(
    home: Nodes,
    current: Nodes,
    work: Floats,
    size: Floats,
    fixed: Floats,
    limit: float,
    price: float,
    node_prices: Floats,
    destination: Nodes,
) -> int:
    """Fill `destination` with a plan at these prices; return a row that no node accepts, or -1.

    `fixed` is work on every node besides that of these keys: pinned work, and keys that are left out.

    Keys that leave are placed by descending work: at home, else where they were, else on the least loaded node. One
    that fits nowhere goes where the lighter keys that make room for it are cheapest; they are placed after it.
    O(K + taken * (log K + nodes)), and O(K log K) at worst.
    """
    keys, node_count = len(work), len(node_prices)
    loads, starts = fixed.copy(), np.zeros(node_count + 1, np.int64)
    move_home(home, current, work, size, price, node_prices, destination, loads)
    overloaded = loads > limit
    if overloaded.any():
        for row in range(keys):
            starts[destination[row] + 1] += 1
        starts = np.cumsum(starts)
        counts = np.zeros(node_count, np.int64)
        values, rows = np.empty(keys), np.empty(keys, np.int32)
        taken = np.zeros(keys, np.bool_)
        rank_keys(
            overloaded, taken,
            home, current, work, size, price, node_prices, destination, starts, counts, values, rows,
        )  # fmt: skip
        totals = counts.copy()
        picked = np.empty(keys, np.int32)
        queue_work, queue, waiting = np.empty(keys), np.empty(keys, np.int32), 0
        roomiest = limit - loads.min()
        for node in range(node_count):
            if not overloaded[node]:
                continue
            start = starts[node]
            for heaviest in (roomiest, np.inf):
                count, _, load = cover(
                    node, loads[node], limit, heaviest,
                    home, current, work, size, price, node_prices, destination,
                    values[start:], rows[start:], counts, totals[node], picked,
                )  # fmt: skip
                if count >= 0:
                    break
            if count < 0:
                return int(np.argmax(work))
            loads[node] = load
            for row in picked[:count]:
                push(queue_work, queue, waiting, work[row], row, work)
                waiting += 1
                taken[row] = True
                destination[row] = -1 - node
        ranked_all = False
        best_picked = np.empty(keys, np.int32)
        while waiting > 0:
            row = queue[0]
            weight = work[row]
            remove_first(queue_work, queue, waiting, work)
            waiting -= 1
            source = -1 - destination[row]
            target = int(np.argmin(loads))
            if current[row] != source and loads[current[row]] + weight <= limit:
                target = current[row]
            if home[row] != source and loads[home[row]] + weight <= limit:
                target = home[row]
            if loads[target] + weight <= limit:
                destination[row] = target
                loads[target] += weight
                continue
            if not ranked_all:
                ranked_all = True
                before = totals.copy()
                rank_keys(
                    ~overloaded, taken,
                    home, current, work, size, price, node_prices, destination, starts, counts, values, rows,
                )  # fmt: skip
                totals = np.where(overloaded, before, counts)
            cheapest, target, best_count, best_load = np.inf, -1, 0, 0.0
            for node in range(node_count):
                start = starts[node]
                count, spent, load = cover(
                    node, loads[node] + weight, limit, np.nextafter(weight, 0.0),
                    home, current, work, size, price, node_prices, destination,
                    values[start:], rows[start:], counts, totals[node], picked,
                )  # fmt: skip
                if count < 0:
                    continue
                if node != current[row]:
                    spent += size[row]
                if node != home[row]:
                    spent += price
                if spent < cheapest:
                    cheapest, target, best_count, best_load = spent, node, count, load
                    best_picked[:count] = picked[:count]
            if target < 0:
                return int(row)
            destination[row] = target
            loads[target] = best_load
            for other in best_picked[:best_count]:
                push(queue_work, queue, waiting, work[other], other, work)
                waiting += 1
                taken[other] = True
                destination[other] = -1 - target
    give_back(home, current, work, size, limit, price, destination, loads)
    return -1
