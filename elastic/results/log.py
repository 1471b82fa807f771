"""The result log: what a job gives out, batch by batch, each result once.

Nodes *write* result objects under names of their own; nobody sees them yet. When all slots have applied a batch, the
controller *publishes* it: one index object, written with `put_if_absent`, names the objects that count. Whoever is
first wins, and the other's objects stay invisible; since a replay is deterministic, both hold the same rows. Batches
are published in order, so a reader's whole position is one number. Batches that a job processed without keeping results
are marked as a gap, which readers pass over.
"""

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa

from elastic.errors import ResultsExpired
from elastic.results.errors import NotPublished, OutOfOrder
from elastic.results.expiry import Expired, Expiry
from elastic.results.frontier import Frontier
from elastic.results.indexes import Indexes
from elastic.results.objects import PLACE, ResultObjects
from elastic.results.paths import ResultPaths
from elastic.results.refs import BatchIndex, ResultRef
from storage.codec import Secret
from storage.errors import AlreadyExists, ObjectMissing
from storage.stores.protocol import Store


class ResultLog:
    """The results of one job; safe to use from many threads and processes."""

    def __init__(self, store: Store, secret: Secret, job: str, *, compression: str = "auto") -> None:
        self.job = job
        self._store = store
        self._paths = ResultPaths(job)
        self._objects = ResultObjects(store, secret, self._paths, compression)
        self._indexes = Indexes(store, secret, self._paths)
        self._frontier = Frontier(self._indexes.is_there, self._indexes.listed_runs)
        self._expiry = Expiry(store, self._paths, self._indexes)

    def write(
        self,
        batch: int,
        round: int,  # noqa: A002 - the word of the domain
        slots: Sequence[int],
        tables: Mapping[str, pa.Table],
        quarantined: pa.Table | None = None,
    ) -> ResultRef:
        """Make durable what some slots made in one round; it counts when the batch is published with the ref.

        `tables` are by stage, and have a column `_slot`, as has `quarantined`. Costs one put, and none without rows.
        """
        return self._objects.write(batch, round, slots, tables, quarantined)

    def publish(self, batch: int, refs: Iterable[ResultRef], timestamp_ms: int) -> bool:
        """Make the batch visible with exactly these results; False if it was published before, and that counts.

        Costs one put. `OutOfOrder` before the batch that precedes it; the first one may have any number.
        """
        index = BatchIndex(batch, timestamp_ms, tuple(refs)).without_empty()
        if not self._is_next(batch):
            return False
        won = self._indexes.put_if_absent(index)
        self._frontier.published(batch)
        return won

    def mark_gap(self, through: int) -> range:
        """Mark the batches up to `through` that are not published as a gap; returns them, possibly none."""
        newest = max(self._frontier.look_at_all(), default=-1)
        missing = range(newest + 1, through + 1)
        if missing:
            self._indexes.gaps.add(missing)
            self._frontier.look_at_all()
        return missing

    def gap_at(self, batch: int) -> range | None:
        """The gap that holds the batch, if one does."""
        return self._indexes.gaps.covering(batch)

    def published(self, since: int | None = None) -> range:
        """All batches that can be read, oldest to newest; empty before the first. See `Frontier.look` for the cost."""
        return self._frontier.look(since)

    @property
    def known(self) -> range:
        """What the last look found; costs nothing."""
        return self._frontier.known

    def index(self, batch: int) -> BatchIndex:
        """Which objects hold a batch's results; `ResultsExpired` or `NotPublished` if it cannot be read."""
        found = self._indexes.get(batch)
        if found is not None:
            return found
        there = self._frontier.look_at_all()
        if batch >= there.stop:
            raise NotPublished(batch, there.stop - 1)
        if batch < there.start:
            raise ResultsExpired(batch, there.start)
        return self.index(batch)  # it was published this moment

    def read(self, batch: int, stage: str) -> pa.Table:
        """The rows of a stage, with `_batch` and `_task`, in order of slots, then rounds.

        Without rows, those two are all its columns.
        """
        rows = self.read_objects(self.index(batch).refs, stage)
        return PLACE.empty_table() if rows is None else rows

    def read_objects(self, refs: Sequence[ResultRef], stage: str) -> pa.Table | None:
        """The same from some objects of one batch; None if they have no such rows."""
        try:
            return self._objects.rows(refs, stage)
        except ObjectMissing as missing:
            raise self._gone(refs[0].batch, missing) from None

    def quarantined(self, batch: int) -> pa.Table:
        """The rows that operators failed on, with their errors; fetches only objects that hold some."""
        refs = self.index(batch).refs
        try:
            rows = self._objects.quarantined(refs)
        except ObjectMissing as missing:
            raise self._gone(batch, missing) from None
        return PLACE.empty_table() if rows is None else rows

    def expire(self, keep: int, needed_from: int | None = None) -> Expired:
        """Delete all but the newest `keep` batches, and objects that were written and never counted.

        Batches from `needed_from` on stay, however many they are: a sink has not got them yet.
        """
        oldest, expired = self._expiry.expire(self._frontier.look_at_all(), keep, needed_from)
        self._frontier.expired(before=oldest)
        return expired

    def identity(self) -> str:
        """A name for this run of batch numbers: a job that starts anew in an emptied store gets another."""
        try:
            found = self._store.get(self._paths.identity)
        except ObjectMissing:
            mine = json.dumps({"results": secrets.token_hex(8)}).encode()
            with suppress(AlreadyExists):
                self._store.put_if_absent(self._paths.identity, mine)
            found = self._store.get(self._paths.identity)
        return str(json.loads(bytes(found.data))["results"])

    def _is_next(self, batch: int) -> bool:
        """Whether it is still to be published, and everything before it is."""
        known = self.known
        if not known or batch != known.stop:
            known = self.published()
        if known and batch > known.stop:
            known = self._frontier.look_at_all()  # another process may have published, and let expire, all that we knew
        if known and batch > known.stop:
            raise OutOfOrder(batch, known.stop)
        return not known or batch == known.stop

    def _gone(self, batch: int, missing: ObjectMissing) -> Exception:
        """Why an object is not there: its batch has expired since its index was read, or it is truly lost."""
        if self._indexes.is_there(batch):
            return missing
        return ResultsExpired(batch, self._frontier.look_at_all().start)
