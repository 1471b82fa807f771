"""What was decided and what came of it: an append-only log in the store, from which transition matrices are learned."""

import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from storage.errors import AlreadyExists
from storage.stores.keys import name_segment
from storage.stores.protocol import Store

_RACES = 100


class JournalPage(NamedTuple):
    """Some records, newest first, each with its number; `before` is the way to older ones, None if there are none."""

    total: int
    records: list[dict[str, Any]]
    before: int | None


class Journal:
    """Numbered records of one job, each an object of its own that is never changed."""

    def __init__(self, store: Store, job: str) -> None:
        self._store = store
        self._folder = f"operators/{name_segment(job)}/journal/"
        self._next: int | None = None

    def append(self, kind: str, **facts: Any) -> int:
        """Write a record durably; its number."""
        document = json.dumps({"at_ms": time.time_ns() // 1_000_000, "kind": kind, **facts}).encode()
        for _ in range(_RACES):
            number = self._newest() + 1 if self._next is None else self._next
            try:
                self._store.put_if_absent(self._key(number), document)
            except AlreadyExists:
                self._next = None  # another controller's: look again
            else:
                self._next = number + 1
                return number
        raise AlreadyExists(self._store.url, self._folder)

    def read(self) -> Iterator[dict[str, Any]]:
        """All records, oldest first."""
        for entry in sorted(self._store.list(self._folder)):
            yield self._record(entry.key)

    def page(self, limit: int, before: int | None = None) -> JournalPage:
        """The newest so many, or the newest of those before a number; lists all, and reads no more than it gives."""
        numbers = sorted(self._numbers())
        older = [number for number in numbers if before is None or number < before]
        chosen = older[-limit:]
        records = [{**self._record(self._key(number)), "number": number} for number in reversed(chosen)]
        return JournalPage(len(numbers), records, chosen[0] if len(older) > len(chosen) else None)

    def _newest(self) -> int:
        return max(self._numbers(), default=0)

    def _numbers(self) -> list[int]:
        names = [entry.key.removeprefix(self._folder) for entry in self._store.list(self._folder)]
        return [int(name.partition(".")[0]) for name in names]

    def _record(self, key: str) -> dict[str, Any]:
        record: dict[str, Any] = json.loads(bytes(self._store.get(key).data))
        return record

    def _key(self, number: int) -> str:
        return f"{self._folder}{number:012d}.json"
