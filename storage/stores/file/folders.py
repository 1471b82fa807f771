"""Folders of a file store: who may read them, how they come and go, and the objects in them.

States, logs and pickled operators are a user's data. By default only the user who runs the job can read them.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from pwd import getpwuid
from typing import NamedTuple, TypeVar

from storage.errors import FolderNotOwned, InvalidStorageInput
from storage.stores.keys import check_key, check_prefix
from storage.stores.protocol import ObjectInfo

_Answer = TypeVar("_Answer")
_MAX_TRIES = 50  # each fails only if a deleter removes the folder within the microseconds since it was created
_OTHERS = stat.S_IRWXG | stat.S_IRWXO

FolderContents = list[ObjectInfo]


class Modes(NamedTuple):
    """The modes that new folders and files are created with, less the umask."""

    folder: int
    file: int


PRIVATE = Modes(folder=0o700, file=0o600)
SHARED = Modes(folder=0o777, file=0o666)


def claim_folder(folder: Path, store: str, reserved: str) -> None:
    """Refuse a folder of another user, and close an own one to others if it holds nothing but a store.

    Root is refused too: the user could not read the files that root leaves in the store. A folder that also holds
    other things (no `reserved` folder in it, or a sticky one as /tmp) keeps its mode; all that is created in it is
    private.
    """
    found = folder.stat()
    if found.st_uid != os.geteuid():
        raise FolderNotOwned(store, _user_name(found.st_uid), _user_name(os.geteuid()))
    mode = stat.S_IMODE(found.st_mode)
    if mode & _OTHERS and not mode & stat.S_ISVTX and _is_store(folder, reserved):
        folder.chmod(mode & ~_OTHERS)


def _is_store(folder: Path, reserved: str) -> bool:
    return (folder / reserved).is_dir() or not any(folder.iterdir())


def _user_name(number: int) -> str:
    try:
        return getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def retry_in_folder(folder: Path, mode: int, action: Callable[[], _Answer]) -> _Answer:
    """Run an action that needs a folder; create the folder and run it again whenever the folder is missing."""
    for _ in range(_MAX_TRIES):
        try:
            return action()
        except FileNotFoundError:
            with suppress(FileNotFoundError):  # its parent was removed in between
                make_folder(folder, mode)
    return action()


def make_folder(folder: Path, mode: int) -> None:
    """Create the folder and those above it, each durably, unless they exist."""
    try:
        folder.mkdir(mode)
    except FileExistsError:
        return
    except FileNotFoundError:
        make_folder(folder.parent, mode)
        folder.mkdir(mode, exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_empty_folders(folder: Path, top: Path) -> None:
    """Remove the folder and those above it, below `top`, up to the first one in use."""
    while folder != top:
        try:
            folder.rmdir()
        except OSError:  # another writer stores an object here, or removed the folder first
            return
        folder = folder.parent


def walk_objects(prefix: str, scan: Callable[[str, str], FolderContents]) -> Iterator[ObjectInfo]:
    """Iterate over the objects whose key starts with `prefix`, in order; `scan` reads one folder, see `scan_folder`.

    Sorting each folder by itself is enough: with its slash, no folder's name is the beginning of a sibling's, so the
    content of a folder lies between the same neighbours as its name.
    """
    parent, slash, beginning = prefix.rpartition("/")
    for entry in scan(parent + slash, beginning):
        if entry.key.endswith("/"):
            yield from walk_objects(entry.key, scan)
        else:
            yield entry


def scan_folder(top: Path, parent: str, beginning: str) -> FolderContents:
    """List the folders (with a slash) and objects in `parent` whose names start so, in order; [] if it is gone."""
    try:
        with os.scandir(top / parent) as names:
            found = (_object_info(parent, name) for name in names if name.name.startswith(beginning))
            return sorted(entry for entry in found if entry is not None)
    except FileNotFoundError:  # never created, or removed with its last object
        return []


def _object_info(parent: str, found: os.DirEntry[str]) -> ObjectInfo | None:
    """Return None for what is neither an object nor a folder of objects: the reserved folder, lost+found, a link."""
    try:
        if found.is_dir(follow_symlinks=False):
            return ObjectInfo(check_prefix(f"{parent}{found.name}/"), 0)
        if not found.is_file(follow_symlinks=False):
            return None
        return ObjectInfo(check_key(parent + found.name), found.stat(follow_symlinks=False).st_size)
    except (InvalidStorageInput, FileNotFoundError):  # a name that no key has, or just deleted
        return None
