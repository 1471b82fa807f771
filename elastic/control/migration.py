"""A migration under way, as whoever asked for it sees it."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from elastic.control.cluster import NodeStep
from elastic.errors import MigrationFailed
from migration import Plan
from migration.live import MigrationRun


class MigrationProgress(NamedTuple):
    """How far a migration is.

    `seconds_left` is an estimate from the moves so far, None before the first and during a pause. States
    took `stored_bytes` as objects; `direct_bytes` of them went straight from node to node.
    """

    phase: str
    tasks_done: int
    tasks: int
    bytes_done: float
    bytes: float
    stored_bytes: int
    direct_bytes: int
    seconds: float
    seconds_left: float | None
    waiting_for: tuple[str, ...] = ()  # which nodes, to do what
    overdue: bool = False  # whether one of them takes a step far longer than usual


class Waiting(NamedTuple):
    """A node that a migration waits for; `step` is what it does instead, if that is known."""

    node: str
    action: str
    tasks: tuple[int, ...]
    step: NodeStep | None

    @property
    def is_overdue(self) -> bool:
        return self.step is not None and self.step.overdue

    def __str__(self) -> str:
        tasks = f"task{'' if len(self.tasks) == 1 else 's'} {', '.join(map(str, self.tasks))}"
        busy = "" if self.step is None else f"; it has been taking {self.step.text}"
        return f"{self.node} to {self.action} {tasks}{busy}"


class Migration:
    """The handle of one migration. Any thread may use it."""

    def __init__(
        self,
        plan: Plan,
        run: MigrationRun,
        mode: str,
        transfer: str = "store",
        steps: Callable[[], Mapping[str, NodeStep]] = dict,
    ) -> None:
        self.plan = plan
        self._steps = steps
        self._told: set[str] = set()
        self.mode = mode
        self.transfer = transfer
        self._phase = "planned"
        self.error: BaseException | None = None
        self._run = run
        self._began = time.monotonic()
        self._moving_since: float | None = None
        self._paused_since: float | None = None
        self._paused_seconds = 0.0  # in earlier pauses
        self._ended: float | None = None
        self._over = threading.Event()
        self._resumed = threading.Event()

    @property
    def phase(self) -> str:
        return self._phase

    @phase.setter
    def phase(self, phase: str) -> None:
        now = time.monotonic()
        if phase == "moving" and self._moving_since is None:
            self._moving_since = now
        if phase == "paused":
            self._paused_since = self._paused_since or now
        elif self._paused_since is not None:
            self._paused_seconds += now - self._paused_since
            self._paused_since = None
        self._phase = phase

    @property
    def run(self) -> MigrationRun:
        return self._run

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Until it is over; False if it is not in time. Raises `MigrationFailed` if it failed."""
        over = self._over.wait(seconds)
        if self.error is not None:
            raise MigrationFailed(str(self.error)) from self.error
        return over

    def progress(self) -> MigrationProgress:
        progress = self._run.progress()
        now = self._ended or time.monotonic()
        left = None
        if progress.tasks_done and self._paused_since is None:
            # Nodes have started by then: that takes long, and only once.
            moving = now - (self._moving_since or self._began) - self._paused_seconds
            left = moving * (progress.tasks - progress.tasks_done) / progress.tasks_done
        return MigrationProgress(
            self.phase,
            progress.tasks_done,
            progress.tasks,
            progress.size_done,
            progress.size,
            progress.stored_bytes,
            progress.direct_bytes,
            now - self._began,
            0.0 if self.is_over else left,
            tuple(map(str, waiting := self.waiting_for())),
            any(one.is_overdue for one in waiting),
        )

    def waiting_for(self) -> list[Waiting]:
        """The nodes that have to act before the mini-migration under way can end."""
        awaited = () if self.is_over else self._run.waiting_for
        steps = self._steps() if awaited else {}
        return [Waiting(*one, steps.get(one.node)) for one in awaited]

    def tell_overdue(self) -> list[Waiting]:
        """The nodes that keep it waiting for too long; each is written into the story once."""
        overdue = [one for one in self.waiting_for() if one.is_overdue]
        for one in overdue:
            if one.node not in self._told:
                self._told.add(one.node)
                self._run.story.append(f"waits for {one}")
        return overdue

    def __repr__(self) -> str:
        progress = self._run.progress()
        return (
            f"Migration({len(self.plan.current.nodes)} -> {len(self.plan.target.nodes)} nodes, {self.phase}, "
            f"{progress.tasks_done} of {progress.tasks} tasks, {self.plan.strategy}, {self.mode})"
        )

    def pause(self) -> None:
        """Stop after the mini-migration under way."""
        self._resumed.clear()
        self._run.pause()

    def resume(self) -> None:
        """Go on; a pause that has not taken effect yet does not. Of a pause and a resume, the later one counts."""
        self._run.unpause()
        self._resumed.set()

    def cancel(self) -> None:
        """Leave out what has not begun; what has is brought to its end, and counts.

        If that waits for a node whose step is overdue, the node's process is ended and another one takes its place.
        """
        self._run.cancel()
        self._resumed.set()

    def story(self) -> list[str]:
        """What happened, in order."""
        return list(self._run.story)

    def wait_for_resume(self, seconds: float) -> None:
        """Until somebody resumes or cancels it, for so long at most."""
        self._resumed.wait(seconds)

    def end(self, phase: str, error: BaseException | None = None) -> None:
        self.phase, self.error, self._ended = phase, error, time.monotonic()
        self._over.set()
