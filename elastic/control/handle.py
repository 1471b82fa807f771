"""The handle of a migration, as the caller who requested it sees it: what moves of tasks and of keys have in common."""

import secrets
from abc import ABC, abstractmethod
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar

from elastic import threads
from elastic.control.cluster import Cluster, NodeStep
from elastic.errors import MigrationFailed


class MigrationProgress(NamedTuple):
    """The progress of a migration. It moves either tasks or keys; the numbers of the other are 0.

    `seconds_left` is an estimate from the moves so far, None before the first and during a pause. States took
    `stored_bytes` in the store; `direct_bytes` of them went straight from node to node.
    """

    phase: str
    tasks_done: int
    tasks: int
    keys_done: int
    keys: int
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
    step: NodeStep | None

    @property
    def is_overdue(self) -> bool:
        return self.step is not None and self.step.overdue

    def __str__(self) -> str:
        busy = "" if self.step is None else f"; it has been taking {self.step.text}"
        return f"{self.node} to {self.action}{busy}"


class Moved(NamedTuple):
    """The tasks or keys and bytes that a migration has moved so far, and those it moves in total."""

    done: int
    all: int
    size_done: float
    size: float
    stored_bytes: int
    direct_bytes: int = 0


class View(Protocol):
    """The common part of the views of both kinds of migrations."""

    @property
    def is_over(self) -> bool: ...
    @property
    def is_idle(self) -> bool: ...
    @property
    def is_paused(self) -> bool: ...
    @property
    def story(self) -> tuple[str, ...]: ...


_View = TypeVar("_View", bound=View)
_Plan = TypeVar("_Plan")


class MigrationHandle(ABC, Generic[_Plan, _View]):
    """One migration, of tasks or of keys. Any thread may use it."""

    level: ClassVar[str]
    mode: str
    transfer: str

    def __init__(self, plan: _Plan, cluster: Cluster) -> None:
        self.id = secrets.token_hex(4)
        self.plan = plan
        self.error: BaseException | None = None
        self._cluster = cluster
        self._phase = "planned"
        self._final: _View | None = None
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
    @abstractmethod
    def nodes(self) -> tuple[int, int]:
        """Number of nodes before the migration, and after it."""

    @property
    @abstractmethod
    def cap_share(self) -> float | None:
        """The most work that a node may carry after it, as a share of all work; None without work."""

    def view(self) -> _View:
        """Return the moves as they are now, or as they were at the end."""
        return self._final or self._find_view() or self._before_begin()

    def begin(self) -> None:
        """Hand the moves to the cluster. A pause or a cancellation that was requested before is in effect at once."""
        with self._lock:
            self._begun = True
            paused, cancelled = self._paused, self._cancelled
        self._request_moves(paused=paused, cancelled=cancelled)
        with self._lock:  # a request that overtook the begin found no migration
            if self._paused != paused:
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
        moved = self._count_moved(self.view())
        now = self._ended or threads.monotonic()
        left = None
        if moved.done and self._paused_since is None:
            # Nodes have started by then: that takes long, and only once.
            moving = now - (self._moving_since or self._started) - self._paused_seconds
            left = moving * (moved.all - moved.done) / moved.done
        awaited = self.awaited()
        tasks, keys = ((moved.done, moved.all), (0, 0)) if self.level == "tasks" else ((0, 0), (moved.done, moved.all))
        return MigrationProgress(
            self.phase,
            *tasks,
            *keys,
            moved.size_done,
            moved.size,
            moved.stored_bytes,
            moved.direct_bytes,
            now - self._started,
            0.0 if self.is_over else left,
            tuple(map(str, awaited)),
            any(one.is_overdue for one in awaited),
        )

    def awaited(self) -> list[AwaitedAction]:
        """Return the nodes that have to act before what is in flight can end."""
        awaited = [] if self.is_over else self._list_awaited(self.view())
        steps = self._cluster.steps() if awaited else {}
        return [AwaitedAction(node, action, steps.get(node)) for node, action in awaited]

    def note_overdue(self) -> list[AwaitedAction]:
        """Return the nodes that delay it for too long; each is noted in the story once."""
        overdue = [one for one in self.awaited() if one.is_overdue]
        for one in overdue:
            if one.node not in self._noted:
                self._noted.add(one.node)
                self._cluster.note(self.id, f"waits for {one}")
        return overdue

    def pause(self) -> None:
        """Pause after what is in flight."""
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
        """Skip the moves that have not begun; those in flight are completed and committed.

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

    @abstractmethod
    def _find_view(self) -> _View | None:
        """Return the moves as the cluster sees them; None if it has no such migration."""

    @abstractmethod
    def _before_begin(self) -> _View: ...

    @abstractmethod
    def _request_moves(self, *, paused: bool, cancelled: bool) -> None:
        """Hand the moves to the cluster."""

    @abstractmethod
    def _count_moved(self, view: _View) -> Moved: ...

    @abstractmethod
    def _list_awaited(self, view: _View) -> list[tuple[str, str]]:
        """Return the nodes that have to act, each with what it has to do."""
