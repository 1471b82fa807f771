"""The step that a node is taking, as its heartbeats and the driver see it while the working thread is busy."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from elastic.routing.slots import task_of_slot
from elastic.runtime.protocol import Adopt, Position, StepEnded, StepStarted, Work

_REMEMBERED = 100  # steps: the longest of them is what is usual


class RunningStep(NamedTuple):
    """A step under way; `slots` narrows down to one unit as soon as that is known."""

    position: Position
    slots: tuple[int, ...]
    since: float
    isolated: bool = False


class Steps:
    """Published by the working thread as one value, read by any thread.

    While the node is careful (see `Adopt`), `tell` brings every step to the driver before the node takes it, and
    returns when the driver has heard it: a step that kills the process is known then.
    """

    def __init__(
        self,
        names: tuple[str, str],
        tell: Callable[[str, dict[str, Any]], None],
        report: Callable[[str, dict[str, Any]], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._names = names
        self._tell = tell
        self._report = report
        self._clock = clock
        self._running: RunningStep | None = None
        self._usual: deque[float] = deque(maxlen=_REMEMBERED)
        self._careful = False
        self._suspects: frozenset[Position] = frozenset()

    def expect(self, message: Adopt) -> None:
        """Be careful from now on if the adoption says so."""
        self._careful = self._careful or message.careful
        self._suspects |= frozenset(message.suspects)

    def relax(self) -> None:
        """All steps that an adoption named are taken."""
        self._careful, self._suspects = False, frozenset()

    @contextmanager
    def taking(self, work: Work) -> Iterator[None]:
        position = work.step.position
        unit_by_unit = position in self._suspects
        self._running = RunningStep(position, work.slots, self._clock())
        if self._careful and not unit_by_unit:
            self._announce(work.slots)
        try:
            yield
        finally:
            running, self._running = self._running, None
            self._usual.append(self._clock() - running.since)
            if self._careful:
                ended = running.slots if unit_by_unit else work.slots
                self._report("step_ended", StepEnded(*self._names, position, ended).to_json())

    def before_unit(self, slot: int) -> None:
        """The working thread calls it before each unit of the step."""
        assert self._running is not None  # noqa: S101 - for the type checker; within `taking`
        self._running = self._running._replace(slots=(slot,))
        if self._careful and self._running.position in self._suspects:
            self._announce((slot,))

    @contextmanager
    def isolating(self) -> Iterator[None]:
        """A child process takes the step for the unit: it has its own time limit."""
        assert self._running is not None  # noqa: S101 - as above
        self._running = self._running._replace(isolated=True)
        try:
            yield
        finally:
            self._running = self._running._replace(isolated=False, since=self._clock())

    def overdue(self, limit_seconds: float) -> tuple[StepStarted, float] | None:
        """The step, and how long it has been running, if that is longer than the limit; 0 is no limit."""
        running = self._running
        if running is None or not limit_seconds or running.isolated:
            return None
        seconds = self._clock() - running.since
        return (
            (StepStarted(*self._names, running.position, running.slots), seconds) if seconds > limit_seconds else None
        )

    def to_json(self) -> dict[str, Any] | None:
        """For heartbeats; None between two steps. `usual_seconds` is the longest of the latest steps."""
        running = self._running
        if running is None:
            return None
        return {
            "batch": running.position.batch,
            "round": running.position.round,
            "tasks": sorted({task_of_slot(slot) for slot in running.slots}),
            "seconds": self._clock() - running.since,
            "usual_seconds": max(self._usual, default=0.0),
        }

    def _announce(self, slots: tuple[int, ...]) -> None:
        assert self._running is not None  # noqa: S101 - as above
        self._tell("step_started", StepStarted(*self._names, self._running.position, slots).to_json())
