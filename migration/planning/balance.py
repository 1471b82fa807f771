"""The load balancing requirement (paper 003, Definition 3.1): caps, windows, and the error for infeasible problems."""

import numpy as np

from migration.errors import Infeasible
from migration.kernels import Ints, lightest_starts
from migration.model.plan import RELATIVE_EPSILON
from migration.model.workload import Floats, Workload


def cap(workload: Workload, nodes: int, tau: float) -> float:
    """The most work one of `nodes` nodes may carry: (1 + tau) * W / n'."""
    return (1 + tau) * workload.total_work / nodes


def earliest_starts(workload: Workload, cap: float) -> Ints:
    """For every x the smallest a for which [a, x) weighs at most the cap; a = x if even task x-1 alone is too heavy."""
    return lightest_starts(workload.work_prefix, cap * (1 + RELATIVE_EPSILON))


def smallest_cap(workload: Workload, nodes: int) -> float:
    """The least possible heaviest interval when at most `nodes` contiguous intervals cover all tasks.

    Bisection between two bounds that always hold (the mean, or the mean plus the heaviest task), then the
    heaviest interval really used. O(nodes * log m) a step, about 60 steps.
    """
    work = workload.work_prefix
    mean, heaviest = workload.total_work / nodes, float(workload.work.max())
    low, high = max(mean, heaviest), mean + heaviest
    while low < (middle := (low + high) / 2) < high:
        if _fill_greedily(work, nodes, middle) is None:
            low = middle
        else:
            high = middle
    candidates = (_fill_greedily(work, nodes, cap) for cap in (low, high, high * (1 + RELATIVE_EPSILON)))
    return next(fitting for fitting in candidates if fitting is not None)


def _fill_greedily(work: Floats, nodes: int, cap: float) -> float | None:
    """Fill node after node up to the cap: the heaviest interval, or None if tasks are left over."""
    position, heaviest = 0, 0.0
    for _ in range(nodes):
        reached = int(np.searchsorted(work, work[position] + cap, side="right")) - 1
        heaviest = max(heaviest, float(work[reached] - work[position]))
        position = reached
        if position == len(work) - 1:
            return heaviest
    return None


def _is_feasible(workload: Workload, nodes: int, tau: float) -> bool:
    allowed = cap(workload, nodes, tau) * (1 + RELATIVE_EPSILON)
    return _fill_greedily(workload.work_prefix, nodes, allowed) is not None


def infeasible_error(workload: Workload, nodes: int, tau: float) -> Infeasible:
    """Build the error with the cause, the smallest feasible tau, and the most nodes that are feasible at this tau."""
    asked = cap(workload, nodes, tau)
    heaviest = int(np.argmax(workload.work))
    alone = float(workload.work[heaviest]) > asked * (1 + RELATIVE_EPSILON)
    fewer = (count for count in range(nodes - 1, 0, -1) if _is_feasible(workload, count, tau))
    return Infeasible(
        tasks=workload.tasks,
        nodes=nodes,
        tau=tau,
        cap=asked,
        heaviest_task=heaviest if alone else None,
        heaviest_work=float(workload.work[heaviest]),
        smallest_tau=max(smallest_cap(workload, nodes) * nodes / workload.total_work - 1, 0.0),
        most_nodes=next(fewer, 1),
    )
