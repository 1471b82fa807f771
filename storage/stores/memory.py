"""Objects in the memory of this process: for tests and experiments, and as the model of what a store does."""

import re
from collections.abc import Iterable, Iterator
from threading import Lock

from storage.errors import AlreadyExists, InvalidStorageInput, ObjectMissing
from storage.stores.arguments import check_keys, check_range, check_timeout
from storage.stores.keys import check_key, check_prefix
from storage.stores.protocol import DEFAULT_TIMEOUT_SECONDS, Bytes, ObjectInfo, Store

_NAME = re.compile(r"memory:([A-Za-z0-9_-]*)")


class MemoryStore:
    """A dict with a lock. Nothing waits, so no timeout is ever reached.

    `close` keeps the objects: many users open and close a shared store, and a test of a restart reopens it.
    """

    conditional = True  # no other process can write here

    def __init__(self, name: str = "") -> None:
        self.url = f"memory:{name}"
        self._objects: dict[str, memoryview] = {}
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"MemoryStore({self.url!r}, objects={len(self._objects)})"

    def put(self, key: str, data: Bytes, *, timeout: float | None = None) -> None:
        check_timeout(timeout)
        with self._lock:
            self._keep(check_key(key), data)

    def put_if_absent(self, key: str, data: Bytes, *, timeout: float | None = None) -> None:
        check_timeout(timeout)
        with self._lock:
            if check_key(key) in self._objects:
                raise AlreadyExists(self.url, key)
            self._keep(key, data)

    def get(self, key: str, *, timeout: float | None = None) -> memoryview:
        check_timeout(timeout)
        found = self._objects.get(check_key(key))
        if found is None:
            raise ObjectMissing(self.url, key)
        return found

    def get_range(self, key: str, start: int, stop: int, *, timeout: float | None = None) -> memoryview:
        check_range(start, stop)
        return self.get(key, timeout=timeout)[start:stop]

    def list(self, prefix: str = "", *, timeout: float | None = None) -> Iterator[ObjectInfo]:
        check_timeout(timeout)
        check_prefix(prefix)
        with self._lock:
            found = sorted((key, len(data)) for key, data in self._objects.items() if key.startswith(prefix))
        return (ObjectInfo(key, size) for key, size in found)

    def delete(self, keys: Iterable[str], *, timeout: float | None = None) -> None:
        check_timeout(timeout)
        unwanted = check_keys(keys)
        with self._lock:
            for key in unwanted:
                self._objects.pop(key, None)

    def close(self) -> None:
        """Do nothing."""

    def _keep(self, key: str, data: Bytes) -> None:
        self._objects[key] = memoryview(bytes(data))  # a copy: the caller may write into its buffer again


_shared: dict[str, MemoryStore] = {}
_shared_lock = Lock()


def open_memory(url: str, *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> Store:
    """Open a new store for `memory:`, and the one store of that name in this process for `memory:name`."""
    check_timeout(timeout_seconds)
    found = _NAME.fullmatch(url)
    if found is None:
        raise InvalidStorageInput("a memory store has a plain name or none. Write memory: or memory:name.")
    name = found[1]
    if not name:
        return MemoryStore()
    with _shared_lock:
        return _shared.setdefault(name, MemoryStore(name))
