"""Deadlines that the steps of a shutdown share, and calls that must end within a time."""

import logging
from collections.abc import Callable

from elastic import threads
from elastic.errors import InvalidSetting

_log = logging.getLogger(__name__)
_END_SECONDS = 15.0  # the part of a stop's timeout that is reserved for ending nodes and threads


class Deadline:
    """A point in time by which something must have ended."""

    def __init__(self, seconds: float, clock: Callable[[], float] = threads.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._ends = self._began + seconds

    @classmethod
    def for_stop(cls, timeout_seconds: float) -> "tuple[Deadline, Deadline]":
        """Return the deadline for draining the job, and the one for the whole stop."""
        if not timeout_seconds > 0:
            raise InvalidSetting("timeout_seconds", timeout_seconds, "it must be above zero")
        return cls(timeout_seconds - min(_END_SECONDS, timeout_seconds / 2)), cls(timeout_seconds)

    def left(self, most_seconds: float = float("inf")) -> float:
        """Return the seconds until the deadline, at least 0 and at most `most_seconds`."""
        return max(0.0, min(most_seconds, self._ends - self._clock()))

    @property
    def elapsed_seconds(self) -> float:
        return self._clock() - self._began


def finish_within(seconds: float, call: Callable[[], object], name: str) -> bool:
    """Return whether `call` ended in time; its errors are logged.

    A call that takes longer continues in a daemon thread.
    """

    def run() -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - a step that fails must not keep the others from running
            _log.warning("%s failed: %s: %s", name, type(error).__name__, error)

    thread = threads.Thread(target=run, name=name)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()
