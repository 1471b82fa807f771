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
        loads = problem.loads
        self.problem = problem
        self.everything = Core(slice(None), loads.home, loads.current, loads.work, loads.size, problem.pinned_loads)
        self.unplaced = -1
        self.best: tuple[Core, Nodes] | None = None  # where its keys go; all others stay
        self._rank: tuple[int, float] = (0, 0.0)

    @property
    def has_fitting(self) -> bool:
        return self.best is not None and not self._rank[0]

    @property
    def destination(self) -> Nodes:
        """The node of every key in the best plan; raise `NotPlaced` if there is none."""
        if self.best is None:
            raise NotPlaced(self.unplaced)
        core, moved = self.best
        destination = self.problem.loads.current.copy()
        destination[core.rows] = moved
        return destination

    def is_within(self, cost: float) -> bool:
        """Whether there is a plan that fits and moves at most that much state."""
        return self.has_fitting and self._rank[1] <= cost

    def fits(self, price: float, node_prices: Floats, core: Core) -> bool:
        """Plan at these prices for the keys of the core; return whether the plan's table fits."""
        moved = np.empty(len(core.home), np.int32)
        columns = (core.home, core.current, core.work, core.size, core.fixed)
        row = int(plan_at_price(*columns, self.problem.limit, price, node_prices, moved))
        if row < 0:
            return self.add(moved, core)
        self.unplaced = row if isinstance(core.rows, slice) else int(core.rows[row])
        return False

    def add(self, moved: Nodes, core: Core) -> bool:
        """Compare a plan with the best one. Keys outside the core are at home, and stay there."""
        excess = int(np.count_nonzero(moved != core.home)) - self.problem.most_entries
        rank = max(excess, 0), float(core.size[moved != core.current].sum())
        if self.best is None or rank < self._rank:
            self.best, self._rank = (core, moved), rank
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
    problem.refuse_pinned_excess()
    trials, bound = _Trials(problem), quick_bound(problem)
    reason = "the cheapest keys that cover the excess of overloaded nodes moved"
    if not trials.fits(0.0, np.zeros(problem.node_count), trials.everything):
        core = find_core(problem)
        dual = search_prices(problem, core)
        price, bound = _search_price(trials, core, dual), max(bound, dual.bound)
        reason = f"the cheapest keys moved, with a table entry priced as {price:.3g} of state"
    if not trials.is_within(NEAR * bound) and _compare_with_others(trials):
        reason = "no plan at a price of table entries was cheaper than the one of Mixed, LLFD or MinTable"
    return KeyProposal(trials.destination, reason, bound)


def _compare_with_others(trials: _Trials) -> bool:
    """Add the plans of other strategies, and return whether one of them is the best."""
    before = trials.best
    others: list[Callable[[KeyProblem], KeyProposal]] = [mixed] if trials.has_fitting else [mixed, llfd, min_table]
    for strategy in others:
        try:
            trials.add(strategy(trials.problem).destination, trials.everything)
        except NotPlaced:
            continue
    return trials.best is not before


def _search_price(trials: _Trials, core: Core, dual: Prices) -> float:
    """Try prices of an entry around that of the dual until the least one at which the table fits is enclosed."""
    problem = trials.problem
    columns = (core.home, core.current, core.work, core.size, core.fixed, problem.limit)

    def fits(price: float) -> bool:
        return trials.fits(price, price_nodes(*columns, price, dual.nodes), core)

    price, step = dual.entry, _FIRST_STEP
    if not len(core.home):
        return price
    if not price:
        price = max(problem.loads.total_size / problem.loads.keys, 1e-300)
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
