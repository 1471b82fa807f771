"""Locks, events, conditions, queues, futures and pools whose waits switch to another simulated thread."""

import queue
from collections import deque
from collections.abc import Callable
from concurrent import futures
from typing import TYPE_CHECKING, Any

from greenlet import GreenletExit

if TYPE_CHECKING:
    from tests.elastic.simulation.scheduler import Scheduler, SimulatedThread


class WorldEnded(BaseException):
    """Raised by every wait when the simulation is over, so that threads that were left unwind."""


class SimulatedEvent:
    """`threading.Event`."""

    def __init__(self, scheduler: "Scheduler") -> None:
        self._scheduler = scheduler
        self._is_set = False
        self._waiting: list[SimulatedThread] = []

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        waiting, self._waiting = self._waiting, []
        for thread in waiting:
            self._scheduler.notify(thread)
        self._scheduler.preempt()

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        if self._is_set:
            self._scheduler.preempt()
            return True
        thread = self._scheduler.current()
        self._waiting.append(thread)
        notified = self._scheduler.wait("an event", self._scheduler.deadline(timeout))
        if not notified and thread in self._waiting:
            self._waiting.remove(thread)
        return notified or self._is_set


class SimulatedLock:
    """`threading.Lock` and `threading.RLock`."""

    def __init__(self, scheduler: "Scheduler", reentrant: bool) -> None:
        self._scheduler = scheduler
        self._reentrant = reentrant
        self._owner: SimulatedThread | None = None
        self._depth = 0
        self._waiting: list[SimulatedThread] = []

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        scheduler = self._scheduler
        thread = scheduler.current()
        if self._reentrant and self._owner is thread and self._depth:
            self._depth += 1
            return True
        scheduler.preempt()
        deadline = None if timeout < 0 else scheduler.deadline(timeout)
        while self._depth:
            if not blocking:
                return False
            self._waiting.append(thread)
            if not scheduler.wait(f"a lock that {self._owner!r} holds", deadline):
                if thread in self._waiting:
                    self._waiting.remove(thread)
                return False
        self._owner, self._depth = thread, 1
        return True

    def release(self) -> None:
        if not self._depth:
            raise RuntimeError("the lock is not held")
        self._depth -= 1
        if not self._depth:
            self._owner = None
            waiting, self._waiting = self._waiting, []
            for thread in waiting:
                self._scheduler.notify(thread)

    def locked(self) -> bool:
        return bool(self._depth)

    def release_all(self) -> int:
        """For a condition: release however deep, and say how deep it was."""
        depth, self._depth = self._depth, 1
        self.release()
        return depth

    def restore(self, depth: int) -> None:
        self.acquire()
        self._depth = depth

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class SimulatedCondition:
    """`threading.Condition` with a lock of its own."""

    def __init__(self, scheduler: "Scheduler") -> None:
        self._scheduler = scheduler
        self._lock = SimulatedLock(scheduler, reentrant=True)
        self._waiting: list[SimulatedThread] = []
        self.acquire, self.release = self._lock.acquire, self._lock.release

    def wait(self, timeout: float | None = None) -> bool:
        thread = self._scheduler.current()
        self._waiting.append(thread)
        depth = self._lock.release_all()
        try:
            notified = self._scheduler.wait("a condition", self._scheduler.deadline(timeout))
            if not notified and thread in self._waiting:
                self._waiting.remove(thread)
            return notified
        finally:
            self._lock.restore(depth)

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        deadline = self._scheduler.deadline(timeout)
        while not (result := predicate()):
            left = None if deadline is None else deadline - self._scheduler.now
            if left is not None and left <= 0:
                return result
            self.wait(left)
        return result

    def notify(self, n: int = 1) -> None:
        woken, self._waiting = self._waiting[:n], self._waiting[n:]
        for thread in woken:
            self._scheduler.notify(thread)

    def notify_all(self) -> None:
        self.notify(len(self._waiting))

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class SimulatedQueue:
    """`queue.Queue` and `queue.SimpleQueue`."""

    def __init__(self, scheduler: "Scheduler", maxsize: int = 0) -> None:
        self._scheduler = scheduler
        self._maxsize = maxsize
        self._items: deque[Any] = deque()
        self._getting: list[SimulatedThread] = []
        self._putting: list[SimulatedThread] = []

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        scheduler = self._scheduler
        deadline = scheduler.deadline(timeout)
        while self._maxsize and len(self._items) >= self._maxsize:
            if not block or (deadline is not None and scheduler.now >= deadline):
                raise queue.Full
            self._putting.append(scheduler.current())
            scheduler.wait("room in a queue", deadline)
        self._items.append(item)
        scheduler.notify_one(self._getting)
        scheduler.preempt()

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        scheduler = self._scheduler
        scheduler.preempt()
        deadline = scheduler.deadline(timeout)
        while not self._items:
            if not block or (deadline is not None and scheduler.now >= deadline):
                raise queue.Empty
            self._getting.append(scheduler.current())
            scheduler.wait("an item of a queue", deadline)
        item = self._items.popleft()
        scheduler.notify_one(self._putting)
        return item

    def empty(self) -> bool:
        return not self._items

    def qsize(self) -> int:
        return len(self._items)


class SimulatedFuture(futures.Future[Any]):
    """`concurrent.futures.Future`, whose waits are simulated."""

    def __init__(self, scheduler: "Scheduler") -> None:
        super().__init__()
        self._condition: Any = SimulatedCondition(scheduler)


class SimulatedPool(futures.Executor):
    """`concurrent.futures.ThreadPoolExecutor`: at most `size` threads at a time, which end when there is no work."""

    def __init__(self, scheduler: "Scheduler", size: int, name: str = "") -> None:
        self._scheduler = scheduler
        self._size = size
        self._name = name or "pool"
        self._work: deque[tuple[SimulatedFuture, Callable[[], Any]]] = deque()
        self._working: list[SimulatedThread] = []
        self._is_shut_down = False

    def submit(self, call: Callable[..., Any], /, *args: Any, **keywords: Any) -> futures.Future[Any]:
        if self._is_shut_down:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future = SimulatedFuture(self._scheduler)
        self._work.append((future, lambda: call(*args, **keywords)))
        if len(self._working) < self._size:
            thread = self._scheduler.thread(self._run, self._name)
            self._working.append(thread)
            thread.start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._is_shut_down = True
        while cancel_futures and self._work:
            self._work.popleft()[0].cancel()
        if wait:
            for thread in list(self._working):
                thread.join()

    def _run(self) -> None:
        try:
            while self._work:
                future, call = self._work.popleft()
                if not future.set_running_or_notify_cancel():
                    continue
                try:
                    result = call()
                except (GreenletExit, WorldEnded):
                    raise
                except BaseException as error:  # noqa: BLE001 - raised to who asks for the result
                    future.set_exception(error)
                else:
                    future.set_result(result)
        finally:
            self._working.remove(self._scheduler.current())
