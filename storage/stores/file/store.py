"""The store in a folder."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from storage.errors import AlreadyExists, InvalidStorageInput, ObjectMissing
from storage.stores.arguments import Deadline, check_keys, check_range, check_timeout
from storage.stores.file.calls import CallThreads, to_storage_error
from storage.stores.file.files import create_temporary_file, read_bytes, remove_leftovers, write_durably
from storage.stores.file.folders import (
    PRIVATE,
    SHARED,
    FolderContents,
    claim_folder,
    make_folder,
    remove_empty_folders,
    retry_in_folder,
    scan_folder,
    sync_folder,
    walk_objects,
)
from storage.stores.keys import check_key, check_prefix
from storage.stores.protocol import DEFAULT_TIMEOUT_SECONDS, Bytes, ObjectInfo, Store

_Answer = TypeVar("_Answer")
_RESERVED = ".elastic"  # no key has a part that starts with a dot
_MAX_THREADS = 64  # a disk gains nothing from more, and hanging calls must not collect threads without end


class FileStore:
    """Every object is a file of its key's name, in folders of its key's folders, with the object's bytes and no more.

    A write goes to a temporary file first, which is synced and then renamed (or linked, if nothing may be there yet),
    so an object is there whole or not at all; then the folder is synced, so that its name is durable too.

    A call that hangs in the file system raises `StoreTimeout`; its thread stays, and gives up before it changes the
    object if the hanging ends: another writer may have changed it since.

    Only the user who owns the folder can read it, and the folder of another user is refused. A `shared` store leaves
    both to the umask and the file system.
    """

    conditional = True

    def __init__(self, folder: Path, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS, *, shared: bool = False) -> None:
        check_timeout(timeout_seconds)
        self.url = folder.as_uri()
        self._folder = folder
        self._modes = SHARED if shared else PRIVATE
        self._temporary = folder / _RESERVED / "writing"
        self._timeout = timeout_seconds
        self._threads = CallThreads(_MAX_THREADS)
        try:
            self._call("open", "", None, lambda _: self._prepare())
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"FileStore({self.url!r})"

    def put(self, key: str, data: Bytes, *, timeout: float | None = None) -> None:
        self._write(key, data, Path.replace, timeout)

    def put_if_absent(self, key: str, data: Bytes, *, timeout: float | None = None) -> None:
        def place(temporary: Path, path: Path) -> None:
            try:
                os.link(temporary, path)
            except FileExistsError:
                raise AlreadyExists(self.url, key) from None

        self._write(key, data, place, timeout)

    def get(self, key: str, *, timeout: float | None = None) -> memoryview:
        def work(_: Deadline) -> memoryview:
            with self._open_object(key) as descriptor:
                return read_bytes(descriptor, 0, os.fstat(descriptor).st_size)

        return self._call("get", check_key(key), timeout, work)

    def get_range(self, key: str, start: int, stop: int, *, timeout: float | None = None) -> memoryview:
        def work(_: Deadline) -> memoryview:
            with self._open_object(key) as descriptor:
                length = min(stop, os.fstat(descriptor).st_size) - start
                return read_bytes(descriptor, start, max(length, 0))

        check_range(start, stop)
        return self._call("get", check_key(key), timeout, work)

    def list(self, prefix: str = "", *, timeout: float | None = None) -> Iterator[ObjectInfo]:
        """As in every store; the timeout bounds the reading of one folder."""

        def scan(parent: str, beginning: str) -> FolderContents:
            return self._call("list", prefix, timeout, lambda _: scan_folder(self._folder, parent, beginning))

        check_timeout(timeout)
        return walk_objects(check_prefix(prefix), scan)

    def delete(self, keys: Iterable[str], *, timeout: float | None = None) -> None:
        unwanted = check_keys(keys)
        if unwanted:
            self._call("delete", unwanted[0], timeout, partial(self._delete, unwanted))

    def close(self) -> None:
        self._threads.close()

    def _call(self, operation: str, key: str, timeout: float | None, work: Callable[[Deadline], _Answer]) -> _Answer:
        """Return what `work` does, in time and with the typed errors of a store."""
        check_timeout(timeout)
        seconds = self._timeout if timeout is None else timeout
        try:
            return self._threads.run(partial(work, Deadline(seconds)), seconds)
        except OSError as error:
            raise to_storage_error(error, self.url, operation, key) from error

    def _prepare(self) -> None:
        make_folder(self._folder, self._modes.folder)
        if self._modes is PRIVATE:
            claim_folder(self._folder, self.url, _RESERVED)
        remove_leftovers(self._temporary)

    def _write(self, key: str, data: Bytes, place: Callable[[Path, Path], object], timeout: float | None) -> None:
        path = self._folder / check_key(key)
        content = memoryview(data).cast("B")

        def work(deadline: Deadline) -> None:
            def place_in_time() -> None:
                deadline.check()
                place(temporary.path, path)

            with create_temporary_file(self._temporary, self._modes) as temporary:
                write_durably(temporary.descriptor, content)
                retry_in_folder(path.parent, self._modes.folder, place_in_time)
            with suppress(FileNotFoundError):  # another process has deleted the object, and the empty folder
                sync_folder(path.parent)

        self._call("put", key, timeout, work)

    @contextmanager
    def _open_object(self, key: str) -> Iterator[int]:
        try:
            descriptor = os.open(self._folder / key, os.O_RDONLY)
        except FileNotFoundError:
            raise ObjectMissing(self.url, key) from None
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _delete(self, keys: Iterable[str], deadline: Deadline) -> None:
        folders = set()
        for key in keys:
            deadline.check()
            path = self._folder / key
            path.unlink(missing_ok=True)
            folders.add(path.parent)
        for folder in folders:
            with suppress(FileNotFoundError):
                sync_folder(folder)
            remove_empty_folders(folder, self._folder)


def open_file(url: str, *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS, shared: bool = False) -> Store:
    """Open the store in a folder, which is created if it is missing, and remove what dead writers left there.

    The store is private to its user unless it is `shared`: then the umask decides who can read it.
    """
    return FileStore(_parse_folder(url), timeout_seconds, shared=shared)


def _parse_folder(url: str) -> Path:
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.netloc not in ("", "localhost") or not path.startswith("/"):
        raise InvalidStorageInput("a file URL needs an absolute path. Write file:///folder, with three slashes.")
    if parts.query or parts.fragment or "\0" in path:
        raise InvalidStorageInput("a file URL has a path and nothing else. Write %3F for ? and %23 for #, and no NUL.")
    if not path.strip("/"):
        raise InvalidStorageInput("the root folder cannot hold a store. Write file:///folder.")
    return Path(path)
