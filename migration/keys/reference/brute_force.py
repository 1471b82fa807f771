"""The cheapest plan by trying every assignment of keys to nodes. For a handful of keys; the oracle of the tests."""

from collections.abc import Collection
from itertools import product

from migration.keys.problem import KeyProblem


def cheapest_cost(problem: KeyProblem) -> float | None:
    """The least state that a plan under the cap with at most `most_entries` entries moves; None if there is none."""
    found = cheapest_plan(problem)
    return None if found is None else found[0]


def cheapest_plan(problem: KeyProblem, unmovable: Collection[int] = ()) -> tuple[float, tuple[int, ...]] | None:
    """The cost and the nodes of the first of all cheapest plans; keys in the rows `unmovable` stay where they are."""
    loads = problem.loads
    home, current = loads.home.tolist(), loads.current.tolist()
    work, size = loads.work.tolist(), loads.size.tolist()
    best: tuple[float, tuple[int, ...]] | None = None
    choices = [(node,) if row in unmovable else range(problem.node_count) for row, node in enumerate(current)]
    for plan in product(*choices):
        if sum(node != at for node, at in zip(plan, home, strict=True)) > problem.most_entries:
            continue
        cost = sum(amount for node, at, amount in zip(plan, current, size, strict=True) if node != at)
        if best is not None and cost >= best[0]:
            continue
        node_loads = list(problem.pinned)
        for node, amount in zip(plan, work, strict=True):
            node_loads[node] += amount
        if max(node_loads) <= problem.limit:
            best = cost, plan
    return best
