"""Work and state size of every task over a sliding window: measured, not guessed."""

import time
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from elastic.control.cluster import TaskCounters
from migration import Workload

WINDOW_SECONDS = 60.0  # long enough to even out single batches, short enough to follow an hour's change
_LEAST_STATE_BYTES = 1.0  # a task that was never measured still costs something to move


class _Increase(NamedTuple):
    at: float
    seconds: dict[int, float]


class Monitor:
    """Turns counters that only grow, and begin anew when a task moves, into a `Workload`. One thread observes."""

    def __init__(self, tasks: int, window_seconds: float = WINDOW_SECONDS) -> None:
        self._tasks = tasks
        self._window = window_seconds
        self._last: dict[int, TaskCounters] = {}
        self._increases: deque[_Increase] = deque()

    def observe(self, counters: Mapping[int, TaskCounters], now: float | None = None) -> None:
        at = time.monotonic() if now is None else now
        spent = {task: _increase(self._last.get(task), found) for task, found in counters.items()}
        self._last.update(counters)
        self._increases.append(_Increase(at, spent))
        while self._increases and self._increases[0].at < at - self._window:
            self._increases.popleft()

    def workload(self) -> Workload:
        """Work in processing seconds of the window; equal for all tasks while nothing was measured."""
        work = [0.0] * self._tasks
        for increase in self._increases:
            for task, seconds in increase.seconds.items():
                work[task] += seconds
        if not any(work):
            work = [1.0] * self._tasks
        state = [max(_LEAST_STATE_BYTES, float(self._size(task))) for task in range(self._tasks)]
        return Workload(work, state)

    def _size(self, task: int) -> int:
        return self._last[task].state_bytes if task in self._last else 0


def _increase(before: TaskCounters | None, now: TaskCounters) -> float:
    """A smaller counter is a new one: the task has moved."""
    if before is None or now.seconds < before.seconds:
        return now.seconds
    return now.seconds - before.seconds
