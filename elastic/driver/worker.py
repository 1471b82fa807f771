"""A thread that does what it is given, one after the other."""

import queue
from collections.abc import Callable

from elastic import threads


class Worker:
    """Calls in the order in which they were submitted.

    Unlike the threads of an executor it is a daemon: a call that hangs keeps neither `close` nor the process from
    ending.
    """

    def __init__(self, name: str) -> None:
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = threads.Queue()
        self._thread = threads.Thread(target=self._run, name=name)
        self._thread.start()

    def submit(self, call: Callable[[], None]) -> None:
        """`call` must not raise. After `close` it is dropped."""
        self._queue.put(call)

    def close(self, seconds: float) -> bool:
        """Finish what is queued; whether that was done in time."""
        self._queue.put(None)
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (call := self._queue.get()) is not None:
            call()
