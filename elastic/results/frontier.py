"""Which batches are published, for the price of one small request when there is nothing new.

Batches are published in order and expire in order, so those that are there are one range, and the newest is found from
one that is known to be there: look at the next one, then ever further, then in between. A listing of all is needed
only at first, and when the known one has expired.

A batch that a controller published in its sleep, long after others let it expire, stands alone below the range: a
listing passes over it, and the next expiry removes it.
"""

import threading
from collections.abc import Callable, Iterable
from time import monotonic

_CERTAIN_SECONDS = 10.0  # how long a reader that has fallen behind retention may take a missing batch for a future one


class Frontier:
    """The range of published batches as one process knows it; safe to use from many threads.

    `is_there` looks for one batch, `listed` for all, as ranges in any order. A look costs one `is_there` when nothing
    is new, two for one new batch, and O(log n) for n.
    """

    def __init__(
        self,
        is_there: Callable[[int], bool],
        listed: Callable[[], Iterable[range]],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._is_there = is_there
        self._listed = listed
        self._clock = clock
        self._lock = threading.Lock()
        self._known = range(0)  # empty while nothing is known to be published
        self._seen = 0.0  # when the newest known batch was certainly there

    @property
    def known(self) -> range:
        """What the last look found."""
        return self._known

    def look(self, since: int | None = None) -> range:
        """The published batches, from the oldest to the newest; empty before the first.

        The oldest ones may have expired by now. `since` is a batch that was there once: a first look starts from it,
        and asks for nothing older, if it still is.
        """
        with self._lock:
            if not self._known and since is not None and since >= 0 and self._is_there(since):
                self._keep(since, since)
            if self._known:
                self._advance()
            else:
                self._list()
            return self._known

    def look_at_all(self) -> range:
        """The same by a listing, so that the oldest is right too."""
        with self._lock:
            self._list()
            return self._known

    def published(self, batch: int) -> None:
        """Note a batch that was just published, by this process or before it."""
        with self._lock:
            if not self._known:
                self._keep(batch, batch)
            elif batch == self._known.stop:
                self._keep(self._known.start, batch)

    def expired(self, before: int) -> None:
        """Note that nothing older is left."""
        with self._lock:
            if self._known.start < before < self._known.stop:
                self._known = range(before, self._known.stop)

    def _advance(self) -> None:
        newest = found = self._known[-1]
        step = 1
        while self._is_there(found + step):
            found += step
            step = found - newest
        missing = found + step
        while missing - found > 1:
            middle = (found + missing) // 2
            if self._is_there(middle):
                found = middle
            else:
                missing = middle
        if found > newest:
            self._keep(self._known.start, found)
        elif self._clock() - self._seen > _CERTAIN_SECONDS:
            self._make_certain(newest)

    def _make_certain(self, newest: int) -> None:
        """What is missing after the newest is still to come only if that one is there; else both have expired."""
        if self._is_there(newest):
            self._seen = self._clock()
        else:
            self._list()

    def _list(self) -> None:
        """The range that ends with the newest; empty if there is none."""
        runs = sorted(self._listed(), key=lambda run: run.stop, reverse=True)
        if runs:
            oldest = runs[0].start
            for run in runs:
                if run.stop < oldest:
                    break
                oldest = min(oldest, run.start)
            self._keep(oldest, runs[0].stop - 1)

    def _keep(self, oldest: int, newest: int) -> None:
        self._known = range(oldest, newest + 1)
        self._seen = self._clock()
