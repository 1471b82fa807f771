"""The migrations of one job since the server started, whether requested through the API or not."""

import threading
import time
from collections import Counter, deque
from dataclasses import dataclass

from elastic.api.errors import UnknownMigration
from elastic.control import Migration

_HISTORY_LENGTH = 50  # older ones are in the journal


@dataclass
class TrackedMigration:
    """A migration with its number, and when it began and ended as far as is known."""

    number: int
    migration: Migration
    began_ms: int
    ended_ms: int | None = None


class MigrationTracker:
    """Numbers migrations from 1 in the order of their discovery and keeps the newest. Thread-safe."""

    def __init__(self) -> None:
        self._tracked: deque[TrackedMigration] = deque(maxlen=_HISTORY_LENGTH)
        self._next = 1
        self._outcomes: Counter[str] = Counter()
        self._keys_moved = 0  # by migrations that have ended
        self._lock = threading.Lock()

    def track(self, migration: Migration) -> TrackedMigration:
        """Return the entry of this migration, a new one if it is not tracked yet."""
        with self._lock:
            entry = next((entry for entry in self._tracked if entry.migration is migration), None)
            if entry is None:
                began_ms = now_ms() - round(migration.progress().seconds * 1000)
                entry = TrackedMigration(self._next, migration, began_ms)
                self._next += 1
                self._tracked.append(entry)
            self._record_ends()
            return entry

    def count_outcomes(self) -> dict[str, int]:
        """Return the number of ended migrations by outcome."""
        with self._lock:
            self._record_ends()
            return dict(self._outcomes)

    def count_keys_moved(self) -> int:
        """Return the number of keys that all migrations have moved, the current one so far."""
        with self._lock:
            self._record_ends()
            running = (entry.migration.progress().keys_done for entry in self._tracked if entry.ended_ms is None)
            return self._keys_moved + sum(running)

    def find(self, number: int) -> TrackedMigration:
        with self._lock:
            self._record_ends()
            for entry in self._tracked:
                if entry.number == number:
                    return entry
            raise UnknownMigration(number, [entry.number for entry in self._tracked])

    def newest_first(self) -> list[TrackedMigration]:
        with self._lock:
            self._record_ends()
            return list(reversed(self._tracked))

    def _record_ends(self) -> None:
        for entry in self._tracked:
            if entry.ended_ms is None and entry.migration.is_over:
                progress = entry.migration.progress()
                entry.ended_ms = entry.began_ms + round(progress.seconds * 1000)
                self._keys_moved += progress.keys_done
                self._outcomes[entry.migration.phase] += 1


def now_ms() -> int:
    """Return the wall-clock time in milliseconds since 1970, the unit of browsers."""
    return time.time_ns() // 1_000_000
