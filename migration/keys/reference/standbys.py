"""FTLB and switch-first (paper 002) in plain Python."""

import numpy as np

from migration.keys.problem import KeyProblem, KeyProposal, NotPlaced
from migration.keys.reference.phases import priority


class _State:
    """Where keys and standbys are, and what every node works; sums are made in the order of rows."""

    def __init__(self, problem: KeyProblem) -> None:
        self.problem = problem
        self.limit = problem.limit
        self.share = problem.standby_share
        self.work: list[float] = problem.loads.work.tolist()
        self.home: list[int] = problem.loads.home.tolist()
        self.destination: list[int] = problem.loads.current.tolist()
        self.standbys: list[list[int]] = problem.start.tolist()

    def copy(self) -> "_State":
        other = _State(self.problem)
        other.destination, other.standbys = list(self.destination), [list(row) for row in self.standbys]
        return other

    def standby_loads(self) -> list[float]:
        loads = list(self.problem.pinned)
        for row, nodes in enumerate(self.standbys):
            for node in nodes:
                if node >= 0:
                    loads[node] += self.share * self.work[row]
        return loads

    def loads(self) -> list[float]:
        loads = self.standby_loads()
        for row, node in enumerate(self.destination):
            loads[node] += self.work[row]
        return loads

    def overrides(self) -> list[int]:
        homes = self.problem.standby_homes.tolist()
        return [
            row
            for row, node in enumerate(self.destination)
            if node != self.home[row] or {*self.standbys[row]} - {-1} != {*homes[row]} - {-1}
        ]

    def proposal(self) -> KeyProposal:
        standbys = np.array(self.standbys, np.int32).reshape(self.problem.start.shape)
        return KeyProposal(np.array(self.destination, np.int32), "", standbys=standbys)


def ftlb(problem: KeyProblem, beta: float = 1.5, gamma: float = 1.0) -> KeyProposal:
    """Algorithms 2 to 4: M(k) = S / c^beta * dn^gamma."""
    state = _State(problem)
    _rebalance(state, beta, gamma)
    return state.proposal()


def _rebalance(state: _State, beta: float, gamma: float) -> None:
    state.problem.refuse_pinned_excess()
    _Rebalance(state, beta, gamma).run()
    if max(state.loads()) > state.problem.accepted:
        raise NotPlaced(-1)


class _Rebalance:
    """Running loads, and for each node the keys that were never taken: the stationary ones."""

    def __init__(self, state: _State, beta: float, gamma: float) -> None:
        problem, self.state, self.work, self.limit = state.problem, state, state.work, state.limit
        weights = np.maximum(problem.standby_counts, 1).astype(np.float64) ** gamma
        sizes = (problem.loads.size * weights).tolist()
        self.rank = [
            (-priority(work, size, beta), -work, row)
            for row, (work, size) in enumerate(zip(self.work, sizes, strict=True))
        ]
        self.loads, self.fixed = state.loads(), state.standby_loads()
        self.candidates: set[int] = set()
        self.stationary: list[set[int]] = [set() for _ in problem.nodes]
        for row, node in enumerate(state.destination):
            if self.work[row] > 0:
                self.stationary[node].add(row)
        # Lightest first; those at least as heavy as a candidate can never be exchanged again.
        self.movable = [sorted(rows, key=lambda row: (self.work[row], -row)) for rows in self.stationary]

    def run(self) -> None:
        for node in range(len(self.loads)):
            for row in self._rank_stationary(node):
                if self.loads[node] <= self.limit:
                    break
                self._take(row, node)
        while self.candidates:
            row = min(self.candidates, key=lambda row: (-self.work[row], row))
            self.candidates.remove(row)
            self._place(row)

    def _rank_stationary(self, node: int) -> list[int]:
        return sorted(self.stationary[node], key=self.rank.__getitem__)

    def _take(self, row: int, node: int) -> None:
        self.stationary[node].remove(row)
        self.candidates.add(row)
        self.loads[node] -= self.work[row]

    def _place(self, row: int) -> None:
        """Put a candidate on the least loaded node that accepts it, and switch roles if it has a standby there."""
        state, source = self.state, self.state.destination[row]
        for node in sorted(range(len(self.loads)), key=lambda node: (self.loads[node], node)):
            is_standby = node in state.standbys[row]
            saved = state.share * self.work[row] if is_standby else 0.0
            if is_standby and self.loads[source] + saved > self.limit:
                continue
            if self._accepts(row, node, self.limit + saved):
                break
        else:
            raise NotPlaced(row)
        state.destination[row] = node
        changes = [(node, self.work[row])]
        if is_standby:
            state.standbys[row][state.standbys[row].index(node)] = source
            changes = [(source, saved), (node, self.work[row] - saved)]
        for changed, amount in changes:
            self.loads[changed] += amount
            self.fixed[changed] += amount

    def _accepts(self, row: int, node: int, limit: float) -> bool:
        """Displace keys below the cursor, which is the work of the candidate, until it fits."""
        work, movable = self.work[row], self.movable[node]
        if self.loads[node] + work <= limit:
            return True
        if self.fixed[node] + work > limit:
            return False
        while movable and self.work[movable[-1]] >= work:
            if (heavy := movable.pop()) in self.stationary[node]:
                self.fixed[node] += self.work[heavy]
        if self.fixed[node] + work > limit:
            return False
        for lighter in self._rank_stationary(node):
            if self.loads[node] + work <= limit:
                break
            if self.work[lighter] < work:
                self._take(lighter, node)
        return True


