"""The objects below a folder, in order of their keys, folder by folder."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from storage.errors import InvalidStorageInput
from storage.stores.keys import checked_key, checked_prefix
from storage.stores.protocol import Entry

Entries = list[Entry]


def entries(prefix: str, scan: Callable[[str, str], Entries]) -> Iterator[Entry]:
    """All objects whose key starts with `prefix`; `scan` reads one folder, see `scan_folder`.

    Sorting each folder by itself is enough: with its slash, no name of a folder is the beginning of a sibling's, so
    what is in a folder lies between the same neighbours as its name.
    """
    parent, slash, beginning = prefix.rpartition("/")
    for entry in scan(parent + slash, beginning):
        if entry.key.endswith("/"):
            yield from entries(entry.key, scan)
        else:
            yield entry


def scan_folder(top: Path, parent: str, beginning: str) -> Entries:
    """Folders (with a slash) and objects in folder `parent` whose names start so, in order; [] if it is gone."""
    try:
        with os.scandir(top / parent) as names:
            found = (_entry(parent, name) for name in names if name.name.startswith(beginning))
            return sorted(entry for entry in found if entry is not None)
    except FileNotFoundError:  # never made, or removed with its last object
        return []


def _entry(parent: str, found: os.DirEntry[str]) -> Entry | None:
    """None for what is no object and no folder of objects: the reserved folder, lost+found, notes, a link."""
    try:
        if found.is_dir(follow_symlinks=False):
            return Entry(checked_prefix(f"{parent}{found.name}/"), 0)
        key = checked_key(parent + found.name)
        return Entry(key, found.stat(follow_symlinks=False).st_size) if found.is_file(follow_symlinks=False) else None
    except (InvalidStorageInput, FileNotFoundError):  # a name that no key has, or just deleted
        return None
