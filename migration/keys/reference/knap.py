"""Knap in plain Python, with lists that are sorted in full where the compiled loops keep heaps."""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from migration.keys.bound import NEAR, quick_bound
from migration.keys.problem import KeyProblem, KeyProposal, NotPlaced
from migration.keys.reference.mixed import mixed
from migration.keys.reference.one_shot import llfd, min_table
from migration.keys.reference.prices import Columns, find_core, find_prices, price_nodes, price_to_be_elsewhere


def knap(problem: KeyProblem) -> KeyProposal:
    """Plan with entries for nothing; if the table does not fit, at the least price of an entry at which it does."""
    everything, rows = Columns.of(problem), find_core(problem)
    core = everything.choose(rows, problem.node_loads.tolist())
    if problem.is_balanced and everything.count_entries(everything.current) <= problem.most_entries:
        return KeyProposal(problem.loads.current, "")
    problem.refuse_pinned_excess()
    plans: list[list[int]] = []
    unplaced = -1

    def fits(price: float, node_prices: list[float], rows: list[int], columns: Columns) -> bool:
        nonlocal unplaced
        plan = problem.loads.current.tolist()
        try:
            for row, node in zip(rows, plan_at_price(columns, price, node_prices), strict=True):
                plan[row] = node
        except NotPlaced as cause:
            unplaced = rows[cause.row]
            return False
        plans.append(plan)
        return everything.count_entries(plan) <= problem.most_entries

    def rank(plan: list[int]) -> tuple[int, float]:
        moved = np.array(plan) != problem.loads.current
        return max(everything.count_entries(plan) - problem.most_entries, 0), float(problem.loads.size[moved].sum())

    bound = quick_bound(problem)
    if not fits(0.0, [0.0] * everything.node_count, list(range(problem.loads.keys)), everything):
        dual = find_prices(problem)
        bound = max(bound, dual.bound)
        start = dual.entry or max(everything.total_size / problem.loads.keys, 1e-300)
        if rows:
            _search_price(start, lambda price: fits(price, price_nodes(core, price, dual.nodes), rows, core))
    plans += _ask_others(problem, *min(map(rank, plans), default=(1, 0.0)), bound)
    if not plans:
        raise NotPlaced(unplaced)
    return KeyProposal(np.array(min(plans, key=rank), np.int32), "", bound)


def _ask_others(problem: KeyProblem, excess: int, cost: float, bound: float) -> list[list[int]]:
    """The plans of other strategies, if the best one so far does not fit or is far above the bound."""
    others = [mixed] if excess or cost > NEAR * bound else []
    plans = []
    for strategy in [*others, llfd, min_table] if excess else others:
        with suppress(NotPlaced):
            plans.append(strategy(problem).destination.tolist())
    return plans


def _search_price(price: float, fits: Callable[[float], bool]) -> None:
    """From the price of the dual up, or down, by growing steps until the answer changes; then bisect."""
    step = 1.02
    up = not fits(price)
    for _ in range(11 if up else 3):
        following = price * step if up else price / step
        if fits(following) == up:
            break
        price, step = following, step * step
    else:
        return
    low, high = min(price, following), max(price, following)
    for _ in range(4):
        middle = (low + high) / 2
        if fits(middle):
            high = middle
        else:
            low = middle


@dataclass
class _Cover:
    """Keys that leave a node so that it keeps within the limit, what that costs, and the load that is left."""

    rows: list[int]
    spent: float
    load: float


