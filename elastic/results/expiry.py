"""Retention: deletes old batches, and result objects that no index will ever name.

An index is written once, so an object of a published batch that the index does not name is garbage. An object of an
unpublished batch may still be named, and is kept. Hence neither the order of the reads nor the number of processes that
expire concurrently matters.

Indexes are deleted before the objects that they name: a reader that misses an object finds the index gone too, and
knows that the batch has expired. After a crash in between, the objects are found by the batch in their keys.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from elastic import threads
from elastic.errors import InvalidSetting
from elastic.results.indexes import Indexes
from elastic.results.paths import ResultPaths
from storage.stores.protocol import ObjectInfo, Store

_DELETE_LIMIT = 1_000  # keys per delete call: the limit of S3, and far below any timeout
_PARALLEL_READS = 8  # indexes fetched concurrently; the first sweep of a process reads all of them

_Item = TypeVar("_Item")


class ExpiredResults(NamedTuple):
    """Counts of what was deleted."""

    batches: int = 0
    objects: int = 0
    bytes: int = 0


class Expiry:
    """Deletes the expired batches and unnamed objects of one job.

    Costs a listing of all result objects, and the index of every batch that was published since the last sweep. An
    object that a node writes for a batch after its sweep is deleted together with the batch.
    """

    def __init__(self, store: Store, paths: ResultPaths, indexes: Indexes) -> None:
        self._store = store
        self._paths = paths
        self._indexes = indexes
        self._swept = -1  # newest batch whose unnamed objects are deleted

    def expire(self, published: range, keep: int, needed_from: int | None) -> tuple[int, ExpiredResults]:
        """Delete what may expire; return the oldest batch that is kept, and what was deleted."""
        if keep < 1:
            raise InvalidSetting("retain_result_batches", keep, "keep at least the newest batch")
        if not published:
            return 0, ExpiredResults()
        oldest = published.stop - keep
        if needed_from is not None:
            oldest = min(oldest, needed_from)
        old = [batch for batch in self._indexes.list_batches() if batch < oldest]
        for batches in _chunks(old):
            self._indexes.delete(batches)
        self._indexes.gaps.delete_before(oldest)
        garbage = list(self._find_garbage(oldest, published[-1]))
        for entries in _chunks(garbage):
            self._store.delete(entry.key for entry in entries)
        self._swept = max(self._swept, published[-1])
        return oldest, ExpiredResults(len(old), len(garbage), sum(entry.size for entry in garbage))

    def _find_garbage(self, oldest: int, newest: int) -> Iterator[ObjectInfo]:
        by_batch = defaultdict(list)
        for entry in self._store.list(self._paths.data):
            by_batch[self._paths.batch_of_data(entry.key)].append(entry)
        for batch, entries in by_batch.items():
            if batch < oldest:
                yield from entries
        unswept = [batch for batch in by_batch if max(oldest, self._swept + 1) <= batch <= newest]
        named = self._read_named_keys(unswept)
        for batch in unswept:
            yield from (entry for entry in by_batch[batch] if entry.key not in named)

    def _read_named_keys(self, batches: Iterable[int]) -> set[str]:
        with threads.ThreadPool(_PARALLEL_READS, "expiry") as executor:
            found = executor.map(self._indexes.get, batches)
            return {ref.key for index in found if index is not None for ref in index.refs}


def _chunks(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    return (items[start : start + _DELETE_LIMIT] for start in range(0, len(items), _DELETE_LIMIT))
