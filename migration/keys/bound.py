"""A lower bound on the state that any plan has to move."""

import numpy as np

from migration.keys.problem import KeyProblem


def lower_bound(problem: KeyProblem) -> float:
    """The least state that must leave overloaded nodes, if keys could be divided.

    A node d with work L(d) above the cap gives away keys of at least the work L(d) - cap; the cheapest way is to take
    keys by ascending S(k) / c(k) and a fraction of the last one. The sum over nodes bounds the cost of every plan.
    O(K + k log k) for the k keys of overloaded nodes.
    """
    loads, bound = problem.loads, 0.0
    for node in np.flatnonzero(problem.node_loads > problem.limit).tolist():
        rows = np.flatnonzero((loads.current == node) & (loads.work > 0))
        work, size = loads.work[rows], loads.size[rows]
        order = np.argsort(size / work, kind="stable")
        covered = np.cumsum(work[order])
        excess = float(problem.node_loads[node]) - problem.limit
        last = min(int(np.searchsorted(covered, excess)), len(rows) - 1)
        taken = order[:last]
        rest = excess - float(work[taken].sum())
        bound += float(size[taken].sum()) + max(rest, 0.0) * float(size[order[last]] / work[order[last]])
    return bound
