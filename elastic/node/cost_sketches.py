"""Execution times of rows of shuffled stages on this node, by cost key."""

from collections.abc import Callable, Sequence

from elastic import threads
from elastic.core.stage_costs import SHAPE, StageCosts
from elastic.operators.calls import CostTimes
from elastic.operators.stage_runner import StageRunner
from elastic.routing.shuffle import ExecutionSketch, pool

_LEAST_ROWS = 1_024  # of a window: an idle stream does not forget what it knew


class CostSketches:
    """Execution-time sketches of the running window and the one before, so that costs may change.

    Only the working thread calls it. A measured step costs microseconds, and a report that changed 0.3 ms.
    """

    def __init__(
        self,
        runners: Sequence[StageRunner],
        window_seconds: float,
        clock: Callable[[], float] = threads.monotonic,
    ) -> None:
        self._windows = {runner.stage: _Windows(window_seconds, clock) for runner in runners if runner.is_measured}
        self.report: tuple[StageCosts, ...] = ()

    def add(self, stage: int, times: CostTimes) -> None:
        self._windows[stage].add(times)

    def measure(self) -> None:
        """Bring the report up to date."""
        if any(windows.has_changed for windows in self._windows.values()):
            self.report = tuple(StageCosts.of(stage, windows.pool()) for stage, windows in self._windows.items())


class _Windows:
    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._began = clock()
        self._before, self._running = ExecutionSketch(SHAPE), ExecutionSketch(SHAPE)
        self.has_changed = False

    def add(self, times: CostTimes) -> None:
        now = self._clock()
        if now - self._began >= self._seconds and self._running.rows >= _LEAST_ROWS:
            self._before, self._running, self._began = self._running, ExecutionSketch(SHAPE), now
        self._running.add_groups(*times)
        self.has_changed = True

    def pool(self) -> ExecutionSketch:
        self.has_changed = False
        return pool([self._before, self._running])
