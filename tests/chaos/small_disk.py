"""A file system of its own for a store, small enough to be filled."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SMALL_DISK = "small disk"
_MEGABYTES = 96
_BALLAST = "ballast"


def can_mount() -> bool:
    return os.geteuid() == 0 and Path("/bin/mount").exists()


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Mount a file system in memory there; it is gone at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    options = f"size={_MEGABYTES}m,mode=0700"
    subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)  # noqa: S603
    try:
        yield folder
    finally:
        subprocess.run(["/bin/umount", "--lazy", str(folder)], check=True)  # noqa: S603


def fill(folder: Path) -> int:
    """Leave no room; how many bytes that took."""
    with (folder / _BALLAST).open("wb", buffering=0) as ballast, suppress(OSError):
        for block in (bytes(1 << 20), bytes(1 << 12)):
            with suppress(OSError):
                while True:
                    ballast.write(block)
    return (folder / _BALLAST).stat().st_size


def make_room(folder: Path) -> None:
    (folder / _BALLAST).unlink()
