"""Memory stores that measure their calls, or fail on demand."""

import threading
import time
from collections.abc import Callable

from storage.errors import StoreUnavailable
from storage.stores.memory import MemoryStore
from storage.stores.protocol import Bytes


class MeasuredStore(MemoryStore):
    """Measures calls in flight and bytes fetched; each put and get takes `seconds`."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self.seconds = seconds
        self.fetched = 0  # bytes by ranged gets
        self.requests = 0  # ranged gets
        self.most_at_once = 0
        self.most_bytes_at_once = 0
        self._under_way: dict[int, int] = {}
        self._counting = threading.Lock()

    def put(self, key: str, data: Bytes, *, timeout: float | None = None) -> None:
        with _Counted(self, len(data)):
            super().put(key, data, timeout=timeout)

    def get(self, key: str, *, timeout: float | None = None) -> memoryview:
        found = super().get(key, timeout=timeout)
        with _Counted(self, len(found)):
            return found

    def get_range(self, key: str, start: int, stop: int, *, timeout: float | None = None) -> memoryview:
        found = super().get(key, timeout=timeout)[start:stop]
        with self._counting:
            self.fetched += len(found)
            self.requests += 1
        return found


class _Counted:
    def __init__(self, store: MeasuredStore, size: int) -> None:
        self._store = store
        self._size = size

    def __enter__(self) -> None:
        store = self._store
        with store._counting:
            store._under_way[threading.get_ident()] = self._size
            store.most_at_once = max(store.most_at_once, len(store._under_way))
            store.most_bytes_at_once = max(store.most_bytes_at_once, sum(store._under_way.values()))
        time.sleep(store.seconds)

    def __exit__(self, *_: object) -> None:
        with self._store._counting:
            del self._store._under_way[threading.get_ident()]


class FailingStore(MemoryStore):
    """Fails the writes that `fault` selects, before or after they happen, or delays them to arrive `late`."""

    def __init__(self) -> None:
        super().__init__()
        self.fault: Callable[[str], str | None] = lambda _: None  # key -> "before", "after", "late"
        self.late: list[Callable[[], None]] = []

    def put(self, key: str, data: Bytes, *, timeout: float | None = None) -> None:
        self._write_or_fail(key, lambda: MemoryStore.put(self, key, bytes(data), timeout=timeout))

    def put_if_absent(self, key: str, data: Bytes, *, timeout: float | None = None) -> None:
        self._write_or_fail(key, lambda: MemoryStore.put_if_absent(self, key, bytes(data), timeout=timeout))

    def fail_once(self, part: str, when: str) -> None:
        """Let only the next write to a key that contains `part` fail."""

        def fault(key: str) -> str | None:
            if part not in key:
                return None
            self.fault = lambda _: None
            return when

        self.fault = fault

    def _write_or_fail(self, key: str, write: Callable[[], None]) -> None:
        when = self.fault(key)
        if when in (None, "after"):
            write()
        if when == "late":
            self.late.append(write)
        if when is not None:
            raise StoreUnavailable(self.url, "put", key, "the test says so")