class _Planner:
    """The state of one plan: where every key is so far, None while it waits, and the load of every node."""

    def __init__(self, columns: Columns, price: float, node_prices: list[float]) -> None:
        self.columns, self.price, self.node_prices = columns, price, node_prices
        self.place: list[int | None] = []
        self.loads = list(columns.fixed)
        for row, (node, home) in enumerate(zip(columns.current, columns.home, strict=True)):
            difference = (node_prices[node] - node_prices[home]) * columns.work[row]
            if node != home and columns.size[row] - price < difference:
                node = home
            self.place.append(node)
            self.loads[node] += columns.work[row]
        self.source = [node for node in self.place if node is not None]  # a key leaves the node it has at the start
        self.ranked: list[list[int]] = [[] for _ in range(columns.node_count)]
        for row in sorted(range(len(columns.work)), key=self._rank):
            if columns.work[row] > 0:
                self.ranked[self.source[row]].append(row)

    def _price_to_leave(self, row: int) -> float:
        return price_to_be_elsewhere(self.columns, row, self.source[row], self.price, self.node_prices)

    def _rank(self, row: int) -> tuple[float, float, int]:
        work = self.columns.work[row]
        return (self._price_to_leave(row) / work if work > 0 else math.inf, -work, row)

    def cover(self, node: int, load: float, heaviest: float) -> _Cover | None:
        """Take by price per work; every key that completes the cover is the end of a candidate, the cheapest wins."""
        columns, limit = self.columns, self.columns.limit
        taken: list[int] = []
        best: tuple[float, list[int]] | None = None
        spent, left = 0.0, load
        for row in self.ranked[node]:
            work = columns.work[row]
            if self.place[row] != node or work > heaviest:
                continue
            leaving = self._price_to_leave(row)
            if spent + leaving / work * (left - limit) >= 0.999 * (best[0] if best else math.inf):
                break
            if left - work > limit:
                taken.append(row)
                spent += leaving
                left -= work
            elif best is None or spent + leaving < best[0]:
                best = spent + leaving, [*taken, row]
        if best is None:
            return None
        return self._give_back_excess(best[1], load)

    def _give_back_excess(self, rows: list[int], load: float) -> _Cover:
        for row in rows:
            load -= self.columns.work[row]
        kept, spent = [], 0.0
        for row in sorted(rows, key=lambda row: -self._price_to_leave(row)):
            if load + self.columns.work[row] <= self.columns.limit:
                load += self.columns.work[row]
            else:
                kept.append(row)
                spent += self._price_to_leave(row)
        return _Cover(kept, spent, load)

    def take(self, node: int, cover: _Cover) -> list[int]:
        self.loads[node] = cover.load
        for row in cover.rows:
            self.place[row] = None
        return cover.rows

    def find_room(self, row: int) -> int | None:
        """Home, else where the key is now, else the least loaded node; None if it fits nowhere."""
        columns = self.columns
        wishes = [node for node in (columns.home[row], columns.current[row]) if node != self.source[row]]
        for node in (*wishes, self.loads.index(min(self.loads))):
            if self.loads[node] + columns.work[row] <= columns.limit:
                return node
        return None

    def exchange(self, row: int) -> list[int]:
        """Place the key where lighter keys make room at the least price; return these keys."""
        columns, options = self.columns, []
        for node in range(columns.node_count):
            lighter = math.nextafter(columns.work[row], 0.0)
            cover = self.cover(node, self.loads[node] + columns.work[row], lighter)
            if cover is not None:
                if node != columns.current[row]:
                    cover.spent += columns.size[row]
                if node != columns.home[row]:
                    cover.spent += self.price
                options.append((cover.spent, node, cover))
        if not options:
            raise NotPlaced(row)
        _, node, cover = min(options, key=lambda option: option[:2])
        self.place[row] = node
        return self.take(node, cover)

    def give_back(self) -> list[int]:
        """Let moved keys stay where they are now if they fit there, unless their entry costs more."""
        columns, plan = self.columns, [node for node in self.place if node is not None]
        for row, before in enumerate(columns.current):
            work, node, home = columns.work[row], plan[row], columns.home[row]
            fits = node != before and self.loads[before] + work <= columns.limit
            if fits and (before == home or node != home or columns.size[row] > self.price):
                self.loads[node] -= work
                self.loads[before] += work
                plan[row] = before
        return plan


def plan_at_price(columns: Columns, price: float, node_prices: list[float]) -> list[int]:
    """Send cheap entries home, cover the excess of every node, place keys by descending work, give back."""
    planner = _Planner(columns, price, node_prices)
    waiting: list[int] = []
    roomiest = columns.limit - min(planner.loads)
    for node, load in enumerate(planner.loads):
        if load > columns.limit:
            cover = planner.cover(node, load, roomiest) or planner.cover(node, load, math.inf)
            if cover is None:
                raise NotPlaced(columns.work.index(max(columns.work)))
            waiting += planner.take(node, cover)
    while waiting:
        row = min(waiting, key=lambda row: (-columns.work[row], row))
        waiting.remove(row)
        room = planner.find_room(row)
        if room is None:
            waiting += planner.exchange(row)
        else:
            planner.place[row] = room
            planner.loads[room] += columns.work[row]
    return planner.give_back()
