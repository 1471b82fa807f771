"""The newest view of a job, for every thread that reads it or waits until it says something."""

import logging
from collections.abc import Callable
from copy import copy

from elastic import threads
from elastic.core.view import JobView
from elastic.errors import JobStopped

_log = logging.getLogger(__name__)


class Views:
    """Published by the driver's loop, read by any thread. After a failure or a close every wait ends with an error."""

    def __init__(self, job: str, first: JobView) -> None:
        self._job = job
        self._latest = first
        self._changed = threads.Condition()
        self._error: BaseException | None = None
        self._closed = False

    @property
    def latest(self) -> JobView:
        return self._latest

    @property
    def error(self) -> BaseException | None:
        """The error that ended the job; None if it runs or was stopped."""
        return self._error

    def publish(self, view: JobView) -> None:
        with self._changed:
            self._latest = view
            self._changed.notify_all()

    def notify(self) -> None:
        """Let every wait look at its condition again: something outside the view has changed."""
        with self._changed:
            self._changed.notify_all()

    def wait_for(
        self, condition: Callable[[JobView], bool], seconds: float | None = None, what: str = "the driver"
    ) -> JobView:
        """Return the first view that meets the condition; `TimeoutError` names `what` the caller waited for."""

        def is_met() -> bool:
            if condition(self._latest):
                return True
            self.check()
            return False

        with self._changed:
            if not self._changed.wait_for(is_met, seconds):
                raise TimeoutError(f"timed out after {seconds:.3g} s waiting for {what}. Check the job's status.")
            return self._latest

    def fail(self, error: BaseException) -> None:
        """End every wait with this error, now and later; only the first one is kept."""
        with self._changed:
            if self._error is None and not self._closed:
                self._error = error
                _log.error("job %s failed: %s", self._job, error)
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def check(self) -> None:
        """Raise what ended the job, if it has ended."""
        if self._error is not None:
            # A copy for each thread that waits: a raised exception collects tracebacks.
            raise copy(self._error)
        if self._closed:
            raise JobStopped(self._job)
