"""The migrations of one job that the API has heard of, whoever asked for them."""

import threading
from collections import Counter, deque
from dataclasses import dataclass

from elastic.api.clock import now_ms
from elastic.api.errors import UnknownMigration
from elastic.control import Migration

_KEPT = 50  # older ones are in the journal


@dataclass
class SeenMigration:
    """A migration with a number to ask for it by, and when it began and ended as far as is known."""

    number: int
    migration: Migration
    began_ms: int
    ended_ms: int | None = None


class SeenMigrations:
    """Numbered from 1 in the order in which they were seen; the newest are kept. Safe to use from many threads."""

    def __init__(self) -> None:
        self._kept: deque[SeenMigration] = deque(maxlen=_KEPT)
        self._next = 1
        self._outcomes: Counter[str] = Counter()
        self._lock = threading.Lock()

    def note(self, migration: Migration) -> SeenMigration:
        """The one that holds this migration; a new one if it was not seen before."""
        with self._lock:
            seen = next((one for one in self._kept if one.migration is migration), None)
            if seen is None:
                began_ms = now_ms() - round(migration.progress().seconds * 1000)
                seen = SeenMigration(self._next, migration, began_ms)
                self._next += 1
                self._kept.append(seen)
            self._note_ends()
            return seen

    def outcomes(self) -> dict[str, int]:
        """How many ended how."""
        with self._lock:
            self._note_ends()
            return dict(self._outcomes)

    def find(self, number: int) -> SeenMigration:
        with self._lock:
            for seen in self._kept:
                if seen.number == number:
                    return seen
            raise UnknownMigration(number, [seen.number for seen in self._kept])

    def newest(self) -> list[SeenMigration]:
        """All that are kept, newest first."""
        with self._lock:
            return list(reversed(self._kept))

    def _note_ends(self) -> None:
        for seen in self._kept:
            if seen.ended_ms is None and seen.migration.is_over:
                seen.ended_ms = seen.began_ms + round(seen.migration.progress().seconds * 1000)
                self._outcomes[seen.migration.phase] += 1
