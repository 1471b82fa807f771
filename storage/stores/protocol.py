"""What a store is: few operations on whole objects, each durable when it returns, each with a timeout."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol, runtime_checkable

DEFAULT_TIMEOUT_SECONDS = 60.0  # a hundred megabytes over a slow link, retries included

Bytes = bytes | bytearray | memoryview


class Entry(NamedTuple):
    """An object as a listing shows it."""

    key: str
    size: int


class Stored(NamedTuple):
    """An object's bytes and the version they are; the version is only good for `compare_and_swap`."""

    data: memoryview
    version: str


@runtime_checkable
class Store(Protocol):
    """A flat set of named, whole objects.

    When a write returns, the object is durable and every later read or listing sees it; when it raises
    `StoreUnavailable`, it may or may not have happened, and an object is never seen half-written. Keys are checked
    (see `storage.stores.keys`). All operations are safe to call from many threads. `timeout` bounds one call in
    seconds, retries included; None means the store's default.
    """

    @property
    def url(self) -> str:
        """Where this store is; safe to print: never a credential."""
        ...

    @property
    def conditional(self) -> bool:
        """Whether conditional writes hold against other processes; if not, only one writer is safe."""
        ...

    def put(self, key: str, data: Bytes, *, timeout: float | None = None) -> str:
        """Store an object, over any older one; its version."""
        ...

    def put_if_absent(self, key: str, data: Bytes, *, timeout: float | None = None) -> str:
        """Store an object where there is none; its version. `AlreadyExists` if there is one."""
        ...

    def compare_and_swap(self, key: str, data: Bytes, expected: str, *, timeout: float | None = None) -> str:
        """Store an object over the very version that was read; its new version. `Changed` if that is gone."""
        ...

    def get(self, key: str, *, timeout: float | None = None) -> Stored:
        """The whole object; `ObjectMissing` if there is none."""
        ...

    def get_range(self, key: str, start: int, stop: int, *, timeout: float | None = None) -> memoryview:
        """Bytes start..stop-1, fewer if the object ends before; `ObjectMissing` if there is none."""
        ...

    def list(self, prefix: str = "", *, timeout: float | None = None) -> Iterator[Entry]:
        """All objects whose key starts with `prefix`, in order of their keys, however many there are."""
        ...

    def delete(self, keys: Iterable[str], *, timeout: float | None = None) -> None:
        """Remove objects; those that are not there do not matter."""
        ...

    def close(self) -> None:
        """Give connections and threads back; idempotent."""
        ...
