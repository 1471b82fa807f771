"""A migration, as the caller who requested it sees it."""

import secrets
from collections.abc import Sequence
from typing import NamedTuple

from elastic import threads
from elastic.control.cluster import Cluster, NodeStep
from elastic.core.events import MigrationRequested
from elastic.core.hand_over import MigrationView
from elastic.errors import MigrationFailed
from migration import Move, Ownership, Plan


class MigrationProgress(NamedTuple):
    """How far a migration is.

    `seconds_left` is an estimate from the moves so far, None before the first and during a pause. States took
    `stored_bytes` as objects; `direct_bytes` of them went straight from node to node.
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


class AwaitedAction(NamedTuple):
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
        mini_migrations: Sequence[Sequence[Move]],
        cluster: Cluster,
        mode: str = "progressive",
        transfer: str = "store",
    ) -> None:
        self.id = secrets.token_hex(4)
        self.plan = plan
        self.mode = mode
        self.transfer = transfer
        self.error: BaseException | None = None
        self._cluster = cluster
        self._mini_migrations = tuple(tuple(moves) for moves in mini_migrations if moves)
        self._phase = "planned"
        self._final: MigrationView | None = None
        self._lock = threads.Lock()  # between requests and the begin, which takes them along
        self._begun = False
        self._paused = False
        self._cancelled = False
        self._noted: set[str] = set()
        self._started = threads.monotonic()
        self._moving_since: float | None = None
        self._paused_since: float | None = None
        self._paused_seconds = 0.0  # in earlier pauses
        self._ended: float | None = None
        self._over = threads.Event()
        self._resumed = threads.Event()

    @property
    def phase(self) -> str:
        return self._phase

    @phase.setter
    def phase(self, phase: str) -> None:
        now = threads.monotonic()
        if phase == "moving" and self._moving_since is None:
            self._moving_since = now
        if phase == "paused":
            self._paused_since = self._paused_since or now
        elif self._paused_since is not None:
            self._paused_seconds += now - self._paused_since
            self._paused_since = None
        self._phase = phase

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    @property
    def is_paused(self) -> bool:
        """Whether a pause was requested last, in effect or not."""
        return self._paused

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled

    @property
    def assignment(self) -> Ownership:
        """The assignment that the migration committed last, or began with."""
        return self.view().assignment

    def view(self) -> MigrationView:
        """Return the moves as they are now, or as they were at the end."""
        found = self._final or self._cluster.migration(self.id)
        return self._before_begin() if found is None else found

    def begin(self) -> None:
        """Hand the moves to the cluster. A pause or a cancellation that was requested before is in effect at once."""
        with self._lock:
            self._begun = True
            minis = () if self._cancelled else self._mini_migrations
            request = MigrationRequested(
                self.id, self.plan.current, self.plan.target, minis, self.transfer == "direct", self._paused
            )
        self._cluster.begin(request)
        with self._lock:  # a request that overtook the begin found no migration
            if self._paused != request.paused:
                (self._cluster.pause if self._paused else self._cluster.resume)(self.id)
            if self._cancelled:
                self._cluster.cancel(self.id)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is over; False if it is not in time. Raises `MigrationFailed` if it failed."""
        over = self._over.wait(seconds)
        if self.error is not None:
            raise MigrationFailed(str(self.error)) from self.error
        return over

    def progress(self) -> MigrationProgress:
        view = self.view()
        now = self._ended or threads.monotonic()
        left = None
        if view.tasks_done and self._paused_since is None:
            # Nodes have started by then: that takes long, and only once.
            moving = now - (self._moving_since or self._started) - self._paused_seconds
            left = moving * (view.tasks - view.tasks_done) / view.tasks_done
        awaited = self.awaited()
        return MigrationProgress(
            self.phase,
            view.tasks_done,
            view.tasks,
            view.size_done,
            view.size,
            view.stored_bytes,
            view.direct_bytes,
            now - self._started,
            0.0 if self.is_over else left,
            tuple(map(str, awaited)),
            any(one.is_overdue for one in awaited),
        )

    def awaited(self) -> list[AwaitedAction]:
        """Return the nodes that have to act before the mini-migration in flight can end."""
        awaited = () if self.is_over else self.view().awaited
        steps = self._cluster.steps() if awaited else {}
        return [AwaitedAction(*one, steps.get(one.node)) for one in awaited]

    def note_overdue(self) -> list[AwaitedAction]:
        """Return the nodes that delay it for too long; each is noted in the story once."""
        overdue = [one for one in self.awaited() if one.is_overdue]
        for one in overdue:
            if one.node not in self._noted:
                self._noted.add(one.node)
                self._cluster.note(self.id, f"waits for {one}")
        return overdue

    def pause(self) -> None:
        """Pause after the mini-migration in flight."""
        with self._lock:
            self._paused = True
            self._resumed.clear()
            if self._begun:
                self._cluster.pause(self.id)

    def resume(self) -> None:
        """Continue; a pause that is not in effect yet has no effect. Of a pause and a resume, the later one holds."""
        with self._lock:
            self._paused = False
            if self._begun:
                self._cluster.resume(self.id)
            self._resumed.set()

    def cancel(self) -> None:
        """Leave out what has not begun; what has is brought to its end and committed.

        If that waits for a node whose step is overdue, the node's process is ended and another one takes its place.
        """
        with self._lock:
            self._cancelled = True
            if self._begun:
                self._cluster.cancel(self.id)
            self._resumed.set()

    def story(self) -> list[str]:
        """Return what happened, in order."""
        return list(self.view().story)

    def wait_for_resume(self, seconds: float) -> None:
        """Wait until it is resumed or cancelled, for so long at most."""
        self._resumed.wait(seconds)

    def end(self, phase: str, error: BaseException | None = None) -> None:
        """Note the end; the moves stay as they are now."""
        self._final = self.view()
        self.phase, self.error, self._ended = phase, error, threads.monotonic()
        self._over.set()

    def __repr__(self) -> str:
        view = self.view()
        return (
            f"Migration({len(self.plan.current.nodes)} -> {len(self.plan.target.nodes)} nodes, {self.phase}, "
            f"{view.tasks_done} of {view.tasks} tasks, {self.plan.strategy}, {self.mode})"
        )

    def _before_begin(self) -> MigrationView:
        moves = [move for mini in self._mini_migrations for move in mini]
        return MigrationView(
            self.id,
            self.plan.current,
            is_paused=self._paused,
            is_cancelled=self._cancelled,
            mini_migrations=len(self._mini_migrations),
            tasks=len(moves),
            size=sum(move.size for move in moves),
        )
