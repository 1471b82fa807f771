"""How manifests are stored: numbered objects, each either a whole manifest or the commit of one batch.

Committing every micro-batch must not rewrite a manifest of thousands of units. So an object
`manifest/<number>.manifest` is one of two things, with one sequence of numbers for both:

- *whole*: all of a `Manifest`; it names the whole object before it;
- *batch*: the log objects of one round of a batch; it names the whole object that it stands on.

The manifest of number n is its whole object with the batch commits after it, up to n. There is one sequence, and not
one for batch commits and one for manifests, because the number is the compare-and-swap: a driver that was fenced by
another one's manifest must lose its next batch commit too, and that happens only if both want the same key. Objects are
signed for their key, so none can replace another.

The collector deletes old numbers, and then they are free: a driver that slept for long could take one again. So an
entry is committed only if, after it was stored, no higher number exists (the highest one is never deleted). An entry
that is not committed is below the highest number, where no reader looks, and the collector deletes it with the others.
"""

from dataclasses import dataclass, replace
from typing import Any

from storage.codec import Json, Secret, pack, unpack
from storage.errors import AlreadyExists, ObjectMissing
from storage.state.batch_time import BatchTime, SourceBatch
from storage.state.manifest import Manifest
from storage.state.paths import Paths
from storage.state.refs import BEFORE_FIRST_BATCH, LogRef
from storage.stores.protocol import ObjectInfo, Store


@dataclass(frozen=True)
class BatchCommit:
    """One round of a batch as it is stored: what it adds to the manifest numbered one less."""

    number: int
    driver_id: str
    whole: int
    batch: int
    round: int
    complete: bool
    logs: tuple[LogRef, ...]
    time: BatchTime | None = None  # only with the first round
    source: SourceBatch | None = None  # likewise, if the source sent the batch
    published: int = BEFORE_FIRST_BATCH

    def apply_to(self, manifest: Manifest) -> Manifest:
        """Return the manifest with this round added; `manifest` is the one numbered one less."""
        changed = manifest.with_batch(
            self.batch, self.round, self.complete, self.logs, self.time, self.source, self.published
        )
        return replace(changed, number=self.number)

    def to_json(self) -> dict[str, Any]:
        logs = [ref.to_json() for ref in self.logs]
        time, source = self.time and self.time.to_json(), self.source and self.source.to_json()
        plain = {name: getattr(self, name) for name in ("number", "whole", "batch", "round", "complete", "published")}
        return {**plain, "controller": self.driver_id, "logs": logs, "time": time, "source": source}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "BatchCommit":
        logs = tuple(map(LogRef.from_json, document["logs"]))
        time = document["time"] and BatchTime.from_json(document["time"])
        source = document.get("source") and SourceBatch.from_json(document["source"])
        plain = {**document, "logs": logs, "time": time, "source": source}
        return cls(driver_id=plain.pop("controller"), **plain)


_KINDS: dict[str, type[Manifest] | type[BatchCommit]] = {"whole": Manifest, "batch": BatchCommit}


class ManifestLog:
    """The numbered objects of one operator's manifest: read them, and append the next one."""

    def __init__(self, store: Store, secret: Secret, operator: str) -> None:
        self._store = store
        self._secret = secret
        self._paths = Paths(operator)

    def append(self, entry: Manifest | BatchCommit) -> bool:
        """Store the entry under its number; False if that number or a higher one is taken: it is not committed then."""
        kind = next(kind for kind, entry_type in _KINDS.items() if isinstance(entry, entry_type))
        key = self._paths.manifest(entry.number)
        parts = {"entry": Json({"kind": kind, **entry.to_json()})}
        try:
            self._store.put_if_absent(key, pack(parts, key=key, secret=self._secret))
        except AlreadyExists:
            return False
        return self.newest_number() == entry.number

    def latest(self) -> Manifest | None:
        """Return the manifest with the highest number; a damaged one is refused, never skipped for an older one."""
        newest = self.newest_number()
        while newest:
            try:
                return self._read_manifest(newest)
            except ObjectMissing:
                # Deleted since it was listed; that happens only when there are newer ones.
                listed, newest = newest, self.newest_number()
                if newest == listed:
                    raise
        return None

    def newest_number(self) -> int:
        """Return the highest number that is taken; 0 if none is."""
        return max((self._paths.number_of_manifest(found.key) for found in self.list_objects()), default=0)

    def list_objects(self) -> list[ObjectInfo]:
        return list(self._store.list(self._paths.manifests))

    def before(self, manifest: Manifest) -> Manifest | None:
        """Return the whole manifest before the one that this stands on; None if there is none (any more)."""
        if manifest.previous_whole == 0:
            return None
        try:
            return self._read_whole(manifest.previous_whole)
        except ObjectMissing:
            return None

    def missing_error(self, number: int) -> ObjectMissing:
        """Return the error for an entry that is gone, even if an uncommitted one has taken its number since."""
        return ObjectMissing(self._store.url, self._paths.manifest(number))

    def _read_manifest(self, number: int) -> Manifest:
        newest = self.read_entry(number)
        if isinstance(newest, Manifest):
            return newest
        manifest = self._read_whole(newest.whole)
        for between in range(newest.whole + 1, number):
            commit = self.read_entry(between)
            if not isinstance(commit, BatchCommit) or commit.whole != newest.whole:
                raise self.missing_error(between)
            manifest = commit.apply_to(manifest)
        return newest.apply_to(manifest)

    def _read_whole(self, number: int) -> Manifest:
        entry = self.read_entry(number)
        if not isinstance(entry, Manifest):
            raise self.missing_error(number)
        return entry

    def read_entry(self, number: int) -> Manifest | BatchCommit:
        key = self._paths.manifest(number)
        found = unpack(self._store.get(key), key=key, secret=self._secret).parts["entry"]
        document = dict(found)
        return _KINDS[document.pop("kind")].from_json(document)
