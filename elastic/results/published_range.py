"""Finds the published batches, with one small request when there are no new ones.

Batches are published in order and expire in order, so the published ones are one range. The newest is found from one
that is known to exist: probe the next batch, then ever further ahead, then bisect. All batches are listed only at
first, and after the known ones have expired.

A driver that was suspended may publish a batch after other processes let it expire. Such a batch stands alone below the
range: a listing skips it, and the next expiry deletes it.
"""

from collections.abc import Callable, Iterable

from elastic import threads

_RECHECK_SECONDS = 10.0  # how long a reader behind the retention may take an expired batch for an unpublished one


class PublishedRange:
    """The range of published batches as this process knows it; thread-safe.

    `is_published` probes one batch; `list_ranges` lists all, as ranges in any order. A poll costs one probe when
    nothing is new, two for one new batch, and O(log n) for n.
    """

    def __init__(
        self,
        is_published: Callable[[int], bool],
        list_ranges: Callable[[], Iterable[range]],
        clock: Callable[[], float] = threads.monotonic,
    ) -> None:
        self._is_published = is_published
        self._list_ranges = list_ranges
        self._clock = clock
        self._lock = threads.Lock()
        self._known = range(0)  # empty while no batch is known to be published
        self._checked_at = 0.0  # when the newest known batch certainly existed

    @property
    def known(self) -> range:
        """The range that the last poll found."""
        return self._known

    def poll(self, since: int | None = None) -> range:
        """Return the published batches, oldest to newest; empty before the first.

        The oldest ones may have expired meanwhile. `since` is a batch that was published once: if it still is, a first
        poll starts from it and lists nothing.
        """
        with self._lock:
            if not self._known and since is not None and since >= 0 and self._is_published(since):
                self._remember(since, since)
            if self._known:
                self._advance()
            else:
                self._list()
            return self._known

    def refresh(self) -> range:
        """Return the same from a listing, so that the oldest batch is exact too."""
        with self._lock:
            self._list()
            return self._known

    def note_published(self, batch: int) -> None:
        """Note a batch that this process has published, or found published."""
        with self._lock:
            if not self._known:
                self._remember(batch, batch)
            elif batch == self._known.stop:
                self._remember(self._known.start, batch)

    def note_expired(self, before: int) -> None:
        """Note that all batches before this one are deleted."""
        with self._lock:
            if self._known.start < before < self._known.stop:
                self._known = range(before, self._known.stop)

    def _advance(self) -> None:
        newest = found = self._known[-1]
        step = 1
        while self._is_published(found + step):
            found += step
            step = found - newest
        missing = found + step
        while missing - found > 1:
            middle = (found + missing) // 2
            if self._is_published(middle):
                found = middle
            else:
                missing = middle
        if found > newest:
            self._remember(self._known.start, found)
        elif self._clock() - self._checked_at > _RECHECK_SECONDS:
            self._recheck(newest)

    def _recheck(self, newest: int) -> None:
        """List again if the newest known batch is gone: then the one after it has expired, and is not still to come."""
        if self._is_published(newest):
            self._checked_at = self._clock()
        else:
            self._list()

    def _list(self) -> None:
        """Remember the contiguous range that ends with the newest batch; change nothing if there is no batch."""
        ranges = sorted(self._list_ranges(), key=lambda batches: batches.stop, reverse=True)
        if ranges:
            oldest = ranges[0].start
            for batches in ranges:
                if batches.stop < oldest:
                    break
                oldest = min(oldest, batches.start)
            self._remember(oldest, ranges[0].stop - 1)

    def _remember(self, oldest: int, newest: int) -> None:
        self._known = range(oldest, newest + 1)
        self._checked_at = self._clock()
