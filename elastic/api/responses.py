"""Response times of batches, as the driver can measure them from outside.

The response time of a batch is the duration of its trigger (Spark queries the source, senders send the rows, the
driver commits the batch) plus its apply lag (from the commit until its results are published). Spark reports the
trigger of its newest batch; polling two counters measures the apply lag, to `BATCH_POLL_SECONDS`.
"""

import threading
from collections import deque
from collections.abc import Callable

from elastic.api.outputs import Response

BATCH_POLL_SECONDS = 0.05
HISTORY_LENGTH = 1_200  # ten minutes at two a second


class ApplyLagTracker:
    """Measures the time from commit to publication of every batch. Memory: one number per pending batch.

    `observe` is called once for every batch that is published.
    """

    def __init__(self, observe: Callable[[float], object]) -> None:
        self._observe = observe
        self._committed: dict[int, float] = {}
        self._newest: int | None = None
        self._longest: float | None = None
        self._lock = threading.Lock()

    def update(self, at: float, last_batch: int, published_batch: int) -> None:
        """Record the batches committed and published since the last update; those before the first are unknown."""
        with self._lock:
            if self._newest is not None:
                committed = range(max(self._newest, published_batch - HISTORY_LENGTH) + 1, last_batch + 1)
                self._committed.update(dict.fromkeys(committed, at))
            self._newest = max(last_batch, self._newest or last_batch)
            for batch in [batch for batch in self._committed if batch <= published_batch]:
                lag = at - self._committed.pop(batch)
                self._longest = max(lag, self._longest or 0.0)
                self._observe(lag)

    def take_longest(self, at: float) -> float | None:
        """Return the longest lag since the last call, or the age of the oldest pending batch if that is longer."""
        with self._lock:
            pending = at - min(self._committed.values()) if self._committed else None
            lags = [lag for lag in (self._longest, pending) if lag is not None]
            self._longest = None
            return max(lags, default=None)


class ResponseHistory:
    """The newest response times, numbered by snapshot. Thread-safe."""

    def __init__(self) -> None:
        self._responses: deque[Response] = deque(maxlen=HISTORY_LENGTH)
        self._lock = threading.Lock()

    def append(self, response: Response) -> None:
        with self._lock:
            self._responses.append(response)

    def after(self, number: int) -> list[Response]:
        """Return the responses with a higher number, oldest first."""
        with self._lock:
            return [response for response in self._responses if response.id > number]
