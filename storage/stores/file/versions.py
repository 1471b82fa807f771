"""Which bytes a file holds: told apart by something that every write changes, even of the same bytes."""

import errno
import os
from time import time_ns


def version_of(found: os.stat_result) -> str:
    """The file's inode and its modification time, which the writer sets, to the microsecond.

    Two writes of a key get the same inode only if the file of the earlier one was gone before the later one began, and
    by then the clock has moved on. So a version comes back only if the clock is set back to that very microsecond.
    (The time that the system sets will not do: it stands still for up to 10 ms.)
    """
    return f"{found.st_ino:x}-{found.st_mtime_ns:x}"


def write_durably(descriptor: int, content: memoryview) -> str:
    """Fill an empty file, and sync it; the version it now has."""
    while content:
        content = content[os.write(descriptor, content) :]
    now = time_ns() // 1000 * 1000
    os.utime(descriptor, ns=(now, now))
    os.fsync(descriptor)
    found = os.fstat(descriptor)
    if found.st_mtime_ns != now:
        raise OSError(errno.ENOTSUP, "this file system keeps times less exactly than to the microsecond")
    return version_of(found)
