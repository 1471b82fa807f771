"""How manifests are stored: numbered objects, each either a whole manifest or the commit of one batch.

Committing every micro-batch must not rewrite a manifest of thousands of units. So an object
`manifest/<number>.manifest` is one of two things, with one sequence of numbers for both:

- *whole*: all of a `Manifest`; it names the whole object before it;
- *batch*: the log objects of one round of a batch; it names the whole object that it stands on.

The manifest of number n is its whole object with the batch commits after it, up to n. One sequence, and not a folder
of batch commits next to one of manifests, because the number is the compare-and-swap: a controller that was fenced off
by another one's manifest must lose its next batch commit too, and that happens only if both want the same key.
Objects are signed for their key, so none can stand in for another.

Old numbers are collected, and then they are free: a controller that slept for long could take one again. So an entry
counts only if, after it was stored, no higher number is there (the highest one is never collected). One that does not
count is below the highest number, where no reader looks, and is collected with the old ones.
"""

from dataclasses import dataclass, replace
from typing import Any

from storage.codec import Json, Secret, pack, unpack
from storage.errors import AlreadyExists, ObjectMissing
from storage.state.batch_time import BatchTime, SourceBatch
from storage.state.manifest import Manifest
from storage.state.paths import Paths
from storage.state.refs import BEFORE_FIRST_BATCH, LogRef
from storage.stores.protocol import Entry, Store


@dataclass(frozen=True)
class BatchCommit:
    """One round of a batch as it is stored: what it adds to the manifest numbered one less."""

    number: int
    controller: str
    whole: int
    batch: int
    round: int
    complete: bool
    logs: tuple[LogRef, ...]
    time: BatchTime | None = None  # given with the first round
    source: SourceBatch | None = None  # likewise, if the source sent the batch
    published: int = BEFORE_FIRST_BATCH

    def after(self, manifest: Manifest) -> Manifest:
        changed = manifest.with_batch(
            self.batch, self.round, self.complete, self.logs, self.time, self.source, self.published
        )
        return replace(changed, number=self.number)

    def to_json(self) -> dict[str, Any]:
        logs = [ref.to_json() for ref in self.logs]
        time, source = self.time and self.time.to_json(), self.source and self.source.to_json()
        return {**vars(self), "logs": logs, "time": time, "source": source}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "BatchCommit":
        logs = tuple(map(LogRef.from_json, document["logs"]))
        time = document["time"] and BatchTime.from_json(document["time"])
        source = document.get("source") and SourceBatch.from_json(document["source"])
        return cls(**{**document, "logs": logs, "time": time, "source": source})


_KINDS: dict[str, type[Manifest] | type[BatchCommit]] = {"whole": Manifest, "batch": BatchCommit}


class Journal:
    """The numbered objects of one operator's manifest: read them, and append where nothing is yet."""

    def __init__(self, store: Store, secret: Secret, operator: str) -> None:
        self._store = store
        self._secret = secret
        self._paths = Paths(operator)

    def append(self, entry: Manifest | BatchCommit) -> bool:
        """Store under the entry's number; whether it counts. It does not if that number, or a higher one, is taken."""
        kind = next(kind for kind, made in _KINDS.items() if isinstance(entry, made))
        key = self._paths.manifest(entry.number)
        parts = {"entry": Json({"kind": kind, **entry.to_json()})}
        try:
            self._store.put_if_absent(key, pack(parts, key=key, secret=self._secret))
        except AlreadyExists:
            return False
        return self.newest_number() == entry.number

    def latest(self) -> Manifest | None:
        """The manifest with the highest number; what is damaged is refused, never passed over for an older one."""
        newest = self.newest_number()
        while newest:
            try:
                return self._manifest(newest)
            except ObjectMissing:
                # Collected since it was listed; that happens only when there are newer ones.
                listed, newest = newest, self.newest_number()
                if newest == listed:
                    raise
        return None

    def newest_number(self) -> int:
        """The highest number that is taken; 0 if none is."""
        return max((self._paths.number_of_manifest(entry.key) for entry in self.listed()), default=0)

    def listed(self) -> list[Entry]:
        return list(self._store.list(self._paths.manifests))

    def before(self, manifest: Manifest) -> Manifest | None:
        """The whole manifest before the one that this stands on; None if there was none or it was collected."""
        if manifest.previous_whole == 0:
            return None
        try:
            return self._whole(manifest.previous_whole)
        except ObjectMissing:
            return None

    def missing(self, number: int) -> ObjectMissing:
        """What to raise where an entry is gone, even if one that does not count has taken its number since."""
        return ObjectMissing(self._store.url, self._paths.manifest(number))

    def _manifest(self, number: int) -> Manifest:
        newest = self._entry(number)
        if isinstance(newest, Manifest):
            return newest
        manifest = self._whole(newest.whole)
        for between in range(newest.whole + 1, number):
            commit = self._entry(between)
            if not isinstance(commit, BatchCommit) or commit.whole != newest.whole:
                raise self.missing(between)
            manifest = commit.after(manifest)
        return newest.after(manifest)

    def _whole(self, number: int) -> Manifest:
        entry = self._entry(number)
        if not isinstance(entry, Manifest):
            raise self.missing(number)
        return entry

    def _entry(self, number: int) -> Manifest | BatchCommit:
        key = self._paths.manifest(number)
        found = unpack(self._store.get(key).data, key=key, secret=self._secret).parts["entry"]
        document = dict(found)
        return _KINDS[document.pop("kind")].from_json(document)
