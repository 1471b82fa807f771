"""What was decided and what came of it: an append-only log in the store, from which transition matrices are learned."""

import json
import time
from collections.abc import Iterator
from typing import Any

from storage.errors import AlreadyExists
from storage.stores.protocol import Store

_RACES = 100


class Journal:
    """Numbered records of one job, each an object of its own that is never changed."""

    def __init__(self, store: Store, job: str) -> None:
        self._store = store
        self._folder = f"operators/{job}/journal/"
        self._next: int | None = None

    def append(self, kind: str, **facts: Any) -> int:
        """Write a record durably; its number."""
        document = json.dumps({"at_ms": time.time_ns() // 1_000_000, "kind": kind, **facts}).encode()
        for _ in range(_RACES):
            number = self._newest() + 1 if self._next is None else self._next
            try:
                self._store.put_if_absent(f"{self._folder}{number:012d}.json", document)
            except AlreadyExists:
                self._next = None  # another controller's: look again
            else:
                self._next = number + 1
                return number
        raise AlreadyExists(self._store.url, self._folder)

    def read(self) -> Iterator[dict[str, Any]]:
        """All records, oldest first."""
        for entry in sorted(self._store.list(self._folder)):
            yield json.loads(bytes(self._store.get(entry.key).data))

    def _newest(self) -> int:
        names = [entry.key.removeprefix(self._folder) for entry in self._store.list(self._folder)]
        return max((int(name.partition(".")[0]) for name in names), default=0)
