"""The driver's loop: one thread hands each event to the coordinator, publishes the view, and starts the commands."""

import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from elastic import threads
from elastic.core.coordinator import Coordinator
from elastic.core.events import Event
from elastic.core.messages import Heartbeat
from elastic.core.recoveries import Recovery
from elastic.driver.views import Views

_log = logging.getLogger(__name__)

Execute = Callable[[Any, str], None]  # a command, and the id of the event that caused it


_STORY_LENGTH = 500  # decisions kept for people who ask what happened


class Decision(NamedTuple):
    """An event, what caused it, and what the coordinator decided about it."""

    number: int
    cause: str
    event: Event
    commands: tuple[Any, ...]

    def __str__(self) -> str:
        decided = ", ".join(map(str, self.commands)) or "nothing"
        return f"e{self.number} (cause {self.cause or 'none'}) {self.event} -> {decided}"


class _Posted(NamedTuple):
    number: int
    event: Event
    cause: str  # the id of the event that this one is the answer to


class EventLoop:
    """Handles events in the order in which they were posted.

    Every event has a number; its id, "e17", is the cause of all commands, messages and events that follow from it.
    """

    def __init__(self, coordinator: Coordinator, views: Views, execute: Mapping[type, Execute]) -> None:
        self._coordinator = coordinator
        self._views = views
        self._execute = execute
        self._posted = 0
        self._posting = threads.Lock()
        self._queue: Any = threads.Queue()
        self._story: deque[Decision] = deque(maxlen=_STORY_LENGTH)
        self._telling = threads.Lock()
        self._closing = threads.Event()
        self._thread = threads.Thread(self._run, name="driver-loop")

    def start(self) -> None:
        self._thread.start()

    def post(self, event: Event, cause: str = "") -> int:
        """Queue an event and return its number; any thread may call it."""
        with self._posting:
            self._posted += 1
            self._queue.put(_Posted(self._posted, event, cause))
            return self._posted

    def story(self) -> list[str]:
        """Return the latest events and what was decided about each."""
        with self._telling:
            decisions = list(self._story)
        return [str(decision) for decision in decisions]

    def close(self, seconds: float) -> bool:
        """Stop handling events; return whether the thread ended in time."""
        self._closing.set()
        self._queue.put(None)
        if self._thread.ident is not None:
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._carry_out(self._coordinator.start(), "e0")
            while not self._closing.is_set():
                posted = self._queue.get()
                if posted is not None:
                    self._handle(posted)
        except Exception as error:  # noqa: BLE001 - every wait of the job must end with it
            _log.exception("the driver's loop failed")
            self._views.fail(error)

    def _handle(self, posted: _Posted) -> None:
        before = self._views.latest
        decided = self._coordinator.handle(posted.event, posted.number, threads.monotonic())
        decision = Decision(posted.number, posted.cause, posted.event, tuple(decided))
        if decided or not isinstance(posted.event, Heartbeat):
            with self._telling:
                self._story.append(decision)
        _log.debug("%s", decision)
        view = self._coordinator.view()
        self._views.publish(view)
        if view.losses > before.losses:
            _log.warning("e%d: %s; another incarnation replaces the node", posted.number, posted.event)
        if len(view.recoveries) != len(before.recoveries) or view.recoveries[-1:] != before.recoveries[-1:]:
            _log_recovery(view.recoveries[-1])
        self._carry_out(decided, f"e{posted.number}")

    def _carry_out(self, commands: list[Any], cause: str) -> None:
        for command in commands:
            self._execute[type(command)](command, cause)


def _log_recovery(recovery: Recovery) -> None:
    _log.warning(
        "%s recovered after %.2f s: %d units, %d rows replayed (lost: %s)",
        recovery.node,
        recovery.seconds,
        recovery.units,
        recovery.replayed_rows,
        recovery.reason,
    )
