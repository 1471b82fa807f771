"""Index objects: one for every published batch, immutable, and remembered for a while by who has seen them."""

import threading
from collections import OrderedDict
from collections.abc import Sequence

from elastic.results.gaps import Gaps
from elastic.results.paths import ResultPaths
from elastic.results.refs import BatchIndex
from storage.codec import Json, Secret, pack, unpack
from storage.errors import AlreadyExists, ObjectMissing
from storage.stores.protocol import Store

_KEPT = 256  # in memory, some kilobytes each: looking for new batches fetches what the reader asks for next


class Indexes:
    """The indexes of one job; safe to use from many threads."""

    def __init__(self, store: Store, secret: Secret, paths: ResultPaths) -> None:
        self._store = store
        self._secret = secret
        self._paths = paths
        self.gaps = Gaps(store, secret, paths)
        self._kept: OrderedDict[int, BatchIndex] = OrderedDict()
        self._lock = threading.Lock()

    def put_if_absent(self, index: BatchIndex) -> bool:
        """Whether this very index is now the batch's."""
        key = self._paths.index(index.batch)
        try:
            self._store.put_if_absent(key, pack({"index": Json(index.to_json())}, key=key, secret=self._secret))
        except AlreadyExists:
            return False
        self._keep(index)
        return True

    def get(self, batch: int) -> BatchIndex | None:
        """From memory if it was seen before, even if it has expired since."""
        with self._lock:
            found = self._kept.get(batch)
        return found or self.fetch(batch) or self._empty_in_gap(batch)

    def fetch(self, batch: int) -> BatchIndex | None:
        """From the store; None if it is not there."""
        key = self._paths.index(batch)
        try:
            data = self._store.get(key).data
        except ObjectMissing:
            return None
        index = BatchIndex.from_json(unpack(data, key=key, secret=self._secret).parts["index"])
        self._keep(index)
        return index

    def is_there(self, batch: int) -> bool:
        """Whether the batch is published, or in a gap that readers pass over."""
        return self.fetch(batch) is not None or self.gaps.covering(batch) is not None

    def listed(self) -> list[int]:
        """The batches of all indexes that are there, in order."""
        return [self._paths.batch_of_index(entry.key) for entry in self._store.list(self._paths.indexes)]

    def listed_runs(self) -> list[range]:
        """The same with the gaps, each a range of batches."""
        return [*(range(batch, batch + 1) for batch in self.listed()), *self.gaps.refresh()]

    def delete(self, batches: Sequence[int]) -> None:
        with self._lock:
            for batch in batches:
                self._kept.pop(batch, None)
        self._store.delete(map(self._paths.index, batches))

    def _empty_in_gap(self, batch: int) -> BatchIndex | None:
        return None if self.gaps.covering(batch) is None else BatchIndex(batch, 0, ())

    def _keep(self, index: BatchIndex) -> None:
        with self._lock:
            self._kept[index.batch] = index
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
