"""The cheapest plan by trying every assignment of keys to nodes. For a handful of keys; the oracle of the tests."""

from itertools import product

from migration.keys.problem import KeyProblem


def cheapest_cost(problem: KeyProblem) -> float | None:
    """The least state that a plan under the cap with at most `most_entries` entries moves; None if there is none."""
    loads = problem.loads
    home, current = loads.home.tolist(), loads.current.tolist()
    work, size = loads.work.tolist(), loads.size.tolist()
    best: float | None = None
    for plan in product(range(problem.node_count), repeat=loads.keys):
        if sum(node != at for node, at in zip(plan, home, strict=True)) > problem.most_entries:
            continue
        cost = sum(amount for node, at, amount in zip(plan, current, size, strict=True) if node != at)
        if best is not None and cost >= best:
            continue
        node_loads = [0.0] * problem.node_count
        for node, amount in zip(plan, work, strict=True):
            node_loads[node] += amount
        if max(node_loads) <= problem.limit:
            best = cost
    return best
