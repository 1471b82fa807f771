"""What other processes do to a store while a test watches."""

import os
import resource
from collections.abc import Callable, Iterable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

import storage.stores
from storage.errors import StoreRefused
from storage.stores.file import FileStore
from tests.storage.stores.helpers import WRITERS, bytes_at, won

KEY = "a/b.bin"
NOBODY = 65534  # the user without rights

# Children that import this module once and for all start in milliseconds, and inherit no threads.
processes = get_context("forkserver")
processes.set_forkserver_preload([__name__])


def writing(folder: Path) -> list[Path]:
    """The temporary files of a store."""
    return list((folder / ".elastic" / "writing").glob("*"))


def in_processes(target: Callable[..., None], *arguments: object) -> None:
    """Run `target(writer, *arguments)` in a process for each writer, and wait for all."""
    children = [processes.Process(target=target, args=(writer, *arguments)) for writer in range(WRITERS)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0] * WRITERS


def claim_each(writer: int, url: str, keys: Iterable[str], start: Barrier) -> None:
    """Try to be the first for every key; a winner leaves a note under its own name."""
    store = storage.stores.open(url)
    for key in keys:
        start.wait(30)
        if won(store.put_if_absent, key, bytes([writer]) * 100_000):
            store.put(f"won/{writer}-{key}", b"")


def write_beyond_the_limit(folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    store = FileStore(folder)
    store.put("small.bin", bytes(100_000))
    with pytest.raises(StoreRefused, match="File too large"):
        store.put("large.bin", bytes(100_001))
    assert [entry.key for entry in store.list()] == ["small.bin"]
    assert writing(folder) == []


def use_without_permission(folder: Path) -> None:
    if os.getuid() == 0:
        os.setuid(NOBODY)  # permissions do not bind root
    store = FileStore(folder, shared=True)
    assert bytes_at(store, KEY) == b"kept"
    assert [entry.key for entry in store.list()] == [KEY, "private.bin"]
    refusals: list[Callable[[], object]] = [
        lambda: store.put(KEY, b"new"),
        lambda: store.put_if_absent("new.bin", b"new"),
        lambda: store.delete([KEY]),
        lambda: store.get("private.bin"),
        lambda: FileStore(folder / "new", shared=True),
    ]
    for refused in refusals:
        with pytest.raises(StoreRefused, match=r"Permission denied\. Give this process's user the right"):
            refused()


def content_of(number: int) -> bytes:
    return number.to_bytes(4, "big") * 150_000


def write_until_killed(folder: Path, first: int, acknowledged: Connection) -> None:
    """New objects, and one that is overwritten, each with its number in every word."""
    store = FileStore(folder)
    number = first
    while True:
        store.put_if_absent(f"new/{number}.bin", content_of(number))
        store.put("overwritten.bin", content_of(number))
        acknowledged.send_bytes(number.to_bytes(4, "big"))
        number += 1
