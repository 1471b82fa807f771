"""Threads, queues, waits and the clock of the driver, the nodes and the sinks.

They are Python's own, except inside `replaced_by`: there a simulation provides them, so that one seed decides which
thread runs next and how time passes. Code that may run in a simulation uses this module in place of `threading`,
`queue`, `time` and `concurrent.futures`.
"""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from typing import Any, Protocol


class Threads(Protocol):
    """The port that a simulation implements; each call returns an object with the interface of Python's own."""

    def thread(self, target: Callable[[], object], name: str) -> Any: ...

    def event(self) -> Any: ...

    def lock(self, reentrant: bool) -> Any: ...

    def condition(self) -> Any: ...

    def queue(self, maxsize: int) -> Any: ...

    def pool(self, size: int, name: str, initializer: Callable[[], object] | None) -> Any: ...

    def future(self) -> Any: ...

    def monotonic(self) -> float: ...

    def time_ns(self) -> int: ...

    def sleep(self, seconds: float) -> None: ...

    def current(self) -> Any: ...


class _Python:
    """Python's own threads, all daemons: a call that hangs does not keep the process from exiting."""

    def thread(self, target: Callable[[], object], name: str) -> threading.Thread:
        return threading.Thread(target=target, name=name, daemon=True)

    def event(self) -> threading.Event:
        return threading.Event()

    def lock(self, reentrant: bool) -> Any:
        return threading.RLock() if reentrant else threading.Lock()

    def condition(self) -> threading.Condition:
        return threading.Condition()

    def queue(self, maxsize: int) -> Any:
        return queue.Queue(maxsize) if maxsize else queue.SimpleQueue()

    def pool(self, size: int, name: str, initializer: Callable[[], object] | None) -> futures.Executor:
        return futures.ThreadPoolExecutor(size, name, initializer)

    def future(self) -> futures.Future[Any]:
        return futures.Future()

    def monotonic(self) -> float:
        return time.monotonic()

    def time_ns(self) -> int:
        return time.time_ns()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def current(self) -> threading.Thread:
        return threading.current_thread()


_threads: Threads = _Python()


@contextmanager
def replaced_by(simulated: Threads) -> Iterator[None]:
    """Use `simulated` inside the block. For tests; at most one at a time in a process."""
    global _threads
    before, _threads = _threads, simulated
    try:
        yield
    finally:
        _threads = before


def Thread(target: Callable[[], object], name: str) -> threading.Thread:  # noqa: N802 - named after Python's, as all below
    """Return a daemon thread that is not started."""
    thread: threading.Thread = _threads.thread(target, name)
    return thread


def Event() -> threading.Event:  # noqa: N802
    event: threading.Event = _threads.event()
    return event


def Lock() -> Any:  # noqa: N802
    return _threads.lock(reentrant=False)


def RLock() -> Any:  # noqa: N802
    """Return a lock that its owner may acquire again."""
    return _threads.lock(reentrant=True)


def Condition() -> threading.Condition:  # noqa: N802
    condition: threading.Condition = _threads.condition()
    return condition


def Queue(maxsize: int = 0) -> Any:  # noqa: N802
    """Return a queue whose `put` blocks while it holds `maxsize` items; 0 means no limit."""
    return _threads.queue(maxsize)


def ThreadPool(size: int, name: str, initializer: Callable[[], object] | None = None) -> futures.Executor:  # noqa: N802
    pool: futures.Executor = _threads.pool(size, name, initializer)
    return pool


def Future() -> futures.Future[Any]:  # noqa: N802
    future: futures.Future[Any] = _threads.future()
    return future


def monotonic() -> float:
    return _threads.monotonic()


def time_ns() -> int:
    return _threads.time_ns()


def sleep(seconds: float) -> None:
    _threads.sleep(seconds)


def current_thread() -> threading.Thread:
    thread: threading.Thread = _threads.current()
    return thread
