"""How long a node has worked."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class BusyClock:
    """Runs except while its one thread waits. Any thread may read it, also in the middle of a long step."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        # In one value, so that no reader sees half of a change: seconds of waits that are over, and the one under way.
        self._waits: tuple[float, float | None] = (0.0, None)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        waited, _ = self._waits
        since = self._clock()
        self._waits = (waited, since)
        try:
            yield
        finally:
            self._waits = (waited + self._clock() - since, None)

    def seconds(self) -> float:
        waited, since = self._waits
        now = self._clock() if since is None else since
        return max(0.0, now - self._began - waited)
