"""Commits to the manifest, fencing and recovery.

A driver first *recovers*: it commits a whole manifest with the content of the latest one, under its own id and the next
number. That fences all other drivers: their next commit, of a batch or of anything else, wants a number that is taken,
and raises `NotOwner`; from then on they refuse to commit. Only then does the new driver close the leases that others
left: before, those others could still have committed states saved under them.

Every later commit takes the next number with `put_if_absent`. When the store does not answer, the commit is *in doubt*:
it may have happened, or may arrive late. The next commit first reads what is committed, so nothing is lost or done
twice; and no lease is closed while a commit is in doubt (see `Leases.close`).

On a store without conditional writes the numbers are the same, and `put_if_absent` looks before it writes: that is safe
for one driver at a time, and does not fence a driver that writes at the same moment.
"""

import secrets
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace

from storage.codec import Secret
from storage.errors import InvalidStorageInput, NotOwner
from storage.state.batch_time import BatchTime, SourceBatch
from storage.state.commit_rules import check_change, check_order, check_round, check_time, is_committed
from storage.state.leases import Leases
from storage.state.manifest import RELEASED_BY, Manifest
from storage.state.manifest_log import BatchCommit, ManifestLog
from storage.state.refs import BEFORE_FIRST_BATCH, LogRef
from storage.stores.protocol import Store

BATCHES_PER_WHOLE = 64  # small objects that a recovery reads one by one, at most: a fraction of a second
_MAX_RACES = 20  # lost in a row by a recovery; an old driver that wins them all is alive and busy


