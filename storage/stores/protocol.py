"""The protocol of a store: few operations on whole objects, each durable when it returns, each with a timeout."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol, runtime_checkable

DEFAULT_TIMEOUT_SECONDS = 60.0  # a hundred megabytes over a slow link, retries included

Bytes = bytes | bytearray | memoryview


class ObjectInfo(NamedTuple):
    """An object as a listing shows it."""

    key: str
    size: int


@runtime_checkable
class Store(Protocol):
    """A flat set of named, whole objects.

    When a write returns, the object is durable and every later read or listing sees it. When a write raises
    `StoreUnavailable`, it may or may not have happened. A reader never sees a half-written object. Keys are checked
    (see `storage.stores.keys`). All operations are safe to call from many threads. `timeout` bounds one call in
    seconds, retries included; None means the store's default.
    """

    @property
    def url(self) -> str:
        """The URL of this store, without credentials: safe to print."""
        ...

    @property
    def conditional(self) -> bool:
        """Whether `put_if_absent` holds against other processes; if not, only one writer is safe."""
        ...

    def put(self, key: str, data: Bytes, *, timeout: float | None = None) -> None:
        """Store an object, and replace an older one."""
        ...

    def put_if_absent(self, key: str, data: Bytes, *, timeout: float | None = None) -> None:
        """Store an object under a key that has none; `AlreadyExists` if it has one."""
        ...

    def get(self, key: str, *, timeout: float | None = None) -> memoryview:
        """Return the whole object; `ObjectMissing` if there is none."""
        ...

    def get_range(self, key: str, start: int, stop: int, *, timeout: float | None = None) -> memoryview:
        """Return bytes start..stop-1, fewer if the object ends before; `ObjectMissing` if there is none."""
        ...

    def list(self, prefix: str = "", *, timeout: float | None = None) -> Iterator[ObjectInfo]:
        """Iterate over all objects whose key starts with `prefix`, in order of their keys."""
        ...

    def delete(self, keys: Iterable[str], *, timeout: float | None = None) -> None:
        """Remove objects; keys without an object are ignored."""
        ...

    def close(self) -> None:
        """Release connections and threads; idempotent."""
        ...
