"""Blocking calls with a bound on the waiting: a thread makes the call, and the caller may stop waiting for it."""

import errno
import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import TIMEOUT_MAX, Lock, Thread
from typing import Any, TypeVar

_Answer = TypeVar("_Answer")


class _Call:
    """One call on its way through a thread; `done` is held until there is an answer or an error."""

    __slots__ = ("abandoned", "answer", "done", "error", "work")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.answer: Any = None
        self.error: BaseException | None = None
        self.abandoned = False
        self.done = Lock()
        self.done.acquire()

    def make(self) -> None:
        try:
            if not self.abandoned:
                self.answer = self.work()
        except BaseException as error:  # noqa: BLE001 - it is raised again where the answer is awaited
            self.error = error
        finally:
            self.done.release()


class Workers:
    """Up to `most` threads, each started when all others are busy.

    Nothing can interrupt a call that hangs in a file system. Its caller gets a TimeoutError; its thread lingers until
    the call returns, and counts as busy. The threads are daemons, so that a lingering one does not keep the
    interpreter from ending (those of `concurrent.futures` do). The way to a thread and back costs 45 to 80
    microseconds on a small virtual machine, two thirds of what `concurrent.futures` takes.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._start_afresh()

    def _start_afresh(self) -> None:
        self._process = os.getpid()
        self._lock = Lock()
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._threads = 0
        self._unfinished = 0
        self._closed = False

    def run(self, work: Callable[[], _Answer], seconds: float) -> _Answer:
        """What `work` returns or raises, or a TimeoutError after that many seconds."""
        if self._process != os.getpid():
            self._start_afresh()  # a forked child inherits the counts, but not the threads
        call = _Call(work)
        self._hand_over(call)
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

    def _hand_over(self, call: _Call) -> None:
        with self._lock:
            if self._closed:
                raise OSError(errno.ESHUTDOWN, "the store was closed")
            if self._threads < min(self._unfinished + 1, self._most):
                Thread(target=self._work, name="file-store", daemon=True).start()
                self._threads += 1
            self._unfinished += 1
            self._calls.put(call)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call.make()
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
