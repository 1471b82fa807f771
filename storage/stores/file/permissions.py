"""Who may read a store in a folder: its owner alone, or whom the umask lets in.

States, logs and pickled operators are a user's data. By default only the user who runs the job can read them.
"""

import os
import stat
from pathlib import Path
from pwd import getpwuid
from typing import NamedTuple

from storage.errors import FolderNotOwned

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Modes(NamedTuple):
    """The modes that new folders and files are created with, less the umask."""

    folder: int
    file: int


PRIVATE = Modes(folder=0o700, file=0o600)
SHARED = Modes(folder=0o777, file=0o666)


def claim_folder(folder: Path, store: str, reserved: str) -> None:
    """Refuse a folder of another user, and close an own one to others if it holds nothing but a store.

    Root is refused too: its files in a user's store could not be read by the user any more. A folder that also holds
    other things (no `reserved` folder in it, or a sticky one as /tmp) keeps its mode; all that is created in it is
    private.
    """
    found = folder.stat()
    if found.st_uid != os.geteuid():
        raise FolderNotOwned(store, _user(found.st_uid), _user(os.geteuid()))
    mode = stat.S_IMODE(found.st_mode)
    if mode & _OTHERS and not mode & stat.S_ISVTX and _is_store(folder, reserved):
        folder.chmod(mode & ~_OTHERS)


def _is_store(folder: Path, reserved: str) -> bool:
    return (folder / reserved).is_dir() or not any(folder.iterdir())


def _user(number: int) -> str:
    try:
        return getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
