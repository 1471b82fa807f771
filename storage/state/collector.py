"""Garbage collection: deletes what is provably not needed any more, at any time, by any process, without clocks.

The order of reading makes it safe. A collection reads (1) the names of all states, log objects and manifests, then
(2) the open leases, then (3) the latest manifest and the ones before it; then it deletes only names from (1).

A *state* is deleted if no manifest from (3) names it and its lease was not open at (2). Suppose that some manifest, now
or later, needs it. It was saved under its lease, which was open before the state existed, so before (1). A lease is
closed only after the commit that names the state. If the lease was open at (2), the state stays. If it was closed at
(2), that commit was before (2), so (3) sees it: the state is named there, or was replaced since, and no commit brings
it back, because new states need leases that are held.

A *lease* of another driver than the latest manifest's protects nothing, and is deleted. Only owners open leases, after
a commit of their own; at (3), after (2), another driver is the owner, so the lease's driver was fenced before.

*Manifests* that readers may still use are kept with all that they name: the newest `keep`, the one that was the latest
at (1), and all since the oldest open lease. So a reader that opens a lease and then reads the manifest loses nothing:
if the lease did not exist at (2), it is newer than (1).

*Log* objects are deleted when their batch is at or below the low-water mark of the oldest manifest that is kept. Input
that was appended and never committed is deleted with its batch.
"""

from typing import NamedTuple

from storage.codec import Secret
from storage.errors import InvalidStorageInput
from storage.state.leases import LeaseId
from storage.state.manifest import Manifest
from storage.state.manifest_log import ManifestLog
from storage.state.paths import Paths
from storage.stores.protocol import ObjectInfo, Store


class CollectionResult(NamedTuple):
    """The number of objects that a collection deleted, by kind, and their bytes."""

    states: int = 0
    logs: int = 0
    manifests: int = 0
    leases: int = 0
    bytes: int = 0


class Collector:
    """Deletes the garbage of one operator. Any number may run at once, next to any number of drivers."""

    def __init__(self, store: Store, secret: Secret, operator: str, *, keep: int = 3) -> None:
        if keep < 1:
            raise InvalidStorageInput(f"keep={keep} would delete the latest manifest. Keep at least one.")
        self._store = store
        self._paths = Paths(operator)
        self._log = ManifestLog(store, secret, operator)
        self._keep = keep

    def collect(self) -> CollectionResult:
        """Delete all garbage that there is now."""
        states = list(self._store.list(self._paths.states))
        logs = list(self._store.list(self._paths.logs))
        manifests = self._log.list_objects()
        leases = {self._paths.lease_of_file(entry.key): entry for entry in self._store.list(self._paths.leases)}
        latest = self._log.latest()
        if latest is None:
            return CollectionResult()  # the first driver has not committed yet: nothing is known to be garbage

        parsed = {lease: LeaseId.parse(lease) for lease in leases}
        opened = {lease: parsed[lease].number for lease in leases if parsed[lease].driver_id == latest.driver_id}
        newest_listed = max((self._paths.number_of_manifest(entry.key) for entry in manifests), default=0)
        kept = self._read_kept(latest, pinned=min([newest_listed, *opened.values()]))
        named = {ref.key for manifest in kept for ref in manifest.units.values() if ref}
        oldest = kept[-1]
        return self._delete(
            states=[e for e in states if e.key not in named and self._paths.lease_of_state(e.key) not in opened],
            logs=[e for e in logs if self._paths.batch_of_log(e.key) <= oldest.low_water_mark],
            manifests=[e for e in manifests if self._paths.number_of_manifest(e.key) < oldest.whole],
            leases=[entry for lease, entry in leases.items() if lease not in opened],
        )

    def _read_kept(self, latest: Manifest, pinned: int) -> list[Manifest]:
        """Return whole manifests, newest first, back to the one that number `pinned` stands on, at least `keep`."""
        kept = [latest]
        while len(kept) < self._keep or kept[-1].whole > pinned:
            older = self._log.before(kept[-1])
            if older is None:
                break  # the first one, or another collector has deleted it
            kept.append(older)
        return kept

    def _delete(self, **garbage: list[ObjectInfo]) -> CollectionResult:
        entries = [entry for kind in garbage.values() for entry in kind]
        self._store.delete(entry.key for entry in entries)
        counts = {kind: len(found) for kind, found in garbage.items()}
        return CollectionResult(**counts, bytes=sum(entry.size for entry in entries))
