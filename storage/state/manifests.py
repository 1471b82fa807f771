"""Who may change what is true: commits, fencing and recovery.

A controller first *recovers*: it commits a whole manifest that says what the latest one said, under its own id and the
next number. That fences all others: their next commit, of a batch or of anything, wants a number that is taken, and
raises `NotOwner`; from then on they refuse to commit at all. Only then does the new controller abandon the leases that
others left: before, those others could still have committed states saved under them.

Every later commit takes the next number with `put_if_absent`. When the store gives no answer, the commit is *in doubt*:
it may count, or arrive late. The next commit reads first what counts, so nothing is lost or done twice; and no lease is
closed while a commit is in doubt (see `Leases.abandon`).

On a store without conditional writes the numbers are the same, and `put_if_absent` looks before it writes: that is safe
for one controller at a time, and fences nobody who writes in the same instant.
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
from storage.state.journal import BatchCommit, Journal
from storage.state.leases import Leases
from storage.state.manifest import Manifest
from storage.state.refs import BEFORE_FIRST_BATCH, LogRef
from storage.stores.protocol import Store

BATCHES_PER_WHOLE = 64  # small objects that a recovery reads one by one, at most: a fraction of a second
_RACES = 20  # lost in a row by a recovery; an old controller that wins them all is alive and busy


class Manifests:
    """The manifest of one operator, for one controller in its one life: the id is new every time.

    Safe to use from many threads of that controller. `leases` are the ones that it may open.
    """

    def __init__(self, store: Store, secret: Secret, operator: str) -> None:
        self.operator = operator
        self.controller = secrets.token_hex(8)
        self.leases = Leases(store, operator, self)
        self._journal = Journal(store, secret, operator)
        self._lock = threading.RLock()
        self._since = 0  # number of the manifest with which this controller took over
        self._number = 0  # of the newest manifest that this controller knows to be its own
        self._known: Manifest | None = None  # the same in full; None while a commit is in doubt
        self._fenced_by = 0  # number of another controller's manifest

    def latest(self) -> Manifest | None:
        """What is true now, for anybody; None for an operator that never started. Changes nothing."""
        return self._journal.latest()

    def recover(self, first: Manifest | None = None) -> Manifest:
        """Become the owner, fence the others off, and clear away their leases; what was true stays true.

        `first` is what an operator without a manifest starts with.
        """
        with self._lock:
            if not self._number:
                self._take_over(first)
            current = self._owned()
        self.leases.abandon(self.leases.opened_before(self._since))
        return current

    def commit(self, change: Callable[[Manifest], Manifest]) -> Manifest:
        """Make `change(what is true)` true, as a whole manifest.

        `change` may be called again if a commit before it was in doubt. New states must have been saved under leases
        that this controller holds; the epoch, the last batch, the low-water mark and what a state includes never go
        back.
        """

        def entry(current: Manifest) -> Manifest:
            changed = change(current)
            check_change(self.operator, current, changed, self.leases.holds)
            return self._numbered(changed.without_old_log(), after=current)

        return self._append(entry)

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
    ) -> Manifest:
        """Make one round of a batch count, with exactly these log objects; the batch is over when it is `complete`.

        Small and quick, whatever the size of the manifest. What was committed before changes nothing: a replayed batch
        gets the manifest as it is, and its newly logged objects and its `time` stay invisible: what counts is what was
        committed first. `time` and `source` come with round 0, and hold for all rounds. `published` is the newest batch
        whose results are published by now; it costs nothing to record here.
        """
        logs = tuple(logs)
        check_round(batch, round, logs, time)

        def entry(current: Manifest) -> Manifest | BatchCommit | None:
            if is_committed(current, batch, round):
                return None
            check_order(current, batch, round)
            check_time(self.operator, current, time)
            if current.number - current.whole >= BATCHES_PER_WHOLE:
                whole = current.with_batch(batch, round, complete, logs, time, source, published)
                return self._numbered(whole.without_old_log(), after=current)
            number, whole_number = current.number + 1, current.whole
            return BatchCommit(
                number, self.controller, whole_number, batch, round, complete, logs, time, source, published
            )

        return self._append(entry)

    def owned_number(self) -> int:
        """The number of the newest manifest of this controller."""
        with self._lock:
            if self._fenced_by:
                raise NotOwner(self.operator, self._number, self._fenced_by)
            if self._number == 0:
                raise InvalidStorageInput(f"this controller does not own {self.operator!r} yet. Call recover() first.")
            return self._number

    def settle(self) -> None:
        """Return when no commit is in doubt: its number is taken, by it or by another one."""
        with self._lock:
            if self._number and not self._fenced_by and self._known is None:
                with suppress(NotOwner):  # then the number is another controller's
                    self.commit(lambda current: current)

    def _take_over(self, first: Manifest | None) -> None:
        for _ in range(_RACES):
            # An attempt that seems to fail may count later; then it was another controller's, and is fenced off too.
            self.controller = secrets.token_hex(8)
            latest = self._journal.latest()
            taken_over = self._numbered(latest or first or Manifest.first(()), after=latest)
            if self._journal.append(taken_over):
                self._since = self._number = taken_over.number
                self._known = taken_over
                return
        raise NotOwner(self.operator, 0, self._journal.newest_number())

    def _append(self, entry_after: Callable[[Manifest], Manifest | BatchCommit | None]) -> Manifest:
        with self._lock:
            while True:
                current = self._owned()
                entry = entry_after(current)
                if entry is None:
                    return current
                self._known = None  # until the store has answered
                if self._journal.append(entry):
                    self._number = entry.number
                    self._known = entry if isinstance(entry, Manifest) else entry.after(current)
                    return self._known
                # An own commit that was in doubt came first, or another controller: the next look tells.

    def _owned(self) -> Manifest:
        self.owned_number()
        if self._known is not None:
            return self._known
        latest = self._journal.latest()
        if latest is None:
            raise self._journal.missing(self._number)
        if latest.controller != self.controller:
            self._fenced_by = latest.number
            raise NotOwner(self.operator, self._number, latest.number)
        return latest

    def _numbered(self, manifest: Manifest, after: Manifest | None) -> Manifest:
        number = after.number + 1 if after else 1
        return replace(
            manifest,
            number=number,
            controller=self.controller,
            whole=number,
            previous_whole=after.whole if after else 0,
        )
