"""The dual of planning by key in plain Python: prices of nodes and of table entries."""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from migration.keys.problem import KeyProblem


@dataclass(frozen=True)
class Columns:
    """The columns of a problem as lists."""

    home: list[int]
    current: list[int]
    work: list[float]
    size: list[float]
    fixed: list[float]  # work per node besides that of these keys: pinned work, and keys that are left out
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
            list(problem.pinned),
            problem.node_count,
            problem.limit,
            problem.most_entries,
            loads.total_size,
        )

    def choose(self, rows: list[int], node_loads: list[float]) -> "Columns":
        """These rows alone; all other work is fixed where it is."""
        chosen = [0.0] * self.node_count
        for row in rows:
            chosen[self.current[row]] += self.work[row]
        return replace(
            self,
            home=[self.home[row] for row in rows],
            current=[self.current[row] for row in rows],
            work=[self.work[row] for row in rows],
            size=[self.size[row] for row in rows],
            fixed=[max(load - mine, 0.0) for load, mine in zip(node_loads, chosen, strict=True)],
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


def find_core(problem: KeyProblem) -> list[int]:
    """Rows of keys with an entry, or with a twentieth of the average excess per entry, now or with all keys at home."""
    loads = problem.loads
    node_loads = problem.node_loads, problem.loads_of(loads.home)
    least = 0.05 * max(float(np.maximum(each - problem.limit, 0.0).sum()) for each in node_loads) / problem.most_entries
    rows = zip(loads.home.tolist(), loads.current.tolist(), loads.work.tolist(), strict=True)
    return [row for row, (home, current, work) in enumerate(rows) if home != current or work >= least]


def price_nodes(columns: Columns, price: float, node_prices: list[float]) -> list[float]:
    """For every node the least price at which no more keys prefer it than it can carry, if other prices stand."""
    result = []
    for node in range(columns.node_count):
        wanting = []
        load = columns.fixed[node]
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
    everything = Columns.of(problem)
    columns = everything.choose(find_core(problem), problem.node_loads.tolist())
    best = Prices(0.0, [0.0] * columns.node_count, 0.0)
    nodes = best.nodes

    def has_too_many(entry: float) -> bool:
        nonlocal best, nodes
        nodes = price_nodes(columns, entry, nodes)
        value, entries = value_prices(columns, entry, nodes)
        bound = value + float((np.array(columns.fixed) * np.array(nodes)).sum())
        if bound > best.bound or not any(best.nodes):
            best = Prices(entry, nodes, bound)
        return entries > columns.most_entries

    def prove() -> Prices:
        value, _ = value_prices(everything, best.entry, best.nodes)
        bound = value + float((np.array(everything.fixed) * np.array(best.nodes)).sum())
        return replace(best, bound=max(bound, 0.0))

    largest = columns.total_size
    if not has_too_many(0.0) or not largest:
        return prove()
    entry = largest / problem.loads.keys
    least = entry * 4.0**-6
    if has_too_many(entry):
        while entry < largest and has_too_many(entry * 4):
            entry *= 4
        low, high = entry, entry * 4
    else:
        while entry > least and not has_too_many(entry / 4):
            entry /= 4
        low, high = entry / 4, entry
    for _ in range(8):
        middle = math.sqrt(low * high)
        if has_too_many(middle):
            low = middle
        else:
            high = middle
    return prove()
