"""Folders that come and go: made durably when a write needs them, removed when they are empty."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

_Answer = TypeVar("_Answer")
_MOST_TRIES = 50  # each is lost only if a deleter removes the folder within the microseconds since it was made


def in_folder(folder: Path, mode: int, action: Callable[[], _Answer]) -> _Answer:
    """The action, made again with a new folder of that mode whenever the folder is missing."""
    for _ in range(_MOST_TRIES):
        try:
            return action()
        except FileNotFoundError:
            with suppress(FileNotFoundError):  # its parent was removed in between
                make_folder(folder, mode)
    return action()


def make_folder(folder: Path, mode: int) -> None:
    """The folder and those above it, each of them durable; one that is there already stays."""
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
    """The folder and those above it below `top`, up to the first one in use."""
    while folder != top:
        try:
            folder.rmdir()
        except OSError:  # somebody stores an object here, or removed the folder first
            return
        folder = folder.parent
