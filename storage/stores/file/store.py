"""The store in a folder."""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TypeVar

from storage.errors import AlreadyExists, Changed, ObjectMissing
from storage.stores.arguments import checked_keys, checked_range, checked_timeout
from storage.stores.file.failures import typed
from storage.stores.file.folders import in_folder, make_folder, remove_empty_folders, sync_folder
from storage.stores.file.listing import Entries, entries, scan_folder
from storage.stores.file.locks import locked
from storage.stores.file.permissions import PRIVATE, SHARED, claim_folder
from storage.stores.file.reading import read
from storage.stores.file.temporary import remove_leftovers, temporary_file
from storage.stores.file.versions import version_of, write_durably
from storage.stores.file.workers import Workers
from storage.stores.keys import checked_key, checked_prefix
from storage.stores.protocol import DEFAULT_TIMEOUT_SECONDS, Bytes, Entry, Stored

_Answer = TypeVar("_Answer")
_RESERVED = ".elastic"  # no key has a part that starts with a dot
_MOST_CALLS = 64  # at once; a disk gains nothing from more, and a hanging one must not collect threads without end


class FileStore:
    """Every object is a file of its key's name, in folders of its key's folders, with the object's bytes and no more.

    A write goes to a temporary file first, which is synced and then renamed (or linked, if nothing may be there yet),
    so an object is there whole or not at all. `put`, `compare_and_swap` and `delete` hold a lock of the key, across
    processes, from looking at the object to replacing it.

    A call that hangs in the file system raises `StoreTimeout`; its thread lingers, and gives up before the object
    becomes visible if the hanging ends (`_Deadline`).

    Only the user who owns the folder can read it, and the folder of another user is refused. A `shared` store leaves
    both to the umask and the file system.
    """

    conditional = True

    def __init__(self, folder: Path, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS, *, shared: bool = False) -> None:
        checked_timeout(timeout_seconds)
        self.url = folder.as_uri()
        self._folder = folder
        self._modes = SHARED if shared else PRIVATE
        self._temporary = folder / _RESERVED / "writing"
        self._locks = folder / _RESERVED / "locks"
        self._timeout = timeout_seconds
        self._workers = Workers(_MOST_CALLS)
        try:
            self._call("open", "", None, lambda _: self._prepare())
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"FileStore({self.url!r})"

    def put(self, key: str, data: Bytes, *, timeout: float | None = None) -> str:
        def place(temporary: Path, path: Path, deadline: "_Deadline") -> None:
            with locked(self._locks, key, self._modes):
                deadline.check()
                temporary.replace(path)

        return self._write(key, data, place, timeout)

    def put_if_absent(self, key: str, data: Bytes, *, timeout: float | None = None) -> str:
        def place(temporary: Path, path: Path, deadline: "_Deadline") -> None:
            deadline.check()
            try:
                os.link(temporary, path)
            except FileExistsError:
                raise AlreadyExists(self.url, key) from None

        return self._write(key, data, place, timeout)

    def compare_and_swap(self, key: str, data: Bytes, expected: str, *, timeout: float | None = None) -> str:
        def place(temporary: Path, path: Path, deadline: "_Deadline") -> None:
            with locked(self._locks, key, self._modes):
                if not path.exists() or version_of(path.stat()) != expected:
                    raise Changed(self.url, key)
                deadline.check()
                temporary.replace(path)

        return self._write(key, data, place, timeout)

    def get(self, key: str, *, timeout: float | None = None) -> Stored:
        def work(_: "_Deadline") -> Stored:
            with self._reading(key) as descriptor:
                found = os.fstat(descriptor)
                return Stored(read(descriptor, 0, found.st_size), version_of(found))

        return self._call("get", checked_key(key), timeout, work)

    def get_range(self, key: str, start: int, stop: int, *, timeout: float | None = None) -> memoryview:
        def work(_: "_Deadline") -> memoryview:
            with self._reading(key) as descriptor:
                length = min(stop, os.fstat(descriptor).st_size) - start
                return read(descriptor, start, max(length, 0))

        checked_range(start, stop)
        return self._call("get", checked_key(key), timeout, work)

    def list(self, prefix: str = "", *, timeout: float | None = None) -> Iterator[Entry]:
        """As every store; the timeout bounds the reading of one folder."""

        def scan(parent: str, beginning: str) -> Entries:
            return self._call("list", prefix, timeout, lambda _: scan_folder(self._folder, parent, beginning))

        checked_timeout(timeout)
        return entries(checked_prefix(prefix), scan)

    def delete(self, keys: Iterable[str], *, timeout: float | None = None) -> None:
        unwanted = checked_keys(keys)
        if unwanted:
            self._call("delete", unwanted[0], timeout, partial(self._delete, unwanted))

    def close(self) -> None:
        self._workers.close()

    def _call(self, operation: str, key: str, timeout: float | None, work: "Callable[[_Deadline], _Answer]") -> _Answer:
        """What `work` returns, in time and with the typed errors of a store."""
        checked_timeout(timeout)
        seconds = self._timeout if timeout is None else timeout
        try:
            return self._workers.run(partial(work, _Deadline(seconds)), seconds)
        except OSError as failure:
            raise typed(failure, self.url, operation, key) from failure

    def _prepare(self) -> None:
        make_folder(self._folder, self._modes.folder)
        if self._modes is PRIVATE:
            claim_folder(self._folder, self.url, _RESERVED)
        remove_leftovers(self._temporary)

    def _write(
        self, key: str, data: Bytes, place: "Callable[[Path, Path, _Deadline], None]", timeout: float | None
    ) -> str:
        path = self._folder / checked_key(key)
        content = memoryview(data).cast("B")

        def work(deadline: "_Deadline") -> str:
            with temporary_file(self._temporary, self._modes) as temporary:
                version = write_durably(temporary.descriptor, content)
                in_folder(path.parent, self._modes.folder, partial(place, temporary.path, path, deadline))
            with suppress(FileNotFoundError):  # somebody has deleted the object, and the empty folder
                sync_folder(path.parent)
            return version

        return self._call("put", key, timeout, work)

    @contextmanager
    def _reading(self, key: str) -> Iterator[int]:
        try:
            descriptor = os.open(self._folder / key, os.O_RDONLY)
        except FileNotFoundError:
            raise ObjectMissing(self.url, key) from None
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _delete(self, keys: Iterable[str], deadline: "_Deadline") -> None:
        folders = set()
        for key in keys:
            path = self._folder / key
            with locked(self._locks, key, self._modes):
                deadline.check()
                path.unlink(missing_ok=True)
            folders.add(path.parent)
        for folder in folders:
            with suppress(FileNotFoundError):
                sync_folder(folder)
            remove_empty_folders(folder, self._folder)


class _Deadline:
    """Keeps a call whose caller has gone from changing what others see: they may have written since."""

    def __init__(self, seconds: float) -> None:
        self._end = monotonic() + seconds

    def check(self) -> None:
        if monotonic() > self._end:
            raise TimeoutError(errno.ETIMEDOUT, "too late")
