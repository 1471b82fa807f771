"""Blocking calls to the file system, with a timeout and with the typed errors of this package.

A thread makes the call; the caller may stop waiting for it.
"""

import errno
import os
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from threading import TIMEOUT_MAX, Lock, Thread
from typing import Any, TypeVar

from storage.errors import StorageError, StoreFull, StoreRefused, StoreTimeout, StoreUnavailable

_Answer = TypeVar("_Answer")

_PERMISSIONS = "Give this process's user the right to read and write the folder, or choose another folder."
_ABILITIES = "Choose a folder on a file system that has locks and hard links."

# Errors that a retry does not fix. Any other may pass: StoreUnavailable.
_REFUSALS: Mapping[int | None, tuple[type[StoreRefused], str]] = {
    errno.ENOSPC: (StoreFull, "Free some space; nothing that was stored before is harmed."),
    errno.EDQUOT: (StoreFull, "Free some space or raise the quota; nothing that was stored before is harmed."),
    errno.EFBIG: (StoreRefused, "Raise the limit on the size of files (ulimit -f), or store smaller objects."),
    errno.EACCES: (StoreRefused, _PERMISSIONS),
    errno.EPERM: (StoreRefused, _PERMISSIONS),
    errno.EROFS: (StoreRefused, _PERMISSIONS),
    errno.ENOTDIR: (StoreRefused, "Choose another folder, or move away the file that is in its place."),
    errno.ENOTSUP: (StoreRefused, _ABILITIES),
    errno.ENOSYS: (StoreRefused, _ABILITIES),
    errno.ENOLCK: (StoreRefused, _ABILITIES),
    errno.ESHUTDOWN: (StoreRefused, "Open the store again."),
}


def to_storage_error(error: OSError, store: str, operation: str, key: str) -> StorageError:
    """Return the typed error to raise for an error of the operating system."""
    reason = error.strerror or str(error)
    if isinstance(error, TimeoutError):
        return StoreTimeout(store, operation, key, reason)
    if error.errno not in _REFUSALS:
        return StoreUnavailable(store, operation, key, reason)
    refusal, advice = _REFUSALS[error.errno]
    return refusal(store, operation, key, reason, advice)


class _Call:
    """One call and its outcome; `done` is held until there is an answer or an error."""

    __slots__ = ("abandoned", "answer", "done", "error", "work")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.answer: Any = None
        self.error: BaseException | None = None
        self.abandoned = False
        self.done = Lock()
        self.done.acquire()

    def run(self) -> None:
        try:
            if not self.abandoned:
                self.answer = self.work()
        except BaseException as error:  # noqa: BLE001 - the caller raises it again
            self.error = error
        finally:
            self.done.release()


class CallThreads:
    """Up to `limit` threads, each started when all others are busy.

    Nothing can interrupt a call that hangs in a file system. Its caller gets a TimeoutError; its thread stays busy
    until the call returns. The threads are daemons, so that a hanging one does not keep the interpreter from ending
    (those of `concurrent.futures` do). A call through a thread costs 45 to 80 microseconds on a small virtual machine,
    two thirds of what `concurrent.futures` takes.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._lock = Lock()
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._threads = 0
        self._unfinished = 0
        self._closed = False

    def run(self, work: Callable[[], _Answer], seconds: float) -> _Answer:
        """Return or raise what `work` does, or raise TimeoutError after that many seconds."""
        if self._process != os.getpid():
            self._reset()  # a forked child inherits the counts, but not the threads
        call = _Call(work)
        self._submit(call)
        if not call.done.acquire(timeout=min(seconds, TIMEOUT_MAX)):
            call.abandoned = True
            raise TimeoutError(errno.ETIMEDOUT, f"no answer within {seconds:g} s")
        try:
            if call.error is not None:
                raise call.error
            answer: _Answer = call.answer
            return answer
        finally:
            del call  # the error's traceback would hold it, and with it the bytes to write, in a cycle

    def _submit(self, call: _Call) -> None:
        with self._lock:
            if self._closed:
                raise OSError(errno.ESHUTDOWN, "the store was closed")
            if self._threads < min(self._unfinished + 1, self._limit):
                Thread(target=self._work, name="file-store", daemon=True).start()
                self._threads += 1
            self._unfinished += 1
            self._calls.put(call)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call.run()
            with self._lock:
                self._unfinished -= 1
            del call  # an idle thread must not keep the last answer in memory

    def close(self) -> None:
        """Let every thread end after its call; idempotent."""
        with self._lock:
            self._closed = True
            for _ in range(self._threads):
                self._calls.put(None)
            self._threads = 0
