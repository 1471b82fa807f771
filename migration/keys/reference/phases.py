"""The phases that the strategies of paper 000 share: move back, prepare and assign (LLFD with Adjust)."""

import math
from collections.abc import Callable

from migration.keys.problem import KeyProblem, NotPlaced

Rank = Callable[[int], tuple[float, ...]]  # keys are taken by ascending rank


def by_work(problem: KeyProblem) -> Rank:
    """Highest work c(k) first; the first row on a tie."""
    work = problem.loads.work.tolist()
    return lambda row: (-work[row], row)


def by_priority(problem: KeyProblem, beta: float) -> Rank:
    """Largest gamma(k) = c(k)^beta / S(k) first, then highest work, then the first row."""
    work, size = problem.loads.work.tolist(), problem.loads.size.tolist()
    return lambda row: (-priority(work[row], size[row], beta), -work[row], row)


def priority(work: float, size: float, beta: float) -> float:
    """Return c^beta / S: infinite for a key without state, which moves for nothing; 0 for a key without work."""
    if work == 0:
        return 0.0
    if size == 0:
        return math.inf
    if beta == 1.5:
        power = work * math.sqrt(work)
    elif beta == 1:
        power = work
    else:
        try:
            power = math.pow(work, beta)
        except OverflowError:
            power = math.inf
    return power / size


def sum_loads(problem: KeyProblem, destination: list[int]) -> list[float]:
    loads = list(problem.pinned)
    for row, work in enumerate(problem.loads.work.tolist()):
        loads[destination[row]] += work
    return loads


def rebalance(problem: KeyProblem, destination: list[int], rank: Rank) -> list[int]:
    """Phases II and III: take keys from overloaded nodes in the order `rank`, and place them with LLFD."""
    problem.refuse_pinned_excess()
    destination = list(destination)
    state = _State(problem, destination, rank)
    for node in range(problem.node_count):
        for row in state.stationary_by_rank(node):
            if state.loads[node] <= problem.limit:
                break
            state.take(row)
    while state.candidates:
        state.place(state.pop_heaviest())
    return destination


class _State:
    """Running loads, and for each node the keys that were never taken: the stationary ones."""

    def __init__(self, problem: KeyProblem, destination: list[int], rank: Rank) -> None:
        self.limit = problem.limit
        self.work = problem.loads.work.tolist()
        self.rank = rank
        self.destination = destination
        self.loads = sum_loads(problem, destination)
        self.candidates: set[int] = set()
        self.stationary: list[set[int]] = [set() for _ in problem.nodes]
        for row, node in enumerate(destination):
            if self.work[row] > 0:  # a key without work relieves no node
                self.stationary[node].add(row)
        # Work that cannot leave a node for the keys that are still to come: pinned work, placed keys, and stationary
        # ones that are at least as heavy as those. `movable` holds the other stationary keys, lightest first.
        self.fixed = list(problem.pinned)
        self.movable = [sorted(rows, key=lambda row: (self.work[row], -row)) for rows in self.stationary]

    def stationary_by_rank(self, node: int) -> list[int]:
        return sorted(self.stationary[node], key=self.rank)

    def take(self, row: int) -> None:
        """Disassociate a stationary key from its node and make it a candidate."""
        node = self.destination[row]
        self.stationary[node].remove(row)
        self.loads[node] -= self.work[row]
        self.candidates.add(row)

    def pop_heaviest(self) -> int:
        row = min(self.candidates, key=lambda row: (-self.work[row], row))
        self.candidates.remove(row)
        return row

    def place(self, row: int) -> None:
        """Put a candidate on the least loaded node that accepts it."""
        for node in sorted(range(len(self.loads)), key=lambda node: (self.loads[node], node)):
            if self.adjust(row, node):
                self.destination[row] = node
                self.loads[node] += self.work[row]
                self.fixed[node] += self.work[row]
                return
        raise NotPlaced(row)

    def adjust(self, row: int, node: int) -> bool:
        """Whether the node can carry the key, after giving away lighter stationary keys if it has to.

        Candidates come in descending order of work and only lighter keys are exchanged, so a placed key never moves
        again.
        """
        work = self.work[row]
        if self.loads[node] + work <= self.limit:
            return True
        if self.fixed[node] + work > self.limit:
            return False
        movable = self.movable[node]
        while movable and self.work[movable[-1]] >= work:
            if (heavy := movable.pop()) in self.stationary[node]:
                self.fixed[node] += self.work[heavy]
        if self.fixed[node] + work > self.limit:
            return False
        for lighter in self.stationary_by_rank(node):
            if self.loads[node] + work <= self.limit:
                break
            if self.work[lighter] < work:
                self.take(lighter)
        return True
