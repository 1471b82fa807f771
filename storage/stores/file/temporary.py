"""Files that are being written: out of sight until they are whole, and gone when their writer is."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from functools import partial
from pathlib import Path
from typing import NamedTuple

from storage.stores.file.folders import in_folder
from storage.stores.file.permissions import PRIVATE, Modes


class Temporary(NamedTuple):
    """A file under a name that no listing shows."""

    descriptor: int
    path: Path


@contextmanager
def temporary_file(folder: Path, modes: Modes = PRIVATE) -> Iterator[Temporary]:
    """A new file, locked for as long as its writer lives; at the end its name is gone, however it ends."""
    descriptor, path = _locked_file(folder, modes)
    try:
        yield Temporary(descriptor, path)
    finally:
        path.unlink(missing_ok=True)  # missing if it was renamed into place
        os.close(descriptor)


def remove_leftovers(folder: Path) -> None:
    """Remove the files of dead writers.

    The system drops a process's locks when it dies, however it dies, so a file that can be locked has no writer. Unlike
    process ids, this holds across containers and hosts that share the folder.
    """
    with suppress(FileNotFoundError, PermissionError):  # never written to, or open to readers only
        for path in list(folder.iterdir()):
            with suppress(FileNotFoundError, PermissionError, BlockingIOError):  # gone, another user's, or in use
                descriptor = os.open(path, os.O_RDWR)
                try:
                    flock(descriptor, LOCK_EX | LOCK_NB)
                    path.unlink()
                finally:
                    os.close(descriptor)


def _locked_file(folder: Path, modes: Modes) -> Temporary:
    while True:
        path = folder / secrets.token_hex(8)
        create = partial(os.open, path, os.O_RDWR | os.O_CREAT | os.O_EXCL, modes.file)
        descriptor = in_folder(folder, modes.folder, create)
        try:
            if _lock(descriptor):
                return Temporary(descriptor, path)
        except OSError:
            path.unlink(missing_ok=True)
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """False if `remove_leftovers` of another process came between making and locking: it removes the file."""
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    return os.fstat(descriptor).st_nlink > 0