class Manifests:
    """The manifest of one operator, as one run of a driver reads and commits it: its `driver_id` is new every time.

    Safe to use from many threads of that driver, which opens its leases with `leases`.
    """

    def __init__(self, store: Store, secret: Secret, operator: str) -> None:
        self.operator = operator
        self.driver_id = secrets.token_hex(8)
        self.leases = Leases(store, operator, self)
        self._log = ManifestLog(store, secret, operator)
        self._lock = threading.RLock()
        self._since = 0  # number of the manifest with which this driver took over
        self._number = 0  # of the newest manifest that this driver knows to be its own
        self._known: Manifest | None = None  # the same in full; None while a commit is in doubt
        self._fenced_by = 0  # number of another driver's manifest

    @property
    def exists(self) -> bool:
        """Whether the operator has a manifest, whoever signed it."""
        return self._log.newest_number() > 0

    def latest(self) -> Manifest | None:
        """Return the latest manifest; None for an operator that never started. Any process may call this."""
        return self._log.latest()

    def recover(self, first: Manifest | None = None) -> Manifest:
        """Become the owner, fence the other drivers, close their leases, and return the manifest, unchanged.

        `first` is what an operator without a manifest starts with.
        """
        with self._lock:
            if not self._number:
                self._take_over(first)
            current = self._read_owned()
        self.leases.close(self.leases.list_opened_before(self._since))
        return current

    def create(self, first: Manifest) -> bool:
        """Commit the first manifest of an operator that nobody runs yet; False if it has one already."""
        with self._lock:
            created = self._set_number(
                replace(first, meta={**first.meta, RELEASED_BY: self.driver_id}, driver_id=self.driver_id), after=None
            )
            if self._log.newest_number() or not self._log.append(created):
                return False
            self._since = self._number = created.number
            self._known = created
            return True

    def commit(self, change: Callable[[Manifest], Manifest]) -> Manifest:
        """Commit `change(latest manifest)` as a whole manifest and return it.

        `change` may be called again if a commit before it was in doubt. New states must have been saved under leases
        that this driver holds; the epoch, the last batch, the low-water mark and the batches that a state includes
        never go back.
        """

        def entry(current: Manifest) -> Manifest:
            changed = change(current)
            check_change(self.operator, current, changed, self.leases.holds)
            return self._set_number(changed.without_old_log(), after=current)

        return self._append(entry)

    def release(self) -> None:
        """Note that this driver has ended, so that what must not run beside it need not fence it off."""
        self.commit(lambda current: replace(current, meta={**current.meta, RELEASED_BY: self.driver_id}))

    def commit_batch(
        self,
        batch: int,
        logs: Iterable[LogRef],
        *,
        round: int = 0,  # noqa: A002 - the word of the domain
        complete: bool = True,
        time: BatchTime | None = None,
        source: SourceBatch | None = None,
        published: int = BEFORE_FIRST_BATCH,
        change: Callable[[Manifest], Manifest] | None = None,
    ) -> Manifest:
        """Commit one round of a batch, with exactly these log objects; `complete` ends the batch.

        Small and quick, whatever the size of the manifest, unless there is a `change` of it: both are committed then,
        or neither. Committing a round again changes nothing: the manifest stays
        as it is, and newly logged objects and the new `time` are ignored. `time` and `source` come with round 0, and
        hold for all rounds. `published` is the newest batch whose results are published; recording it here is free.
        """
        logs = tuple(logs)
        check_round(batch, round, logs, time)

        def entry(current: Manifest) -> Manifest | BatchCommit | None:
            if is_committed(current, batch, round):
                return None
            check_order(current, batch, round)
            check_time(self.operator, current, time)
            if change is not None or current.number - current.whole >= BATCHES_PER_WHOLE:
                whole = current.with_batch(batch, round, complete, logs, time, source, published)
                if change is not None:
                    whole = change(whole)
                    check_change(self.operator, current, whole, self.leases.holds)
                return self._set_number(whole.without_old_log(), after=current)
            number, whole_number = current.number + 1, current.whole
            return BatchCommit(
                number, self.driver_id, whole_number, batch, round, complete, logs, time, source, published
            )

        return self._append(entry)

    def owned_number(self) -> int:
        """Return the number of the newest manifest of this driver."""
        with self._lock:
            if self._fenced_by:
                raise NotOwner(self.operator, self._number, self._fenced_by)
            if self._number == 0:
                raise InvalidStorageInput(f"this driver does not own {self.operator!r} yet. Call recover() first.")
            return self._number

    def resolve_in_doubt(self) -> None:
        """Return when no commit is in doubt: its number is taken, by it or by another one."""
        with self._lock:
            if self._number and not self._fenced_by and self._known is None:
                with suppress(NotOwner):  # then the number is another driver's
                    self.commit(lambda current: current)

    def _take_over(self, first: Manifest | None) -> None:
        for _ in range(_MAX_RACES):
            # An attempt that seems to fail may arrive later; then it has another driver's id, and is fenced too.
            self.driver_id = secrets.token_hex(8)
            latest = self._log.latest()
            taken_over = self._set_number(latest or first or Manifest.first(()), after=latest)
            if self._log.append(taken_over):
                self._since = self._number = taken_over.number
                self._known = taken_over
                return
        raise NotOwner(self.operator, 0, self._log.newest_number())

    def _append(self, entry_after: Callable[[Manifest], Manifest | BatchCommit | None]) -> Manifest:
        with self._lock:
            while True:
                current = self._read_owned()
                entry = entry_after(current)
                if entry is None:
                    return current
                self._known = None  # until the store has answered
                if self._log.append(entry):
                    self._number = entry.number
                    self._known = entry if isinstance(entry, Manifest) else entry.apply_to(current)
                    return self._known
                # An own commit that was in doubt came first, or another driver: the next iteration reads which.

    def _read_owned(self) -> Manifest:
        self.owned_number()
        if self._known is not None:
            return self._known
        latest = self._log.latest()
        if latest is None:
            raise self._log.missing_error(self._number)
        if latest.driver_id != self.driver_id:
            self._fenced_by = latest.number
            raise NotOwner(self.operator, self._number, latest.number)
        return latest

    def _set_number(self, manifest: Manifest, after: Manifest | None) -> Manifest:
        number = after.number + 1 if after else 1
        return replace(
            manifest,
            number=number,
            driver_id=self.driver_id,
            whole=number,
            previous_whole=after.whole if after else 0,
        )
