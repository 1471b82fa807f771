"""A new secret for a stopped operator: every object that its manifest needs is signed anew, all or none.

1. *Take over*: a manifest of this driver, signed with the old secret, fences every other driver.
2. *Sign twice*: every needed object is replaced by itself with two signatures, so that either secret reads it.
3. *Commit*: the next manifest is signed with the new secret only, and names no manifest before it.
4. *Finish*: older manifests and what no manifest needs are deleted; the old signatures are removed.

The manifest decides: before 3 the old secret opens it, and with it everything; from 3 on the new secret does, and the
old one is refused. So at every moment exactly one of them works for the whole operator, whatever is killed where. A
repeated call goes on where the last one ended: before 3 it takes over again, after 3 it finishes.
"""

import secrets
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

from storage.codec import Secret, replace_signatures
from storage.errors import ForeignObject, InvalidStorageInput, NotOwner, OperatorInUse, UnknownOperator
from storage.state.manifest import RELEASED_BY, Manifest
from storage.state.manifest_log import ManifestLog
from storage.state.paths import Paths
from storage.stores.protocol import Store

_THREADS = 8
_UNSIGNED = ".json"  # leases, the journal and the identity of results


class Resigned(NamedTuple):
    """The result of a call: objects that are signed with the new secret now, and objects that were deleted."""

    signed: int
    deleted: int


def resign(store: Store, operator: str, old: Secret, new: Secret, *, fence: bool = False) -> Resigned:
    """Sign all objects of an operator with a new secret instead of the old one, atomically; safe to repeat.

    Raises `OperatorInUse` if a driver may be running; `fence` ends it instead, at its next commit. Raises
    `ForeignObject` if neither secret opens the operator, and `BadObject` for a damaged object; the old secret is in
    force then as before.
    """
    if old == new:
        raise InvalidStorageInput("the new secret is the old one. Give another secret, such as Secret.random().")
    return _Resigning(store, operator, old, new, fence=fence).run()


class _Resigning:
    """One call."""

    def __init__(self, store: Store, operator: str, old: Secret, new: Secret, *, fence: bool) -> None:
        self._store = store
        self._operator = operator
        self._old = old
        self._new = new
        self._fence = fence
        self._driver_id = secrets.token_hex(8)
        self._paths = Paths(operator)
        self._logs = {secret: ManifestLog(store, secret, operator) for secret in (old, new)}

    def run(self) -> Resigned:
        if not self._logs[self._old].newest_number():
            raise UnknownOperator(self._operator, self._store.url)
        try:
            latest = self._logs[self._old].latest()
        except ForeignObject:
            committed = self._take_over(self._logs[self._new].latest(), self._new)
        else:
            taken = self._take_over(latest, self._old)
            self._replace_all(self._list_needed(taken), taken, [self._old, self._new])
            committed = self._append(replace(taken, previous_whole=0), taken, self._new)
        deleted = self._delete_unneeded(committed)
        needed = self._list_needed(committed)
        self._replace_all(needed, committed, [self._new])
        return Resigned(len(needed), deleted)

    def _take_over(self, latest: Manifest | None, secret: Secret) -> Manifest:
        """Commit a manifest of this driver, which has ended as far as others can tell: only a call repeats it."""
        assert latest is not None  # noqa: S101 - for the type checker; `run` has seen a manifest
        if not latest.is_released and not self._fence:
            raise OperatorInUse(self._operator, latest.driver_id, latest.number)
        return self._append(replace(latest, previous_whole=latest.whole), latest, secret)

    def _append(self, manifest: Manifest, after: Manifest, secret: Secret) -> Manifest:
        """Commit a whole manifest next; `NotOwner` if another driver was first."""
        number = after.number + 1
        entry = replace(
            manifest,
            number=number,
            whole=number,
            driver_id=self._driver_id,
            meta={**manifest.meta, RELEASED_BY: self._driver_id},
        )
        if not self._logs[secret].append(entry):
            raise NotOwner(self._operator, after.number, self._logs[secret].newest_number())
        return entry

    def _list_needed(self, manifest: Manifest) -> list[str]:
        """Return the signed objects that the operator needs besides its manifest: results and descriptions too."""
        needed = [ref.key for ref in manifest.units.values() if ref] + [self._paths.log(ref) for ref in manifest.log]
        own = (self._paths.states, self._paths.logs, self._paths.manifests, self._paths.leases)
        others = [entry.key for entry in self._store.list(self._paths.root)]
        return needed + [key for key in others if not key.startswith(own) and not key.endswith(_UNSIGNED)]

    def _replace_all(self, keys: Iterable[str], owned: Manifest, wanted: list[Secret]) -> None:
        """Let these objects have exactly the `wanted` signatures, as long as `owned` is the newest manifest."""

        def replace_one(key: str) -> None:
            found = self._store.get(key)
            replaced = replace_signatures(found, key=key, known=[self._old, self._new], wanted=wanted)
            if replaced is not None:
                self._check_owner(owned)
                self._store.put(key, replaced)

        self._in_parallel(replace_one, keys)

    def _check_owner(self, owned: Manifest) -> None:
        """Raise `NotOwner` if a driver has started: it may delete an object that a put would bring back."""
        newest = self._logs[self._new].newest_number()
        if newest != owned.number:
            raise NotOwner(self._operator, owned.number, newest)

    def _delete_unneeded(self, manifest: Manifest) -> int:
        """Delete older manifests, and states, log objects and leases that this one does not name."""
        named = {*self._list_needed(manifest), self._paths.manifest(manifest.number)}
        prefixes = (self._paths.manifests, self._paths.leases, self._paths.states, self._paths.logs)
        garbage = [e.key for prefix in prefixes for e in self._store.list(prefix) if e.key not in named]
        self._check_owner(manifest)
        self._store.delete(garbage)
        return len(garbage)

    def _in_parallel(self, work: Callable[[str], None], keys: Iterable[str]) -> None:
        with ThreadPoolExecutor(_THREADS, thread_name_prefix=f"resign-{self._operator}") as executor:
            for future in [executor.submit(work, key) for key in keys]:
                try:
                    future.result()
                except BaseException:
                    executor.shutdown(cancel_futures=True)
                    raise
