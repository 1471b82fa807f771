"""The step that a node is taking, as its heartbeats and the driver see it while the working thread is busy."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from elastic import threads
from elastic.core.ids import UnitId
from elastic.core.messages import InstallUnits, NodeReport, StepEnded, StepOverdue, StepStarted
from elastic.core.statistics import RunningStep
from elastic.core.steps import Position
from elastic.core.unit_host import ReadyStep

_REMEMBERED_STEPS = 100  # the longest of them is what is usual


class _Running(NamedTuple):
    """A step under way; `units` narrows down to one unit as soon as that is known."""

    position: Position
    units: tuple[UnitId, ...]
    cause: str
    since: float
    standby: bool
    isolated: bool = False


class StepMonitor:
    """Publishes the running step as one value, set by the working thread and read by any thread.

    While the node is careful (see `InstallUnits`), it reports every step before it takes it: `report_now` returns when
    the driver has acknowledged the report, so the driver knows of a step that kills the process.
    """

    def __init__(
        self,
        node: str,
        incarnation: str,
        *,
        report_now: Callable[[NodeReport], None],
        report: Callable[[NodeReport], None],
        clock: Callable[[], float] = threads.monotonic,
    ) -> None:
        self._node = node
        self._incarnation = incarnation
        self._report_now = report_now
        self._report = report
        self._clock = clock
        self._running: _Running | None = None
        self._latest_seconds: deque[float] = deque(maxlen=_REMEMBERED_STEPS)
        self._careful = False
        self._suspects: frozenset[Position] = frozenset()

    def begin_replay(self, message: InstallUnits) -> None:
        """Be careful from now on if the command says so."""
        self._careful = self._careful or message.careful
        self._suspects |= frozenset(message.suspects)

    def end_replay(self) -> None:
        """Stop being careful: the node has taken all steps that an `InstallUnits` named."""
        self._careful, self._suspects = False, frozenset()

    @contextmanager
    def watch_step(self, ready: ReadyStep) -> Iterator[None]:
        """Publish the step while the block runs."""
        position = ready.step.position
        unit_by_unit = position in self._suspects
        self._running = _Running(position, ready.units, ready.cause, self._clock(), ready.standby)
        is_careful = self._careful and not ready.standby  # a standby's step has been taken elsewhere
        if is_careful and not unit_by_unit:
            self._announce(ready.units)
        try:
            yield
        finally:
            running, self._running = self._running, None
            self._latest_seconds.append(self._clock() - running.since)
            if is_careful:
                ended = running.units if unit_by_unit else ready.units
                self._report(StepEnded(self._node, self._incarnation, position, ended, cause=ready.cause))

    def watch_unit(self, unit: UnitId) -> None:
        """Narrow the step down to one unit; the working thread calls it before each unit."""
        assert self._running is not None  # noqa: S101 - for the type checker; within `watch_step`
        self._running = self._running._replace(units=(unit,))
        if self._careful and not self._running.standby and self._running.position in self._suspects:
            self._announce((unit,))

    @contextmanager
    def watch_isolated(self) -> Iterator[None]:
        """Suspend the time limit while a child process, which has its own, takes the step for a unit."""
        assert self._running is not None  # noqa: S101 - as above
        self._running = self._running._replace(isolated=True)
        try:
            yield
        finally:
            self._running = self._running._replace(isolated=False, since=self._clock())

    def find_overdue(self, limit_seconds: float) -> StepOverdue | None:
        """Return the report of a step that has been running for longer than the limit; 0 is no limit."""
        running = self._running
        if running is None or not limit_seconds or running.isolated:
            return None
        seconds = self._clock() - running.since
        if seconds <= limit_seconds:
            return None
        return StepOverdue(self._node, self._incarnation, running.position, running.units, seconds, cause=running.cause)

    def running(self) -> RunningStep | None:
        """Return the step for a heartbeat; None between two steps."""
        running = self._running
        if running is None:
            return None
        usual_seconds = max(self._latest_seconds, default=0.0)
        return RunningStep(running.position, running.units, self._clock() - running.since, usual_seconds)

    def _announce(self, units: tuple[UnitId, ...]) -> None:
        assert self._running is not None  # noqa: S101 - as above
        position, cause = self._running.position, self._running.cause
        self._report_now(StepStarted(self._node, self._incarnation, position, units, cause=cause))
