"""The result log: the results of a job, batch by batch, each exactly once.

Nodes *write* result objects, which readers do not see yet. When all units have applied a batch, the driver *publishes*
it: one index object, written with `put_if_absent`, names the objects that belong to the batch. If two drivers publish
the same batch, the first wins and the objects of the second are never read; since a replay is deterministic, both hold
the same rows. Batches are published in order, so one number is a reader's whole position. Batches that a job processed
without keeping results are marked as a gap, which readers skip.
"""

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa

from elastic.errors import ResultsExpired
from elastic.results.errors import BatchOutOfOrder, NotPublished
from elastic.results.expiry import ExpiredResults, Expiry
from elastic.results.indexes import Indexes
from elastic.results.objects import ORIGIN, ResultObjects
from elastic.results.paths import ResultPaths
from elastic.results.published_range import PublishedRange
from elastic.results.refs import BatchIndex, ResultRef
from storage.codec import Secret
from storage.errors import AlreadyExists, ObjectMissing
from storage.stores.protocol import Store


class ResultLog:
    """The results of one job; safe to use from several threads and processes."""

    def __init__(self, store: Store, secret: Secret, job: str, *, compression: str = "auto") -> None:
        self.job = job
        self._store = store
        self._paths = ResultPaths(job)
        self._objects = ResultObjects(store, secret, self._paths, compression)
        self._indexes = Indexes(store, secret, self._paths)
        self._published = PublishedRange(self._indexes.is_published, self._indexes.list_ranges)
        self._expiry = Expiry(store, self._paths, self._indexes)

    def write(
        self,
        batch: int,
        round: int,  # noqa: A002 - the word of the domain
        unit_numbers: Sequence[int],
        tables: Mapping[str, pa.Table],
        quarantined: pa.Table | None = None,
    ) -> ResultRef:
        """Store what some units emitted in one round; publishing the batch with the returned ref makes it readable.

        `tables` are by stage; they and `quarantined` have a column `UNIT` of unit numbers. Costs one put, and none
        without rows.
        """
        return self._objects.write(batch, round, unit_numbers, tables, quarantined)

    def publish(self, batch: int, refs: Iterable[ResultRef], timestamp_ms: int) -> bool:
        """Publish the batch with exactly these results; return False, and change nothing, if it already is published.

        Costs one put. Raises `BatchOutOfOrder` before the batch's predecessor; the first batch may have any number.
        """
        index = BatchIndex(batch, timestamp_ms, tuple(refs)).without_empty()
        if not self._is_next(batch):
            return False
        is_first = self._indexes.put_if_absent(index)
        self._published.note_published(batch)
        return is_first

    def mark_gap(self, through: int) -> range:
        """Mark the unpublished batches up to `through` as a gap; return them, possibly none."""
        newest = max(self._published.refresh(), default=-1)
        missing = range(newest + 1, through + 1)
        if missing:
            self._indexes.gaps.add(missing)
            self._published.refresh()
        return missing

    def find_gap(self, batch: int) -> range | None:
        """Return the gap that contains the batch, or None."""
        return self._indexes.gaps.find(batch)

    def poll(self, since: int | None = None) -> range:
        """Return the batches that can be read, oldest to newest; empty before the first. Cost: see `PublishedRange`."""
        return self._published.poll(since)

    @property
    def known(self) -> range:
        """The range that the last poll found; costs no request."""
        return self._published.known

    def index(self, batch: int) -> BatchIndex:
        """Return the index of a batch; raises `ResultsExpired` or `NotPublished` if it cannot be read."""
        found = self._indexes.get(batch)
        if found is not None:
            return found
        published = self._published.refresh()
        if batch >= published.stop:
            raise NotPublished(batch, published.stop - 1)
        if batch < published.start:
            raise ResultsExpired(batch, published.start)
        return self.index(batch)  # published since the first request

    def read(self, batch: int, stage: str) -> pa.Table:
        """Read the rows of a stage, with columns `_batch` and `_task`, in order of units, then rounds.

        A table without rows has only these two columns.
        """
        rows = self.read_objects(self.index(batch).refs, stage)
        return ORIGIN.empty_table() if rows is None else rows

    def read_objects(self, refs: Sequence[ResultRef], stage: str) -> pa.Table | None:
        """Read the same from some objects of one batch; None if they hold no rows of the stage."""
        try:
            return self._objects.read_rows(refs, stage)
        except ObjectMissing as missing:
            raise self._explain_missing(refs[0].batch, missing) from None

    def read_quarantined(self, batch: int) -> pa.Table:
        """Read the rows on which operators failed, with their errors; fetches only objects that hold some."""
        refs = self.index(batch).refs
        try:
            rows = self._objects.read_quarantined(refs)
        except ObjectMissing as missing:
            raise self._explain_missing(batch, missing) from None
        return ORIGIN.empty_table() if rows is None else rows

    def expire(self, keep: int, needed_from: int | None = None) -> ExpiredResults:
        """Delete all but the newest `keep` batches, and objects that no index names; return what was deleted.

        Batches from `needed_from` on are kept, however many: the sink does not have them yet.
        """
        oldest, expired = self._expiry.expire(self._published.refresh(), keep, needed_from)
        self._published.note_expired(before=oldest)
        return expired

    def read_identity(self) -> str:
        """Return the identity of this sequence of batches, created on first use. A new start has another."""
        try:
            found = self._store.get(self._paths.identity)
        except ObjectMissing:
            mine = json.dumps({"results": secrets.token_hex(8)}).encode()
            with suppress(AlreadyExists):
                self._store.put_if_absent(self._paths.identity, mine)
            found = self._store.get(self._paths.identity)
        return str(json.loads(bytes(found))["results"])

    def _is_next(self, batch: int) -> bool:
        """Return whether the batch is unpublished and all its predecessors are published."""
        known = self.known
        if not known or batch != known.stop:
            known = self.poll()
        if known and batch > known.stop:
            known = self._published.refresh()  # another process may have published more, and expired all known ones
        if known and batch > known.stop:
            raise BatchOutOfOrder(batch, known.stop)
        return not known or batch == known.stop

    def _explain_missing(self, batch: int, missing: ObjectMissing) -> Exception:
        """Return the error for a missing object: its batch has expired since its index was read, or it is lost."""
        if self._indexes.is_published(batch):
            return missing
        return ResultsExpired(batch, self._published.refresh().start)
