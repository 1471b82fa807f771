"""The end of a job within a bound: a deadline that its steps share, and a report of what was left undone."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from elastic.errors import InvalidSetting

_log = logging.getLogger(__name__)
_END_SECONDS = 15.0  # of the time that a stop may take, this much is kept for ending nodes and threads


@dataclass(frozen=True)
class StopReport:
    """How a job stopped.

    Batches up to `last_batch` are committed, those up to `published_batch` are applied and their results published,
    and saved states include those up to `saved_batch`. The next run of the job repeats what is committed and not
    saved, so nothing is lost. `unfinished` says in sentences what did not finish in time; it is empty after a clean
    stop.
    """

    seconds: float
    last_batch: int
    published_batch: int
    saved_batch: int
    unfinished: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        """Whether everything that the stop was asked to do was done."""
        return not self.unfinished


class Deadline:
    """A moment by which everything must be over."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._ends = self._began + seconds

    @classmethod
    def of_stop(cls, timeout_seconds: float) -> "tuple[Deadline, Deadline]":
        """When a stop must have drained the job, and when it must be over."""
        if not timeout_seconds > 0:
            raise InvalidSetting("timeout_seconds", timeout_seconds, "it must be above zero")
        return cls(timeout_seconds - min(_END_SECONDS, timeout_seconds / 2)), cls(timeout_seconds)

    def left(self, most_seconds: float = float("inf")) -> float:
        """Seconds until then, at least 0 and at most so many."""
        return max(0.0, min(most_seconds, self._ends - self._clock()))

    @property
    def passed_seconds(self) -> float:
        return self._clock() - self._began


def finish_within(seconds: float, call: Callable[[], object], name: str) -> bool:
    """Whether `call` returned in time. One that does not goes on in a daemon thread; one that raises is logged."""

    def run() -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - whatever fails at the end must not keep the rest from ending
            _log.warning("%s failed: %s: %s", name, type(error).__name__, error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()
