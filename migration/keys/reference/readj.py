"""Readj in plain Python."""

from bisect import bisect_left

import numpy as np

from migration.keys.problem import KeyProblem, KeyProposal, NotPlaced


def readj(problem: KeyProblem, sigma: float | None = None) -> KeyProposal:
    """The assignment at one sigma, or the best over all halves of the heaviest key's share."""
    if sigma is not None:
        return KeyProposal(np.array(_rebalance(problem, sigma), np.int32), "")
    loads = problem.loads
    if problem.is_balanced and loads.entries <= problem.most_entries:
        return KeyProposal(loads.current, "")
    heaviest = max(loads.work.tolist()) / problem.mean if problem.total_work else 1.0
    plans: list[list[int]] = []
    failure = None
    for halvings in range(14):
        try:
            plans.append(_rebalance(problem, heaviest / 2**halvings))
        except NotPlaced as cause:
            failure = cause
    if not plans:
        raise failure or NotPlaced(0)

    def rank(plan: list[int]) -> tuple[int, float]:
        entries = int((np.array(plan) != loads.home).sum())
        return max(entries - problem.most_entries, 0), float(loads.size[np.array(plan) != loads.current].sum())

    return KeyProposal(np.array(min(plans, key=rank), np.int32), "")


def _rebalance(problem: KeyProblem, sigma: float) -> list[int]:
    problem.refuse_pinned_excess()
    work, size, home = problem.loads.work.tolist(), problem.loads.size.tolist(), problem.loads.home.tolist()
    plan, limit, least = problem.loads.current.tolist(), problem.limit, sigma * problem.mean
    tracked = [row for row in range(len(work)) if work[row] >= least and work[row] > 0]
    plan = [home[row] if work[row] < least else node for row, node in enumerate(plan)]
    loads = list(problem.pinned)
    for row, node in enumerate(plan):
        loads[node] += work[row]
    for row in sorted(range(len(work)), key=lambda row: -work[row]):
        if plan[row] != home[row] and loads[home[row]] + work[row] <= limit:
            loads[plan[row]] -= work[row]
            loads[home[row]] += work[row]
            plan[row] = home[row]
    while max(loads) > limit:
        source = loads.index(max(loads))
        best: tuple[float, float, int, int | None, int] | None = None
        for node in range(len(loads)):
            for row, other in _exchanges(tracked, work, plan, source, node, (loads[source] - loads[node]) / 2):
                difference = work[row] if other is None else work[row] - work[other]
                after = max(loads[source] - difference, loads[node] + difference)
                moved = size[row] if other is None else size[row] + size[other]
                if difference > 0 and after < loads[source] and (best is None or (after, moved) < best[:2]):
                    best = after, moved, row, other, node
        if best is None:
            on_source = [row for row in range(len(work)) if plan[row] == source]
            raise NotPlaced(max(on_source, key=lambda row: work[row]))
        _, _, row, other, node = best
        plan[row] = node
        loads[source] -= work[row]
        loads[node] += work[row]
        if other is not None:
            plan[other] = source
            loads[node] -= work[other]
            loads[source] += work[other]
    return plan


def _exchanges(
    tracked: list[int], work: list[float], plan: list[int], source: int, node: int, half: float
) -> list[tuple[int, int | None]]:
    """Tracked keys of `source`, alone and with the two keys of `node` that come nearest to their work less `half`."""
    if node == source:
        return []
    there = sorted((work[row], row) for row in tracked if plan[row] == node)
    result: list[tuple[int, int | None]] = []
    for weight, row in sorted((work[row], row) for row in tracked if plan[row] == source):
        near = bisect_left([there_work for there_work, _ in there], weight - half)
        result.append((row, None))
        result += [(row, there[index][1]) for index in (near, near - 1) if 0 <= index < len(there)]
    return result
