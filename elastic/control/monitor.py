"""Work and state size of every task, and load of every node, over a sliding window: measured, not guessed."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from elastic import threads
from elastic.control.cluster import Cluster, TaskCounters, Vitals
from elastic.control.load import Load, Sample
from migration import Workload

WINDOW_SECONDS = 60.0  # long enough to even out single batches, short enough to follow an hour's change
OBSERVE_SECONDS = 1.0  # two heartbeats of a node: more often there would be nothing new to see
# Below this share of one core, over the window, the work of tasks is noise: a single batch decides what weighs most.
NEGLIGIBLE_SHARE = 0.01
_LEAST_STATE_BYTES = 1.0  # a task that was never measured still costs something to move


class Measured(NamedTuple):
    """A workload to plan with, and a note that says how it differs from what was measured; empty if it does not."""

    workload: Workload
    note: str = ""


class _Increase(NamedTuple):
    at: float
    seconds: dict[int, float]


class Monitor:
    """Turns counters that only grow, and begin anew when a task moves, into a `Workload` and a `Load`.

    Safe to use from many threads. An observation costs O(tasks), and is kept for the window.
    """

    def __init__(
        self, tasks: int, window_seconds: float = WINDOW_SECONDS, clock: Callable[[], float] = threads.monotonic
    ) -> None:
        self._tasks = tasks
        self._window = window_seconds
        self._clock = clock
        self._last: dict[int, TaskCounters] = {}
        self._increases: deque[_Increase] = deque()
        self._samples: deque[Sample] = deque()
        self._lock = threads.RLock()

    def poll(self, cluster: Cluster) -> None:
        """Observe a cluster now. One step under the lock: older counters recorded later would look like new ones."""
        with self._lock:
            self.observe(cluster.counters(), vitals=cluster.vitals())

    def observe(
        self, counters: Mapping[int, TaskCounters], now: float | None = None, vitals: Vitals | None = None
    ) -> None:
        with self._lock:
            at = self._clock() if now is None else now
            spent = {task: _increase(self._last.get(task), found) for task, found in counters.items()}
            self._last.update(counters)
            self._increases.append(_Increase(at, spent))
            if vitals is not None:
                self._samples.append(Sample(at, vitals))
            _forget_before(at - self._window, self._increases)
            _forget_before(at - self._window, self._samples)

    def workload(self) -> Workload:
        """Work in processing seconds of the window; equal for all tasks while what was measured is negligible."""
        return self.measure().workload

    def measure(self) -> Measured:
        """Return the workload of the window, with equal work and a note if all tasks worked too little to compare."""
        with self._lock:
            work = [0.0] * self._tasks
            for increase in self._increases:
                for task, seconds in increase.seconds.items():
                    work[task] += seconds
            state = [max(_LEAST_STATE_BYTES, float(self._size(task))) for task in range(self._tasks)]
        total = sum(work)
        if total >= NEGLIGIBLE_SHARE * self._window:
            return Measured(Workload(work, state))
        note = f"equal work assumed: all tasks together worked {total:.2g} s in the last {self._window:g} s"
        return Measured(Workload([1.0] * self._tasks, state), note)

    def load(self, seconds: float = WINDOW_SECONDS) -> Load:
        """Over the latest `seconds`, at most the window."""
        with self._lock:
            since = self._clock() - seconds
            return Load.from_samples([sample for sample in self._samples if sample.at >= since])

    def _size(self, task: int) -> int:
        return self._last[task].state_bytes if task in self._last else 0


def _forget_before(oldest: float, kept: deque[_Increase] | deque[Sample]) -> None:
    while kept and kept[0].at < oldest:
        kept.popleft()


def _increase(before: TaskCounters | None, now: TaskCounters) -> float:
    """A counter of another incarnation, or a smaller one, is a new one: the task has moved, or its node was lost."""
    if before is None or now.incarnation != before.incarnation or now.seconds < before.seconds:
        return now.seconds
    return now.seconds - before.seconds
