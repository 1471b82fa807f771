"""A lower bound on the state that any plan has to move, and the prices that prove it."""

import math
from typing import NamedTuple

import numpy as np

from migration.keys.kernels.columns import Rows
from migration.keys.kernels.prices import cheapest_parts, price_nodes, value_prices
from migration.keys.loads import Floats, Nodes
from migration.keys.problem import KeyProblem

NEAR = 1.1  # times the bound: a plan that costs no more is good enough
_STEP = 4.0  # from one price of an entry to the next until the best one is enclosed
_WORTH_AN_ENTRY = 0.05
_LEAST_SHARE = 4.0**-6  # of the mean state of a key: an entry of that price is as good as free
_HALVINGS = 8  # the price is then known to 4 ** (1 / 2 ** 8), half a percent


class Prices(NamedTuple):
    """Prices in units of state: of a table entry, and of a unit of work on every node; the bound that they prove."""

    entry: float
    nodes: Floats
    bound: float


def quick_bound(problem: KeyProblem) -> float:
    """A bound on the cost of every plan that keeps to the cap, whatever the size of its table.

    Every overloaded node d gives away keys of at least the work L(d) - cap, at least cost by ascending
    S(k) / min(c(k), L(d) - cap), the last one in part. O(K + k log K) for the k keys that leave.
    """
    loads = problem.loads
    return float(cheapest_parts(loads.current, loads.work, loads.size, problem.node_loads, problem.limit))


def lower_bound(problem: KeyProblem) -> float:
    """A bound on the cost of every plan that keeps to the cap and to `most_entries`.

    The larger of `quick_bound` and of the Lagrangian dual, the largest known value over prices lambda of an entry and
    mu(d) of work on node d of

        sum over k of min over d of (S(k) [d != current(k)] + lambda [d != home(k)] + mu(d) c(k))
            - lambda * most_entries - sum over d of (cap - pinned(d)) mu(d).

    Some twenty times as much work as `quick_bound` where the table's limit matters.
    """
    quick = quick_bound(problem)
    return max(quick, search_prices(problem, find_core(problem)).bound) if is_table_short(problem) else quick


class Core(NamedTuple):
    """The keys that may move while entries have a price: their rows and columns, and all other work per node."""

    rows: Rows | slice
    home: Nodes
    current: Nodes
    work: Floats
    size: Floats
    fixed: Floats


def find_core(problem: KeyProblem) -> Core:
    """Keys with an entry, and keys that are worth one.

    Entries have to cover the excess that nodes have now, and the one that they would have with all keys at home. If all
    `most_entries` went to keys of less than a twentieth of the average excess per entry, they would cover less than
    a twentieth of it, so lighter keys stay at home.
    """
    loads = problem.loads
    excess = max(
        float(np.maximum(node_loads - problem.limit, 0.0).sum())
        for node_loads in (problem.node_loads, problem.loads_of(loads.home))
    )
    least = _WORTH_AN_ENTRY * excess / problem.most_entries
    rows = np.flatnonzero((loads.home != loads.current) | (loads.work >= least))
    columns = loads.home[rows], loads.current[rows], loads.work[rows], loads.size[rows]
    fixed = np.maximum(problem.node_loads - np.bincount(columns[1], columns[2], problem.node_count), 0.0)
    return Core(rows, *columns, fixed)


def is_table_short(problem: KeyProblem) -> bool:
    """Whether the table's limit can make plans dearer: not if all keys could have an entry."""
    return problem.most_entries < problem.loads.keys


def search_prices(problem: KeyProblem, core: Core) -> Prices:
    """The best known prices: of an entry by bisection, where as many keys want one as there are, of nodes for each.

    Prices of nodes depend on one another only through keys that are not at home, so each trial improves those of the
    one before.
    """
    loads = problem.loads
    columns = (core.home, core.current, core.work, core.size)
    best = Prices(0.0, np.zeros(problem.node_count), 0.0)
    nodes = best.nodes

    def has_too_many(entry: float) -> bool:
        nonlocal best, nodes
        nodes = price_nodes(*columns, core.fixed, problem.limit, entry, nodes)
        value, entries = value_prices(*columns, problem.limit, problem.most_entries, entry, nodes)
        bound = value + float((core.fixed * nodes).sum())
        if bound > best.bound or not best.nodes.any():
            best = Prices(entry, nodes, bound)
        return entries > problem.most_entries

    def prove() -> Prices:
        # What bounds the plans of the core is no bound for plans of all keys; these prices have a bound for them, too.
        everything = (loads.home, loads.current, loads.work, loads.size)
        value, _ = value_prices(*everything, problem.limit, problem.most_entries, best.entry, best.nodes)
        bound = value + float((problem.pinned_loads * best.nodes).sum())
        return best._replace(bound=max(bound, 0.0))

    largest = loads.total_size
    if not has_too_many(0.0) or not largest:
        return prove()
    entry = largest / loads.keys
    least = entry * _LEAST_SHARE
    if has_too_many(entry):
        while entry < largest and has_too_many(entry * _STEP):
            entry *= _STEP
        low, high = entry, entry * _STEP
    else:
        while entry > least and not has_too_many(entry / _STEP):
            entry /= _STEP
        low, high = entry / _STEP, entry
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        if has_too_many(middle):
            low = middle
        else:
            high = middle
    return prove()
