"""Pauses of this process: suspended, swapped out, or starved of processors."""

from collections.abc import Callable

from elastic import threads


class PauseMeter:
    """Measures how long the process was paused, by the lateness of a loop that calls it once in every turn.

    A turn should take at most `turn_seconds`; the process was paused for the time beyond that. Heartbeats that arrived
    meanwhile were not processed, so extend the deadlines of their senders by the pause.
    """

    def __init__(self, turn_seconds: float, clock: Callable[[], float] = threads.monotonic) -> None:
        self._turn_seconds = turn_seconds
        self._clock = clock
        self._last = clock()

    def measure(self) -> float:
        """Return the seconds that the process was paused since the last call; 0 if the turn was in time."""
        now = self._clock()
        late = now - self._last - self._turn_seconds
        self._last = now
        return max(0.0, late)
