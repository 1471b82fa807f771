"""A migration: mini-migrations one after the other, each a set of hand-overs that end together."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from migration.live.messages import (
    AssignmentCommitted,
    Command,
    CommitAssignment,
    ForgetState,
    HandOver,
    InstallState,
    LiveEvent,
    NodeLost,
    ReleaseState,
    StateInstalled,
    StateReleased,
)
from migration.live.table import Action, Event, Phase, next_phase
from migration.model import Move, Ownership, ScatteredAssignment, after_moves

_COMMANDS: Mapping[Action, Callable[[HandOver], Command]] = {
    Action.RELEASE: ReleaseState,
    Action.INSTALL: InstallState,
    Action.FORGET: ForgetState,
}


class Progress(NamedTuple):
    """How far a migration is. Sizes are the plan's; `stored_bytes` is what states really took.

    `direct_bytes` of them went straight from node to node.
    """

    mini_migrations_done: int
    mini_migrations: int
    tasks_done: int
    tasks: int
    size_done: float
    size: float
    stored_bytes: int
    direct_bytes: int


class Awaited(NamedTuple):
    """A node that has to release or install these tasks."""

    node: str
    action: str
    tasks: tuple[int, ...]


@dataclass
class _Ongoing:
    """One hand-over of the mini-migration under way."""

    hand_over: HandOver
    phase: Phase = Phase.PLANNED
    left: set[int] = field(default_factory=set)  # tasks whose state is not installed

    @property
    def is_waiting(self) -> bool:
        """For the target to install."""
        return self.phase in (Phase.INSTALLING, Phase.RESTORING)


class _View(NamedTuple):
    """What other threads see of a run."""

    under_way: tuple[HandOver, ...]
    is_paused: bool
    is_cancelled: bool
    is_committing: bool
    progress: Progress

    @property
    def is_over(self) -> bool:
        done = self.progress.mini_migrations_done == self.progress.mini_migrations
        return not self.under_way and (self.is_cancelled or done)


class MigrationRun:
    """One migration from its start to its end. No method blocks.

    The run never starts a mini-migration by itself: `go_on` does, when what it needs is there. A pause, or a
    cancellation, takes effect between two mini-migrations: what has begun is brought to its end.

    One thread calls `go_on` and `handle`; any thread may pause, resume and cancel the run and read its properties.
    Writers hold a lock and publish one frozen view when they are done, so a reader never sees half a transition.
    """

    def __init__(self, current: Ownership, target: Ownership, mini_migrations: Iterable[Sequence[Move]]) -> None:
        self.assignment = current
        self.target = target
        self.story: list[str] = []
        self._is_paused = False
        self._is_cancelled = False
        self._waiting = [_hand_overs(moves) for moves in mini_migrations if moves]
        self._total = len(self._waiting)
        everything = [hand_over for mini in self._waiting for hand_over in mini]
        self._tasks = sum(len(hand_over.tasks) for hand_over in everything)
        self._size = sum(hand_over.size for hand_over in everything)
        self._ongoing: list[_Ongoing] = []
        self._tasks_done = 0
        self._size_done = 0.0
        self._stored_bytes = 0
        self._direct_bytes = 0
        self._commit_asked = False
        self._handlers: Mapping[type, Callable[[Any], list[Command]]] = {
            StateReleased: self._released,
            StateInstalled: self._installed,
            AssignmentCommitted: self._committed,
            NodeLost: self._lost,
        }
        self._writing = threading.Lock()
        self._view = self._new_view()

    @property
    def is_over(self) -> bool:
        return self._view.is_over

    @property
    def is_paused(self) -> bool:
        return self._view.is_paused

    @property
    def is_cancelled(self) -> bool:
        return self._view.is_cancelled

    @property
    def is_between(self) -> bool:
        """Whether no mini-migration is under way."""
        return not self._view.under_way

    @property
    def can_go_on(self) -> bool:
        """Whether `go_on` would start a mini-migration now."""
        view = self._view
        return not (view.under_way or view.is_paused or view.is_over)

    @property
    def under_way(self) -> tuple[HandOver, ...]:
        """The hand-overs of the mini-migration under way."""
        return self._view.under_way

    @property
    def waiting_for(self) -> tuple[Awaited, ...]:
        """Which nodes have to do what before the mini-migration under way can end."""
        found = []
        for ongoing in tuple(self._ongoing):
            hand_over = ongoing.hand_over
            if ongoing.phase is Phase.RELEASING:
                found.append(Awaited(hand_over.source, "release", hand_over.tasks))
            elif ongoing.is_waiting:
                found.append(Awaited(hand_over.target, "install", tuple(sorted(ongoing.left))))
        return tuple(found)

    @property
    def is_committing(self) -> bool:
        """Whether an assignment may be committed any moment: too late to go back."""
        return self._view.is_committing

    def progress(self) -> Progress:
        return self._view.progress

    def pause(self) -> None:
        with self._change():
            self._is_paused = True

    def unpause(self) -> None:
        """Undo a pause. The next mini-migration starts with `go_on`."""
        with self._change():
            self._is_paused = False

    def go_on(self) -> list[Command]:
        """Start the next mini-migration, unless one is under way, the run is paused or cancelled, or none is left."""
        with self._change():
            return [] if self._ongoing else self._next_mini_migration()

    def cancel(self) -> None:
        """What has not begun is left out; the assignment is then that of what was done."""
        with self._change():
            self._is_cancelled = True

    def handle(self, event: LiveEvent) -> list[Command]:
        """What to do now that this happened; what concerns none of the hand-overs under way is nothing new."""
        with self._change():
            decided = self._handlers[type(event)](event)
            self.story.append(f"{event} -> {', '.join(map(str, decided)) or 'nothing'}")
            return decided

    @contextmanager
    def _change(self) -> Iterator[None]:
        with self._writing:
            try:
                yield
            finally:
                self._view = self._new_view()

    def _new_view(self) -> _View:
        under_way = tuple(ongoing.hand_over for ongoing in self._ongoing)
        return _View(under_way, self._is_paused, self._is_cancelled, self._commit_asked, self._new_progress())

    def _new_progress(self) -> Progress:
        done = self._total - len(self._waiting) - bool(self._ongoing)
        return Progress(
            done,
            self._total,
            self._tasks_done,
            self._tasks,
            self._size_done,
            self._size,
            self._stored_bytes,
            self._direct_bytes,
        )

    def _next_mini_migration(self) -> list[Command]:
        if self._is_paused or self._is_cancelled or not self._waiting:
            return []
        self._ongoing = [_Ongoing(hand_over, left=set(hand_over.tasks)) for hand_over in self._waiting.pop(0)]
        return [command for ongoing in self._ongoing for command in self._step(ongoing, Event.STARTED)]

    def _step(self, ongoing: _Ongoing, event: Event) -> list[Command]:
        ongoing.phase, actions = next_phase(ongoing.phase, event)
        return [_COMMANDS[action](ongoing.hand_over) for action in actions]

    def _released(self, event: StateReleased) -> list[Command]:
        decided: list[Command] = []
        for ongoing in self._ongoing:
            mine = ongoing.hand_over.source == event.source and set(ongoing.hand_over.tasks) <= set(event.tasks)
            if mine and ongoing.phase is Phase.RELEASING:
                self._stored_bytes += event.stored_bytes
                decided += self._step(ongoing, Event.STATE_RELEASED)
        return decided

    def _installed(self, event: StateInstalled) -> list[Command]:
        decided: list[Command] = []
        waiting = [one for one in self._ongoing if one.hand_over.target == event.target and one.is_waiting]
        if any(not ongoing.left.isdisjoint(event.tasks) for ongoing in waiting):
            self._direct_bytes += event.direct_bytes
        for ongoing in waiting:
            ongoing.left.difference_update(event.tasks)
            if not ongoing.left:
                decided += self._step(ongoing, Event.STATE_INSTALLED)
        decided += self._commit_if_installed()
        self._end_if_done()
        return decided

    def _commit_if_installed(self) -> list[Command]:
        installed = all(ongoing.phase is Phase.INSTALLED for ongoing in self._ongoing)
        if self._commit_asked or not self._ongoing or not installed:
            return []
        self._commit_asked = True
        return [CommitAssignment(self._after())]

    def _after(self) -> Ownership:
        """The assignment once the hand-overs under way have ended."""
        moves = [
            Move(task, ongoing.hand_over.source, ongoing.hand_over.target, 0.0)
            for ongoing in self._ongoing
            for task in ongoing.hand_over.tasks
        ]
        nodes = list(dict.fromkeys((*self.assignment.nodes, *self.target.nodes)))
        after = after_moves(self.assignment, moves, nodes)
        if after.owners == self.target.owners:
            return self.target
        # Without nodes that own nothing: after a cancellation they leave, and nobody should plan with them.
        working = set(after.owners)
        return ScatteredAssignment.of_owners(after.owners, [node for node in nodes if node in working])

    def _committed(self, event: AssignmentCommitted) -> list[Command]:
        if not self._commit_asked or event.assignment.owners != self._after().owners:
            return []
        self.assignment = self._after()
        self._commit_asked = False
        decided = [command for ongoing in self._ongoing for command in self._step(ongoing, Event.ASSIGNMENT_COMMITTED)]
        self._end_if_done()
        return decided

    def _end_if_done(self) -> None:
        if not self._ongoing or any(ongoing.phase is not Phase.DONE for ongoing in self._ongoing):
            return
        self._tasks_done += sum(len(ongoing.hand_over.tasks) for ongoing in self._ongoing)
        self._size_done += sum(ongoing.hand_over.size for ongoing in self._ongoing)
        self._ongoing = []

    def _lost(self, event: NodeLost) -> list[Command]:
        decided: list[Command] = []
        for ongoing in self._ongoing:
            if ongoing.hand_over.source == event.node:
                decided += self._step(ongoing, Event.SOURCE_LOST)
            if ongoing.hand_over.target == event.node:
                ongoing.left = set(ongoing.hand_over.tasks)
                decided += self._step(ongoing, Event.TARGET_LOST)
        return decided


def _hand_overs(moves: Sequence[Move]) -> list[HandOver]:
    """Moves of one mini-migration, by source and target."""
    pairs: dict[tuple[str, str], list[Move]] = defaultdict(list)
    for move in moves:
        pairs[move.source, move.target].append(move)
    return [HandOver.of(source, target, together) for (source, target), together in pairs.items()]
