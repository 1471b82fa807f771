"""Objects in this process: for tests, for trying things out, and as the model of what a store does."""

import re
from collections.abc import Iterable, Iterator
from itertools import count
from threading import Lock

from storage.errors import AlreadyExists, Changed, InvalidStorageInput, ObjectMissing
from storage.stores.arguments import checked_keys, checked_range, checked_timeout
from storage.stores.keys import checked_key, checked_prefix
from storage.stores.protocol import DEFAULT_TIMEOUT_SECONDS, Bytes, Entry, Store, Stored

_NAME = re.compile(r"memory:([A-Za-z0-9_-]*)")


class MemoryStore:
    """A dict with a lock. Nothing waits, so timeouts are accepted and never strike.

    `close` keeps the objects: a shared store is opened and closed by many, and a test of a restart reopens it.
    """

    conditional = True  # no other process can write here

    def __init__(self, name: str = "") -> None:
        self.url = f"memory:{name}"
        self._objects: dict[str, Stored] = {}
        self._versions = count(1)
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"MemoryStore({self.url!r}, objects={len(self._objects)})"

    def put(self, key: str, data: Bytes, *, timeout: float | None = None) -> str:
        checked_timeout(timeout)
        with self._lock:
            return self._keep(checked_key(key), data)

    def put_if_absent(self, key: str, data: Bytes, *, timeout: float | None = None) -> str:
        checked_timeout(timeout)
        with self._lock:
            if checked_key(key) in self._objects:
                raise AlreadyExists(self.url, key)
            return self._keep(key, data)

    def compare_and_swap(self, key: str, data: Bytes, expected: str, *, timeout: float | None = None) -> str:
        checked_timeout(timeout)
        with self._lock:
            found = self._objects.get(checked_key(key))
            if found is None or found.version != expected:
                raise Changed(self.url, key)
            return self._keep(key, data)

    def get(self, key: str, *, timeout: float | None = None) -> Stored:
        checked_timeout(timeout)
        found = self._objects.get(checked_key(key))
        if found is None:
            raise ObjectMissing(self.url, key)
        return found

    def get_range(self, key: str, start: int, stop: int, *, timeout: float | None = None) -> memoryview:
        checked_range(start, stop)
        return self.get(key, timeout=timeout).data[start:stop]

    def list(self, prefix: str = "", *, timeout: float | None = None) -> Iterator[Entry]:
        checked_timeout(timeout)
        checked_prefix(prefix)
        with self._lock:
            found = sorted(item for item in self._objects.items() if item[0].startswith(prefix))
        return (Entry(key, len(stored.data)) for key, stored in found)

    def delete(self, keys: Iterable[str], *, timeout: float | None = None) -> None:
        checked_timeout(timeout)
        unwanted = checked_keys(keys)
        with self._lock:
            for key in unwanted:
                self._objects.pop(key, None)

    def close(self) -> None:
        """Nothing to give back."""

    def _keep(self, key: str, data: Bytes) -> str:
        # A copy: the caller may go on writing into its buffer.
        stored = Stored(memoryview(bytes(data)), str(next(self._versions)))
        self._objects[key] = stored
        return stored.version


_shared: dict[str, MemoryStore] = {}
_sharing = Lock()


def open_memory(url: str, *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> Store:
    """`memory:` is a store of its own, `memory:name` the one store of that name in this process."""
    checked_timeout(timeout_seconds)
    found = _NAME.fullmatch(url)
    if found is None:
        raise InvalidStorageInput("a memory store has a plain name or none. Write memory: or memory:name.")
    name = found[1]
    if not name:
        return MemoryStore()
    with _sharing:
        return _shared.setdefault(name, MemoryStore(name))
