"""How long batches take, as far as the driver can see it from outside.

A batch's response time is that of its trigger (Spark asks the source, rows travel, the batch is committed: Spark's own
figure, of the newest batch) plus its apply lag (from the commit until its results are visible). The lag is measured by
looking at two counters, so it is as exact as the looks are frequent: `LOOK_SECONDS`.
"""

import threading
from collections import deque

from elastic.api.outputs import Response

LOOK_SECONDS = 0.05
KEPT = 1_200  # ten minutes at two a second


class ApplyLag:
    """The time from commit to results, batch by batch. Memory: one number for each batch ahead."""

    def __init__(self) -> None:
        self._committed: dict[int, float] = {}
        self._newest: int | None = None
        self._longest: float | None = None
        self._lock = threading.Lock()

    def look(self, at: float, last_batch: int, published_batch: int) -> None:
        """Note which batches came and went since the last look; of those before the first look nothing is known."""
        with self._lock:
            if self._newest is not None:
                arrived = range(max(self._newest, published_batch - KEPT) + 1, last_batch + 1)
                self._committed.update(dict.fromkeys(arrived, at))
            self._newest = max(last_batch, self._newest or last_batch)
            for batch in [batch for batch in self._committed if batch <= published_batch]:
                lag = at - self._committed.pop(batch)
                self._longest = max(lag, self._longest or 0.0)

    def take(self, at: float) -> float | None:
        """The longest lag since it was taken last, or the age of the oldest batch that still waits, if that is more."""
        with self._lock:
            waiting = at - min(self._committed.values()) if self._committed else None
            found = [lag for lag in (self._longest, waiting) if lag is not None]
            self._longest = None
            return max(found, default=None)


class ResponseHistory:
    """The newest response times, numbered by snapshot. Safe to use from many threads."""

    def __init__(self) -> None:
        self._kept: deque[Response] = deque(maxlen=KEPT)
        self._lock = threading.Lock()

    def append(self, response: Response) -> None:
        with self._lock:
            self._kept.append(response)

    def after(self, number: int) -> list[Response]:
        """Those with a higher number, oldest first."""
        with self._lock:
            return [response for response in self._kept if response.id > number]
