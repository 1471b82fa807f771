"""A bound on the bytes that are in memory at once, shared by all calls of a state manager."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from storage.errors import InvalidStorageInput


class Reservation:
    """Bytes reserved from a budget; `resize` when the true size is known."""

    def __init__(self, budget: "ByteBudget", size: int) -> None:
        self._budget = budget
        self.size = size

    def resize(self, size: int) -> None:
        """Set the true size, without waiting: a holder of bytes that waits for more could wait for ever."""
        self._budget._add(size - self.size)  # noqa: SLF001 - one class in two
        self.size = size


class ByteBudget:
    """A semaphore that counts bytes and serves in order of arrival.

    Invariant: the reserved sizes add up to at most `capacity`, or one reservation alone is larger (those that were
    resized upwards count in full, and delay all others). A large reservation is served before smaller ones that came
    later, so none starves; holders never wait, so nothing deadlocks.
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
    def reserve(self, size: int) -> Iterator[Reservation]:
        """Reserve `size` bytes for the time of the block; waits until they are free."""
        self._wait_for(size)
        reservation = Reservation(self, size)
        try:
            yield reservation
        finally:
            self._add(-reservation.size)

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
