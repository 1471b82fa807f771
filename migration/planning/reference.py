"""Planning by brute force: every partition, a maximum weight matching. Slow, obvious, and the oracle of the tests.

It shares no code with the planners it checks; the matchings are networkx's and scipy's. When in doubt what a
strategy should return, read this file.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations, pairwise

import networkx as nx
from scipy.optimize import linear_sum_assignment

from migration.model.assignment import Assignment
from migration.model.workload import Workload


def balanced_partitions(
    workload: Workload, nodes: int, tau: float, allow_idle: bool = False
) -> Iterator[tuple[int, ...]]:
    """Every way to cut the tasks into `nodes` non-empty intervals (or fewer, if nodes may idle) within the cap."""
    tasks, work = workload.tasks, workload.work.tolist()
    cap = (1 + tau) * sum(work) / nodes
    for parts in range(1, min(nodes, tasks) + 1) if allow_idle else (nodes,):
        for inner in combinations(range(1, tasks), parts - 1):
            boundaries = (0, *inner, tasks)
            heaviest = max(sum(work[start:stop]) for start, stop in pairwise(boundaries))
            if heaviest <= cap * (1 + 1e-9):
                yield boundaries


def migration_cost(old: Sequence[int], new: Sequence[int], workload: Workload, leavers: Collection[int] = ()) -> float:
    """All state, less the heaviest matching of old intervals (but those of `leavers`) to new ones."""
    state = workload.state.tolist()
    overlaps: nx.Graph[tuple[str, int]] = nx.Graph()
    for i, (old_start, old_stop) in enumerate(pairwise(old)):
        for j, (new_start, new_stop) in enumerate(pairwise(new)):
            overlap = sum(state[max(old_start, new_start) : min(old_stop, new_stop)])
            if overlap > 0 and i not in leavers:
                overlaps.add_edge(("old", i), ("new", j), weight=overlap)
    matching = nx.max_weight_matching(overlaps)
    return float(sum(state) - sum(overlaps.edges[pair]["weight"] for pair in matching))


def cheapest_cost(
    current: Assignment,
    nodes: int,
    workload: Workload,
    tau: float,
    leaving: Collection[str] = (),
    allow_idle: bool = False,
) -> float | None:
    """The optimum of Definition 3.2, or None if no partition is balanced."""
    leavers = {index for index, node in enumerate(current.nodes) if node in leaving}
    costs = (
        migration_cost(current.boundaries, boundaries, workload, leavers)
        for boundaries in balanced_partitions(workload, nodes, tau, allow_idle)
    )
    return min(costs, default=None)


def cheapest_cost_with_copies(
    holders: Sequence[Collection[str]], nodes: int, workload: Workload, tau: float, allow_idle: bool = False
) -> float | None:
    """The least state on the critical path, or None if no partition is balanced.

    `holders[j]` are the nodes that may remain and hold task j, as owner or standby. Nodes that hold nothing may join.
    """
    state = workload.state.tolist()
    names = sorted({name for held in holders for name in held})
    costs = []
    for boundaries in balanced_partitions(workload, nodes, tau, allow_idle):
        kept = [
            [sum(state[task] for task in range(start, stop) if name in holders[task]) for name in names]
            for start, stop in pairwise(boundaries)
        ]
        if names:
            rows, columns = linear_sum_assignment(kept, maximize=True)
            costs.append(sum(state) - sum(kept[row][column] for row, column in zip(rows, columns, strict=True)))
        else:
            costs.append(sum(state))
    return min(costs, default=None)


def cheapest_sequence_cost(
    current: Assignment, node_counts: Sequence[int], workload: Workload, taus: Sequence[float]
) -> float | None:
    """The optimum of section 4.1 by trying every sequence of partitions, or None if a step has none."""
    best: dict[tuple[int, ...], float] = {current.boundaries: 0.0}
    for nodes, tau in zip(node_counts, taus, strict=True):
        best = {
            new: min((spent + migration_cost(old, new, workload) for old, spent in best.items()), default=math.inf)
            for new in balanced_partitions(workload, nodes, tau)
        }
    optimum = min(best.values(), default=math.inf)
    return optimum if optimum < math.inf else None
