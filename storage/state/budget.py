"""A bound on the bytes that are in memory at once, shared by all transfers of a manager."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from storage.errors import InvalidStorageInput


class Grant:
    """Bytes taken from a budget; `resize` when the true size is known."""

    def __init__(self, budget: "ByteBudget", size: int) -> None:
        self._budget = budget
        self.size = size

    def resize(self, size: int) -> None:
        """Count the true size. Never waits: who holds bytes and waits for more could wait for ever."""
        self._budget._add(size - self.size)  # noqa: SLF001 - one class in two
        self.size = size


class ByteBudget:
    """A semaphore that counts bytes and serves in order of arrival.

    Invariant: the granted sizes add up to at most `capacity`, or there is one grant alone that is larger (grants that
    were resized upwards count until they are given back, and let nobody else in meanwhile). Whoever waits for a large
    item is served before smaller ones that came later, so nobody starves; holders never wait, so nothing deadlocks.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise InvalidStorageInput(f"a budget of {capacity} bytes moves nothing. Give at least one byte.")
        self.capacity = capacity
        self.used = 0
        self.peak = 0  # the most that was ever in use
        self._changed = threading.Condition()
        self._queue: deque[object] = deque()

    @contextmanager
    def taken(self, size: int) -> Iterator[Grant]:
        """`size` bytes for the time of the block, as soon as they are free."""
        self._wait_for(size)
        grant = Grant(self, size)
        try:
            yield grant
        finally:
            self._add(-grant.size)

    def _wait_for(self, size: int) -> None:
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            try:
                self._changed.wait_for(lambda: self._queue[0] is ticket and self._fits(size))
                self._add(size)
            finally:
                self._queue.remove(ticket)
                self._changed.notify_all()

    def _fits(self, size: int) -> bool:
        return self.used == 0 or self.used + size <= self.capacity

    def _add(self, size: int) -> None:
        with self._changed:  # a re-entrant lock: _wait_for calls this inside it
            self.used += size
            self.peak = max(self.peak, self.used)
            self._changed.notify_all()
