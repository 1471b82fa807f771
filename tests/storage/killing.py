"""Work that is killed before one call of its store: what a test finds afterwards is what it left.

`survives` kills a process of its own with kill -9, and `survives_files` before an operation on files. `is_killed` stops
the work in this process, for all calls one after the other: every later call of the store fails too, so that nothing
can be tidied up.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from storage.stores.file import FileStore
from storage.stores.protocol import Bytes, ObjectInfo, Store

_SECONDS = 120.0
# Children that import this module once and for all start in milliseconds, and inherit no threads.
_processes = get_context("forkserver")
_processes.set_forkserver_preload([__name__])

Work = Callable[..., object]


class KillingStore:
    """A store that calls `kill` before the call with this number, and before all later ones, of any thread."""

    def __init__(self, store: Store, survived: int, kill: Callable[[], object]) -> None:
        self._store = store
        self._left = survived
        self._kill = kill
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return self._store.url

    @property
    def conditional(self) -> bool:
        return self._store.conditional

    def put(self, key: str, data: Bytes, *, timeout: float | None = None) -> None:
        self._call()
        self._store.put(key, data, timeout=timeout)

    def put_if_absent(self, key: str, data: Bytes, *, timeout: float | None = None) -> None:
        self._call()
        self._store.put_if_absent(key, data, timeout=timeout)

    def get(self, key: str, *, timeout: float | None = None) -> memoryview:
        self._call()
        return self._store.get(key, timeout=timeout)

    def get_range(self, key: str, start: int, stop: int, *, timeout: float | None = None) -> memoryview:
        self._call()
        return self._store.get_range(key, start, stop, timeout=timeout)

    def list(self, prefix: str = "", *, timeout: float | None = None) -> Iterator[ObjectInfo]:
        self._call()
        return self._store.list(prefix, timeout=timeout)

    def delete(self, keys: Iterable[str], *, timeout: float | None = None) -> None:
        for key in [*keys]:
            self._call()
            self._store.delete([key], timeout=timeout)

    def close(self) -> None:
        self._store.close()

    def _call(self) -> None:
        with self._lock:
            if self._left == 0:
                self._kill()
            self._left -= 1


class Killed(BaseException):
    """Stands for the end of a process."""


def is_killed(work: Work, store: Store, survived: int, *arguments: Any) -> bool:
    """Call `work(store, *arguments)` until one call of the store; return whether it came to that call."""

    def kill() -> None:
        raise Killed

    try:
        work(KillingStore(store, survived, kill), *arguments)
    except Killed:
        return True
    return False


def survives(work: Work, folder: Path, survived: int, *arguments: Any) -> bool:
    """Call `work(store, *arguments)` in a process that is killed before one call of its store; False if it was."""
    child = _processes.Process(target=_run, args=(work, folder, survived, *arguments))
    child.start()
    child.join(_SECONDS)
    assert child.exitcode in (0, -signal.SIGKILL), child.exitcode
    return child.exitcode == 0


def survives_files(work: Work, folder: Path, survived: int, *arguments: Any) -> bool:
    """Call `work(*arguments)` in a process that is killed before one operation on files whose path has this prefix.

    Counted are what changes a folder, every file that Python opens, and every sync; False if the process was killed.
    """
    child = _processes.Process(target=_run_on_files, args=(work, str(folder), survived, *arguments))
    child.start()
    child.join(_SECONDS)
    assert child.exitcode in (0, -signal.SIGKILL), child.exitcode
    return child.exitcode == 0


_FILE_EVENTS = frozenset({"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"})


def _run_on_files(work: Work, prefix: str, survived: int, *arguments: Any) -> None:
    left = survived

    def count() -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    def audit(event: str, details: tuple[Any, ...]) -> None:
        is_path = event in _FILE_EVENTS and isinstance(details[0], str | os.PathLike)
        if is_path and os.fspath(details[0]).startswith(prefix):
            count()

    sync = os.fsync

    def counted_sync(fd: Any) -> None:
        count()
        sync(fd)

    os.fsync = counted_sync
    sys.addaudithook(audit)
    work(*arguments)


def _run(work: Work, folder: Path, survived: int, *arguments: Any) -> None:
    work(KillingStore(FileStore(folder), survived, lambda: os.kill(os.getpid(), signal.SIGKILL)), *arguments)
