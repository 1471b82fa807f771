"""One writer at a time for a key, among the threads and processes of every host that shares the folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_UN, flock
from pathlib import Path
from zlib import crc32

from storage.stores.file.folders import in_folder
from storage.stores.file.permissions import PRIVATE, Modes

# Keys share this many lock files: one file a key would leave a file behind for every key that ever was. They are never
# removed, because whoever waits for a removed file would lock nothing.
_LOCK_FILES = 64


@contextmanager
def locked(folder: Path, key: str, modes: Modes = PRIVATE) -> Iterator[None]:
    """Nobody else is between these lines for this key; a process that dies there lets the next one in."""
    path = folder / f"{crc32(key.encode()) % _LOCK_FILES:02d}"
    descriptor = in_folder(folder, modes.folder, lambda: os.open(path, os.O_RDWR | os.O_CREAT, modes.file))
    try:
        flock(descriptor, LOCK_EX)
        yield
    finally:
        # Closing alone does not unlock while a child that was forked meanwhile has the file open too.
        flock(descriptor, LOCK_UN)
        os.close(descriptor)
