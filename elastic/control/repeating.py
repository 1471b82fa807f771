"""Something that is done again and again while a job runs."""

import logging
import threading
from collections.abc import Callable

_log = logging.getLogger(__name__)
_STOP_SECONDS = 5.0  # the store may hold the last turn up; nobody waits longer for it


class Repeating:
    """Calls `do` every `seconds` in a thread of its own, from `start` to `stop`; a turn that fails is logged."""

    def __init__(self, name: str, seconds: float, do: Callable[[], object]) -> None:
        self._seconds = seconds
        self._do = do
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """No turn begins any more; the one under way is waited for, unless it asks for this itself."""
        self._stopping.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(_STOP_SECONDS)

    @property
    def is_stopped(self) -> bool:
        return self._stopping.is_set()

    def _run(self) -> None:
        while not self._stopping.wait(self._seconds):
            try:
                self._do()
            except Exception as error:  # noqa: BLE001 - the next turn may do better
                if not self._stopping.is_set():
                    _log.warning("%s failed this time: %s", self._thread.name, error, exc_info=error)
