"""Retention: deletes old batches, and result objects that nobody will ever name.

An object of a published batch that its index does not name will never be named: an index is written once. An object of
a batch that is not published may still be, and stays. So it does not matter in which order things are read, nor how
many processes do this at the same time.

Indexes go before the objects that they name, so a reader that misses an object finds the index gone too, and knows
that the batch has expired. After a crash in between, the objects are found by the batch in their names.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

from elastic.errors import InvalidSetting
from elastic.results.indexes import Indexes
from elastic.results.paths import ResultPaths
from storage.stores.protocol import Entry, Store

_PORTION = 1_000  # deleted by one call: as many as S3 takes, and done long before a call times out
_AT_ONCE = 8  # indexes fetched at the same time by the first sweep of a process, which looks at all

_Item = TypeVar("_Item")


class Expired(NamedTuple):
    """What was deleted."""

    batches: int = 0
    objects: int = 0
    bytes: int = 0


class Expiry:
    """Deletes what the readers of one job no longer need.

    Costs a listing of all result objects, and the index of every batch that was published since the last time. What a
    node writes for a batch after that was looked at goes when the batch does.
    """

    def __init__(self, store: Store, paths: ResultPaths, indexes: Indexes) -> None:
        self._store = store
        self._paths = paths
        self._indexes = indexes
        self._swept = -1  # newest batch whose superfluous objects are gone

    def expire(self, published: range, keep: int, needed_from: int | None) -> tuple[int, Expired]:
        """The oldest batch that stays, and what was deleted."""
        if keep < 1:
            raise InvalidSetting("retain_result_batches", keep, "the newest batch must stay")
        if not published:
            return 0, Expired()
        oldest = published.stop - keep
        if needed_from is not None:
            oldest = min(oldest, needed_from)
        old = [batch for batch in self._indexes.listed() if batch < oldest]
        for some in _in_portions(old):
            self._indexes.delete(some)
        self._indexes.gaps.delete_before(oldest)
        garbage = list(self._garbage(oldest, published[-1]))
        for entries in _in_portions(garbage):
            self._store.delete(entry.key for entry in entries)
        self._swept = max(self._swept, published[-1])
        return oldest, Expired(len(old), len(garbage), sum(entry.size for entry in garbage))

    def _garbage(self, oldest: int, newest: int) -> Iterator[Entry]:
        by_batch = defaultdict(list)
        for entry in self._store.list(self._paths.data):
            by_batch[self._paths.batch_of_data(entry.key)].append(entry)
        for batch, entries in by_batch.items():
            if batch < oldest:
                yield from entries
        unswept = [batch for batch in by_batch if max(oldest, self._swept + 1) <= batch <= newest]
        named = self._named(unswept)
        for batch in unswept:
            yield from (entry for entry in by_batch[batch] if entry.key not in named)

    def _named(self, batches: Iterable[int]) -> set[str]:
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="expiry") as executor:
            found = executor.map(self._indexes.get, batches)
            return {ref.key for index in found if index is not None for ref in index.refs}


def _in_portions(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    return (items[start : start + _PORTION] for start in range(0, len(items), _PORTION))
