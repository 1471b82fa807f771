"""Time that this process did not run: suspended, swapped out, or starved of processors."""

import time
from collections.abc import Callable


class PauseMeter:
    """Measures pauses by the lateness of a loop. One thread calls it, once in every turn.

    A turn should take at most `turn_seconds`; what it took beyond that, the process was paused. Whoever was silent
    meanwhile may have spoken, and this process could not hear it: extend its deadline by the pause.
    """

    def __init__(self, turn_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._turn_seconds = turn_seconds
        self._clock = clock
        self._last = clock()

    def measure(self) -> float:
        """Seconds that the process was paused since the last call; 0 if the turn was in time."""
        now = self._clock()
        late = now - self._last - self._turn_seconds
        self._last = now
        return max(0.0, late)
