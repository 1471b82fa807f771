"""Index objects: one immutable object per published batch, with a cache of the newest ones."""

from collections import OrderedDict
from collections.abc import Sequence

from elastic import threads
from elastic.results.gaps import Gaps
from elastic.results.paths import ResultPaths
from elastic.results.refs import BatchIndex
from storage.codec import Json, Secret, pack, unpack
from storage.errors import AlreadyExists, ObjectMissing
from storage.stores.protocol import Store

_CACHED = 256  # some kilobytes each: a poll fetches the index that the reader asks for next


class Indexes:
    """The indexes of one job; thread-safe."""

    def __init__(self, store: Store, secret: Secret, paths: ResultPaths) -> None:
        self._store = store
        self._secret = secret
        self._paths = paths
        self.gaps = Gaps(store, secret, paths)
        self._cache: OrderedDict[int, BatchIndex] = OrderedDict()
        self._lock = threads.Lock()

    def put_if_absent(self, index: BatchIndex) -> bool:
        """Store the index; return False if the batch has another one already."""
        key = self._paths.index(index.batch)
        try:
            self._store.put_if_absent(key, pack({"index": Json(index.to_json())}, key=key, secret=self._secret))
        except AlreadyExists:
            return False
        self._remember(index)
        return True

    def get(self, batch: int) -> BatchIndex | None:
        """Return the index from the cache, even if it has expired since, or from the store; an empty one in a gap."""
        with self._lock:
            found = self._cache.get(batch)
        return found or self.fetch(batch) or self._empty_in_gap(batch)

    def fetch(self, batch: int) -> BatchIndex | None:
        """Read the index from the store; None if the batch has none."""
        key = self._paths.index(batch)
        try:
            data = self._store.get(key)
        except ObjectMissing:
            return None
        index = BatchIndex.from_json(unpack(data, key=key, secret=self._secret).parts["index"])
        self._remember(index)
        return index

    def is_published(self, batch: int) -> bool:
        """Return whether the batch has an index, or is in a gap."""
        return self.fetch(batch) is not None or self.gaps.find(batch) is not None

    def list_batches(self) -> list[int]:
        """List the batches that have an index, in order."""
        return [self._paths.batch_of_index(entry.key) for entry in self._store.list(self._paths.indexes)]

    def list_ranges(self) -> list[range]:
        """List the same batches and the gaps, each as a range."""
        return [*(range(batch, batch + 1) for batch in self.list_batches()), *self.gaps.refresh()]

    def delete(self, batches: Sequence[int]) -> None:
        """Delete the indexes of these batches."""
        with self._lock:
            for batch in batches:
                self._cache.pop(batch, None)
        self._store.delete(map(self._paths.index, batches))

    def _empty_in_gap(self, batch: int) -> BatchIndex | None:
        return None if self.gaps.find(batch) is None else BatchIndex(batch, 0, ())

    def _remember(self, index: BatchIndex) -> None:
        with self._lock:
            self._cache[index.batch] = index
            while len(self._cache) > _CACHED:
                self._cache.popitem(last=False)
