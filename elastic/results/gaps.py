"""Gaps in the result log: batches that a job processed without keeping results, marked so that readers skip them.

A job that ran with `sink="none"` and continues with another sink has no results for the batches in between. One signed
object per gap names its first and last batch. To readers such a batch is a published one without rows.
"""

from collections.abc import Callable

from elastic import threads
from elastic.results.paths import ResultPaths
from storage.codec import Json, Secret, pack, unpack
from storage.errors import ObjectMissing
from storage.stores.protocol import Store

_REFRESH_SECONDS = 10.0  # how long after a job continues its readers may take the gap for unpublished batches


class Gaps:
    """The gaps of one job, as this process knows them; thread-safe.

    Costs a listing of a nearly empty prefix when a batch is missing, at most once per `_REFRESH_SECONDS`.
    """

    def __init__(
        self, store: Store, secret: Secret, paths: ResultPaths, clock: Callable[[], float] = threads.monotonic
    ) -> None:
        self._store = store
        self._secret = secret
        self._paths = paths
        self._clock = clock
        self._known: tuple[range, ...] = ()
        self._refreshed_at: float | None = None
        self._lock = threads.Lock()

    def add(self, batches: range) -> None:
        """Mark these batches as a gap, durably; idempotent."""
        key = self._paths.gap(batches)
        document = {"first": batches.start, "last": batches[-1]}
        self._store.put(key, pack({"gap": Json(document)}, key=key, secret=self._secret))
        self.refresh()

    def find(self, batch: int) -> range | None:
        """Return the gap that contains the batch, or None."""
        with self._lock:
            is_fresh = self._refreshed_at is not None and self._clock() - self._refreshed_at < _REFRESH_SECONDS
        found = next((gap for gap in self._known if batch in gap), None)
        if found is None and not is_fresh:
            found = next((gap for gap in self.refresh() if batch in gap), None)
        return found

    def refresh(self) -> tuple[range, ...]:
        """Read all gaps from the store."""
        found = [self._read(entry.key) for entry in self._store.list(self._paths.gaps)]
        with self._lock:
            self._known = tuple(gap for gap in found if gap is not None)
            self._refreshed_at = self._clock()
            return self._known

    def delete_before(self, oldest: int) -> None:
        """Delete the gaps that end before this batch."""
        with self._lock:
            expired = [gap for gap in self._known if gap.stop <= oldest]
            self._known = tuple(gap for gap in self._known if gap.stop > oldest)
        self._store.delete(map(self._paths.gap, expired))

    def _read(self, key: str) -> range | None:
        try:
            data = self._store.get(key)
        except ObjectMissing:  # deleted by retention since it was listed
            return None
        document = unpack(data, key=key, secret=self._secret).parts["gap"]
        return range(document["first"], document["last"] + 1)
