"""The keys of every node in a lazy order, highest value first.

A plan takes a handful of keys from nodes that hold 10^5 or more, so nothing is sorted or heaped in full. One pass over
all keys finds a chunk of the best of every node; most rows cost one comparison. Only a node whose chunk is used up gets
a heap of all its keys.

Orders are those of `heaps`: by highest value, then highest work, then lowest row.
"""

from typing import NamedTuple

import numpy as np

from migration.keys.kernels.heaps import (
    Flags,
    Places,
    Rows,
    comes_before,
    group_rows,
    priority,
    rank_rows,
    remove_first,
)
from migration.keys.loads import Floats, Nodes
from migration.optional_compiling import compiled

CHUNK = 128  # rows; a plan seldom takes more from a node


class Keys(NamedTuple):
    """The columns that orders read. A row that was `taken` from its node is in no order of it any more."""

    work: Floats
    size: Floats
    destination: Nodes
    taken: Flags


class Groups(NamedTuple):
    """The rows of every node: those of node d are `rows[start[d]:end[d]]`. Empty until a chunk is used up."""

    rows: Rows
    start: Places
    end: Places
    is_filled: Flags


class Order(NamedTuple):
    """Rows by highest work if `beta` is negative, else by highest `priority`.

    What remains of node d is in `values` and `rows`, from `start[d]`: its chunk from `next[d]` to `counts[d]`, or a
    heap of `counts[d]` rows. A chunk that is not full has all rows of its node.
    """

    beta: float
    values: Floats
    rows: Rows
    start: Places
    next: Places
    counts: Places
    is_heap: Flags


@compiled
def make_order(beta: float, start: Places) -> Order:
    """An order with nothing filled. Arrays with a place for every key cost nothing where they are not touched."""
    keys, nodes = start[-1], len(start) - 1
    return Order(
        beta,
        np.empty(keys),
        np.empty(keys, np.int32),
        start,
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.bool_),
    )


@compiled
def make_groups(start: Places) -> Groups:
    return Groups(np.empty(start[-1], np.int32), start, start[:-1].copy(), np.zeros(1, np.bool_))


@compiled
def fill_chunks(order: Order, chosen: Flags, keys: Keys) -> None:
    """Fill the chunks of all chosen nodes in one pass over all keys.

    Keys without work are left out, because moving them relieves no node.
    """
    work, size, destination, taken = keys
    beta, values, rows, starts, counts = order.beta, order.values, order.rows, order.start, order.counts
    ends = starts[:-1].copy()
    worst = np.zeros(len(chosen))  # the value that a row needs to be among the best so far
    for row in range(len(work)):
        node = destination[row]
        if chosen[node] and work[row] > 0 and not taken[row]:
            value = work[row] if beta < 0 else priority(work[row], size[row], beta)
            if value >= worst[node]:
                start, end = starts[node], ends[node]
                values[end], rows[end] = value, row
                ends[node] += 1
                if end + 1 - start == 2 * CHUNK:
                    keep_best(values[start:], rows[start:], 2 * CHUNK, work)
                    ends[node] = start + CHUNK
                    worst[node] = values[start + CHUNK - 1]
    for node in range(len(chosen)):
        if chosen[node]:
            start, count = starts[node], ends[node] - starts[node]
            if count > CHUNK:
                keep_best(values[start:], rows[start:], count, work)
                count = CHUNK
            sort_chunk(values[start:], rows[start:], count, work)
            counts[node] = count


@compiled
def has_next(order: Order, node: int, groups: Groups, keys: Keys) -> bool:
    """Whether the node has a row that is not used up; makes the heap if the chunk is."""
    if order.is_heap[node]:
        return bool(order.counts[node] > 0)
    if order.next[node] < order.counts[node]:
        return True
    if order.counts[node] < CHUNK:
        return False
    make_heap(order, node, groups, keys)
    return bool(order.counts[node] > 0)


@compiled
def peek(order: Order, node: int) -> int:
    """The next row of a node that has one."""
    return int(order.rows[order.start[node] + order.next[node]])


@compiled
def skip(order: Order, node: int, keys: Keys) -> None:
    """Use up the next row of a node."""
    if not order.is_heap[node]:
        order.next[node] += 1
        return
    start, count = order.start[node], order.counts[node]
    remove_first(order.values[start:], order.rows[start:], count, keys.work)
    order.counts[node] -= 1


@compiled
def make_heap(order: Order, node: int, groups: Groups, keys: Keys) -> None:
    """Make a heap of the rows that come after the chunk."""
    if not groups.is_filled[0]:
        everywhere = np.ones(len(groups.end), np.bool_)
        group_rows(keys.destination, everywhere, groups.end, keys.work, keys.taken, groups.rows)
        groups.is_filled[0] = True
    start, end = groups.start[node], groups.end[node]
    last = start + order.counts[node] - 1
    last_value, last_row = order.values[last], order.rows[last]
    order.is_heap[node] = True
    order.next[node] = 0
    order.counts[node] = rank_rows(
        groups.rows[start:end],
        keys.taken,
        keys.work,
        keys.size,
        order.beta < 0,
        order.beta,
        order.values[start:],
        order.rows[start:],
    )
    while order.counts[node] > 0 and not comes_before(
        last_value, last_row, order.values[start], order.rows[start], keys.work
    ):
        skip(order, node, keys)


@compiled
def keep_best(values: Floats, rows: Rows, count: int, work: Floats) -> None:
    """Move the best of `count` > CHUNK rows to the front, the worst of them last. Quickselect: O(count) on average."""
    low, high = 0, count - 1
    while low < high:
        value, row = values[(low + high) // 2], rows[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while comes_before(values[left], rows[left], value, row, work):
                left += 1
            while comes_before(value, row, values[right], rows[right], work):
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                rows[left], rows[right] = rows[right], rows[left]
                left += 1
                right -= 1
        if right >= CHUNK - 1:
            high = right
        elif left <= CHUNK - 1:
            low = left
        else:
            break


@compiled
def sort_chunk(values: Floats, rows: Rows, count: int, work: Floats) -> None:
    """Sort a chunk, best first, by insertion: a chunk is small."""
    for place in range(1, count):
        value, row = values[place], rows[place]
        while place > 0 and comes_before(value, row, values[place - 1], rows[place - 1], work):
            values[place], rows[place] = values[place - 1], rows[place - 1]
            place -= 1
        values[place], rows[place] = value, row