def switch_first(problem: KeyProblem, beta: float = 1.5, gamma: float = 1.0) -> KeyProposal:
    """Switches, then moves; with a part of the overrides sent home where the table is too small."""
    problem.refuse_pinned_excess()
    start = _State(problem)
    trials = _balance(start, beta, gamma, None)
    if not trials or _excess(trials[0]):
        for share in (0.0, 0.25, 0.5, 1.0):
            before = _send_home(start, int(share * len(start.overrides())))
            room = problem.most_entries - len(before.overrides())
            trials += _balance(before, beta, gamma, max(int(0.9 * room), 0))
    if not trials or min(map(_rank, trials)) > (0, 0.0):
        try:
            other = start.copy()
            _rebalance(other, beta, gamma)
            trials.append(other)
        except NotPlaced:
            if not trials:
                raise
    return min(trials, key=_rank).proposal()


def _balance(start: _State, beta: float, gamma: float, most: int | None) -> list[_State]:
    state = start.copy()
    if max(state.loads()) <= state.limit:
        return [state]
    _switch(state, most)
    if max(state.loads()) > state.problem.accepted:
        try:
            _rebalance(state, beta, gamma)
        except NotPlaced:
            return []
    return [state]


def _switch(state: _State, most: int | None) -> None:
    work, limit, loads = state.work, state.limit, state.loads()
    left = len(work) * 20 if most is None else most
    for number in range(20):
        rows = [row for row, node in enumerate(state.destination) if loads[node] > limit and work[row] > 0]
        rows.sort(key=lambda row: (state.home[row] not in state.standbys[row], -work[row], row))
        switched = 0
        for row in rows:
            source, amount = state.destination[row], work[row] - state.share * work[row]
            if switched == left or loads[source] <= limit or amount <= 0:
                continue
            fitting = [
                node
                for node in state.standbys[row]
                if node >= 0
                and (loads[node] + amount <= limit or (number and loads[node] + amount < loads[source] - amount))
            ]
            if fitting:
                node = min(fitting, key=lambda node: loads[node])
                state.destination[row] = node
                state.standbys[row][state.standbys[row].index(node)] = source
                loads[source] -= amount
                loads[node] += amount
                switched += 1
        left -= switched
        if number and not switched:
            break


def _send_home(start: _State, count: int) -> _State:
    state = start.copy()
    for row in sorted(state.overrides(), key=lambda row: (state.work[row], row)):
        if count and state.home[row] in state.standbys[row]:
            state.standbys[row][state.standbys[row].index(state.home[row])] = state.destination[row]
            state.destination[row] = state.home[row]
            count -= 1
    return state


def _excess(state: _State) -> int:
    return max(len(state.overrides()) - state.problem.most_entries, 0)


def _rank(state: _State) -> tuple[int, float]:
    return _excess(state), state.problem.critical_size(np.array(state.destination, np.int32))
