"""A thread that repeats one call while a job runs."""

import logging
from collections.abc import Callable

from elastic import threads

_log = logging.getLogger(__name__)
_STOP_SECONDS = 5.0  # the store may delay the last call; `stop` waits no longer than this


class PeriodicThread:
    """Calls `function` every `seconds`, from `start` to `stop`; logs a call that raises and continues."""

    def __init__(self, name: str, seconds: float, function: Callable[[], object]) -> None:
        self.name = name
        self._seconds = seconds
        self._function = function
        self._stopping = threads.Event()
        self._thread = threads.Thread(target=self._run, name=name)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Start no further call, and wait for the running one, unless that is the caller itself."""
        self._stopping.set()
        if self._thread.is_alive() and self._thread is not threads.current_thread():
            self._thread.join(_STOP_SECONDS)

    @property
    def is_stopped(self) -> bool:
        return self._stopping.is_set()

    def _run(self) -> None:
        while not self._stopping.wait(self._seconds):
            try:
                self._function()
            except Exception as error:  # noqa: BLE001 - the next call may succeed
                if not self._stopping.is_set():
                    _log.warning("a call of %s failed: %s", self._thread.name, error, exc_info=error)
