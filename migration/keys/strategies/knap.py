"""Knap: the cheapest keys that cover the excess of every overloaded node, at the price of a table entry."""

from collections.abc import Callable

import numpy as np

from migration.keys.bound import NEAR, Core, Prices, find_core, quick_bound, search_prices
from migration.keys.kernels.knap import plan_at_price
from migration.keys.kernels.prices import price_nodes
from migration.keys.loads import Floats, Nodes
from migration.keys.problem import KeyProblem, KeyProposal, NotPlaced
from migration.keys.strategies.llfd import llfd
from migration.keys.strategies.min_table import min_table
from migration.keys.strategies.mixed import mixed

_FIRST_STEP = 1.02  # factor between two prices of an entry; it is squared until the best price is enclosed
_STEPS = 11  # the last factor is above 10^8
_STEPS_DOWN = 3  # a lower price saves little where that of the dual will do
_HALVINGS = 4


class _Trials:
    """The best plan so far: the cheapest whose table fits, else the one with the fewest entries."""

    def __init__(self, problem: KeyProblem) -> None:
        self.problem = problem
        self.destination: Nodes | None = None
        self.unplaced = -1
        self._rank: tuple[int, float] = (0, 0.0)

    @property
    def has_fitting(self) -> bool:
        return self.destination is not None and not self._rank[0]

    def is_within(self, cost: float) -> bool:
        """Whether there is a plan that fits and moves at most that much state."""
        return self.has_fitting and self._rank[1] <= cost

    def fits(self, price: float, node_prices: Floats, core: Core | None = None) -> bool:
        """Plan at these prices, for the keys of the core or for all; return whether the plan's table fits."""
        loads, limit = self.problem.loads, self.problem.limit
        if core is None:
            columns = (loads.home, loads.current, loads.work, loads.size, np.zeros(len(node_prices)))
            destination = np.empty(loads.keys, np.int32)
            row = int(plan_at_price(*columns, limit, price, node_prices, destination))
        else:
            columns = (core.home, core.current, core.work, core.size, core.fixed)
            moved = np.empty(len(core.rows), np.int32)
            row = int(plan_at_price(*columns, limit, price, node_prices, moved))
            row = int(core.rows[row]) if row >= 0 else row
            destination = loads.current.copy()
            destination[core.rows] = moved
        if row < 0:
            return self.add(destination)
        self.unplaced = row
        return False

    def add(self, destination: Nodes) -> bool:
        loads = self.problem.loads
        excess = int(np.count_nonzero(destination != loads.home)) - self.problem.most_entries
        rank = max(excess, 0), float(loads.size[destination != loads.current].sum())
        if self.destination is None or rank < self._rank:
            self.destination, self._rank = destination, rank
        return excess <= 0


def knap(problem: KeyProblem) -> KeyProposal:
    """Take from overloaded nodes the cheapest keys that cover their excess, by (S(k) + lambda [k is at home]) / c(k).

    lambda is the price of a table entry: 0 if the table fits, else the least one at which it does. At that price
    entries also go home whose state is smaller; a node's price per unit of work, from the dual in `bound`, tells
    whether their home can bear it. Keys are placed at home first, then on the least loaded node, and where one fits
    nowhere lighter keys make room for it, as in LLFD. A plan that is far above the bound, or whose table does not fit,
    is compared with those of Mixed, LLFD and MinTable.
    """
    loads = problem.loads
    if problem.is_balanced and loads.entries <= problem.most_entries:
        return KeyProposal(loads.current, "already balanced: nothing moves")
    trials, bound = _Trials(problem), quick_bound(problem)
    reason = "the cheapest keys that cover the excess of overloaded nodes moved"
    if not trials.fits(0.0, np.zeros(problem.node_count)):
        dual = search_prices(problem)
        price, bound = _search_price(problem, trials, dual), max(bound, dual.bound)
        reason = f"the cheapest keys moved, with a table entry priced as {price:.3g} of state"
    if not trials.is_within(NEAR * bound) and _compare_with_others(trials):
        reason = "no plan at a price of table entries was cheaper than the one of Mixed, LLFD or MinTable"
    if trials.destination is None:
        raise NotPlaced(trials.unplaced)
    return KeyProposal(trials.destination, reason, bound)


def _compare_with_others(trials: _Trials) -> bool:
    """Add the plans of other strategies, and return whether one of them is the best."""
    before = trials.destination
    others: list[Callable[[KeyProblem], KeyProposal]] = [mixed] if trials.has_fitting else [mixed, llfd, min_table]
    for strategy in others:
        try:
            trials.add(strategy(trials.problem).destination)
        except NotPlaced:
            continue
    return trials.destination is not before


def _search_price(problem: KeyProblem, trials: _Trials, dual: Prices) -> float:
    """Try prices of an entry around that of the dual until the least one at which the table fits is enclosed."""
    loads, core = problem.loads, find_core(problem)
    columns = (core.home, core.current, core.work, core.size, core.fixed, problem.limit)

    def fits(price: float) -> bool:
        return trials.fits(price, price_nodes(*columns, price, dual.nodes), core)

    price, step = dual.entry, _FIRST_STEP
    if not len(core.rows):
        return price
    if not price:
        price = max(loads.total_size / loads.keys, 1e-300)
    up = not fits(price)
    for _ in range(_STEPS if up else _STEPS_DOWN):
        following = price * step if up else price / step
        if fits(following) == up:
            break
        price, step = following, step * step
    else:
        return price
    low, high = (price, following) if up else (following, price)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if fits(middle):
            high = middle
        else:
            low = middle
    return high
