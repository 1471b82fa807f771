"""The dual of planning by key in plain Python: prices of nodes and of table entries."""

import math
from dataclasses import dataclass
from typing import Self

from migration.keys.problem import KeyProblem


@dataclass(frozen=True)
class Columns:
    """The columns of a problem as lists."""

    home: list[int]
    current: list[int]
    work: list[float]
    size: list[float]
    node_count: int
    limit: float
    most_entries: int
    total_size: float

    @classmethod
    def of(cls, problem: KeyProblem) -> Self:
        loads = problem.loads
        return cls(
            loads.home.tolist(),
            loads.current.tolist(),
            loads.work.tolist(),
            loads.size.tolist(),
            problem.node_count,
            problem.limit,
            problem.most_entries,
            loads.total_size,
        )

    def count_entries(self, plan: list[int]) -> int:
        return sum(node != home for node, home in zip(plan, self.home, strict=True))


@dataclass(frozen=True)
class Prices:
    entry: float
    nodes: list[float]
    bound: float


def price_to_be_elsewhere(columns: Columns, row: int, node: int, price: float, node_prices: list[float]) -> float:
    """What a key on `node`, its home or where it is now, costs more in the cheapest other place, work here for free."""
    work, size = columns.work[row], columns.size[row]
    home, current = columns.home[row], columns.current[row]
    if current != node:  # at home by plan; it can stay where its entry leads, or get a new one
        return min(price, price - size + node_prices[current] * work)
    if home == node:
        return size + price
    return min(size, size - price + node_prices[home] * work)


def price_nodes(columns: Columns, price: float, node_prices: list[float]) -> list[float]:
    """For every node the least price at which no more keys prefer it than it can carry, if other prices stand."""
    result = []
    for node in range(columns.node_count):
        wanting = []
        load = 0.0
        for row, work in enumerate(columns.work):
            if node in (columns.home[row], columns.current[row]) and work > 0:
                most = price_to_be_elsewhere(columns, row, node, price, node_prices) / work
                if most > 0:
                    wanting.append((most, -work, row))
                    load += work
        reached = 0.0
        for most, minus_work, _ in sorted(wanting):
            if load <= columns.limit:
                break
            reached = most
            load += minus_work
        result.append(reached)
    least = min(result)
    return [reached - least for reached in result]


def value_prices(columns: Columns, price: float, node_prices: list[float]) -> tuple[float, int]:
    """The value of the dual, and how many keys prefer an entry."""
    total, entries = 0.0, 0
    for row, work in enumerate(columns.work):
        home, current, size = columns.home[row], columns.current[row], columns.size[row]
        if home == current:
            without, with_entry = node_prices[home] * work, size + price
        else:
            without = size + node_prices[home] * work
            with_entry = min(node_prices[current] * work + price, size + price)
        total += min(without, with_entry)
        entries += with_entry < without
    carried = 0.0
    for node_price in node_prices:
        carried += node_price
    return total - price * columns.most_entries - columns.limit * carried, entries


def find_prices(problem: KeyProblem) -> Prices:
    """Try prices of an entry four times apart until one leaves a short table and the next does not, then bisect."""
    columns = Columns.of(problem)
    best = Prices(0.0, [0.0] * columns.node_count, 0.0)
    nodes = best.nodes

    def has_too_many(entry: float) -> bool:
        nonlocal best, nodes
        nodes = price_nodes(columns, entry, nodes)
        bound, entries = value_prices(columns, entry, nodes)
        if bound > best.bound or not any(best.nodes):
            best = Prices(entry, nodes, bound)
        return entries > columns.most_entries

    largest = columns.total_size
    if not has_too_many(0.0) or not largest:
        return best
    entry = largest / len(columns.work)
    if has_too_many(entry):
        while entry < largest and has_too_many(entry * 4):
            entry *= 4
        low, high = entry, entry * 4
    else:
        while entry > largest * 1e-12 and not has_too_many(entry / 4):
            entry /= 4
        low, high = entry / 4, entry
    for _ in range(8):
        middle = math.sqrt(low * high)
        if has_too_many(middle):
            low = middle
        else:
            high = middle
    return best
