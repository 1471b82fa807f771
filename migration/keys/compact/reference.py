"""The rebalancing of groups once more, one key at a time in plain Python: what tests compare the compiled loop with."""

import math
from collections import Counter
from collections.abc import Callable

from migration.keys.loads import Floats, Nodes

Result = tuple[list[int], Counter[tuple[int, int]]]


def rebalance_groups(
    work: Floats, size: Floats, node: Nodes, count: list[int], node_count: int, limit: float, beta: float | None
) -> Result | None:
    """Return the keys of each group that were never taken, and how many of a group are now on which node."""
    state = _Groups(work.tolist(), size.tolist(), node.tolist(), list(count), node_count, limit, beta)
    for one in range(node_count):
        while state.loads[one] > limit and state.take(one, lambda _work: True):
            pass
    while state.candidates:
        group = min(state.candidates, key=lambda group: (-state.work[group], group))
        if not state.place(group):
            return None
    return state.remaining, state.placed


class _Groups:
    def __init__(
        self,
        work: list[float],
        size: list[float],
        node: list[int],
        count: list[int],
        node_count: int,
        limit: float,
        beta: float | None,
    ) -> None:
        self.work, self.node, self.remaining, self.limit = work, node, count, limit
        self.rank = [
            one_work if beta is None else _priority(one_work, one_size, beta)
            for one_work, one_size in zip(work, size, strict=True)
        ]
        self.loads = [
            sum(work[group] * count[group] for group in range(len(work)) if node[group] == one)
            for one in range(node_count)
        ]
        self.candidates: Counter[int] = Counter()
        self.placed: Counter[tuple[int, int]] = Counter()

    def take(self, node: int, is_allowed: Callable[[float], bool]) -> bool:
        """Take the next key in the order of ranks from a node; return whether there was one."""
        groups = [
            group
            for group, work in enumerate(self.work)
            if self.node[group] == node and self.remaining[group] and work > 0 and is_allowed(work)
        ]
        if not groups:
            return False
        group = min(groups, key=lambda group: (-self.rank[group], -self.work[group], group))
        self.remaining[group] -= 1
        self.candidates[group] += 1
        self.loads[node] -= self.work[group]
        return True

    def place(self, group: int) -> bool:
        """Put one candidate on the least loaded node that accepts it; return whether there was one."""
        for node in sorted(range(len(self.loads)), key=lambda node: (self.loads[node], node)):
            if self.adjust(self.work[group], node):
                self.candidates[group] -= 1
                self.candidates += Counter()  # drops zeros
                self.placed[group, node] += 1
                self.loads[node] += self.work[group]
                return True
        return False

    def adjust(self, weight: float, node: int) -> bool:
        """Make room on a node by taking lighter keys that were never taken, if those suffice."""
        movable = sum(
            work * self.remaining[group]
            for group, work in enumerate(self.work)
            if self.node[group] == node and work < weight
        )
        if self.loads[node] - movable + weight > self.limit:
            return False
        while self.loads[node] + weight > self.limit:
            self.take(node, lambda work: work < weight)
        return True


def _priority(work: float, size: float, beta: float) -> float:
    if work == 0:
        return 0.0
    return work**beta / size if size else math.inf
