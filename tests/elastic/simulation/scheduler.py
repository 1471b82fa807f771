"""Simulated threads: greenlets of one OS thread, which a seed switches, in a time that passes only while all wait.

`Scheduler` implements the port `elastic.threads.Threads`. A simulated thread runs until it calls something that may
wait; then the scheduler picks the next one at random. Nothing else switches, so one seed always tells one story. When
no thread can run, the clock jumps to the next deadline: heartbeats, timeouts and pauses cost no real time.

Threads belong to a `Process`, which can be killed: none of its threads runs again, no `finally` of theirs is executed,
and the locks they hold stay held, as with SIGKILL.
"""

import heapq
import random
from collections.abc import Callable
from itertools import count
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

from tests.elastic.simulation.primitives import (
    SimulatedCondition,
    SimulatedEvent,
    SimulatedFuture,
    SimulatedLock,
    SimulatedPool,
    SimulatedQueue,
    WorldEnded,
)

_EPOCH_NS = 1_700_000_000 * 10**9  # what a clock on the wall says when a world begins
_SHOWN_THREADS = 200


class Stuck(AssertionError):
    """The threads wait for each other, or did not come to rest within the limits; says what each waits for."""


class Process:
    """Threads that live and die together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_alive = True
        self.threads: list[SimulatedThread] = []

    def __repr__(self) -> str:
        return self.name


class SimulatedThread:
    """A thread with the interface of Python's own."""

    def __init__(
        self, scheduler: "Scheduler", target: Callable[[], object], name: str, process: Process, number: int
    ) -> None:
        self.name = name
        self.process = process
        self.ident: int | None = None
        self.waits_for = ""
        self.wait_number = 0  # of the wait under way; a deadline of an earlier one is ignored
        self.was_notified = False
        self._scheduler = scheduler
        self._target = target
        self._number = number
        self._has_ended = False
        self._joining: list[SimulatedThread] = []
        self.greenlet = greenlet(self._run, scheduler.hub)

    def start(self) -> None:
        if self.ident is not None:
            raise RuntimeError(f"{self.name} was started before")
        self.ident = self._number
        self._scheduler.begin(self)

    def is_alive(self) -> bool:
        return self.ident is not None and not self._has_ended

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end; also that of its process, unless that was killed silently."""
        deadline = self._scheduler.deadline(timeout)
        while not self._has_ended:
            self._joining.append(self._scheduler.current())
            if not self._scheduler.wait(f"the end of {self.name}", deadline):
                return

    def end(self) -> None:
        self._has_ended = True
        for waiting in self._joining:
            self._scheduler.notify(waiting)
        self._joining.clear()

    def _run(self) -> None:
        try:
            self._target()
        except (GreenletExit, WorldEnded):
            return
        except BaseException as error:  # noqa: BLE001 - a bug in whatever ran, shown by the scheduler
            self._scheduler.fail(self, error)
        self.end()

    def __repr__(self) -> str:
        return f"{self.process}/{self.name}"


class Scheduler:
    """Runs simulated threads by a seed. `preemption` is the probability that a call that need not wait lets others run.

    `step_limit` and `seconds_limit` bound a run: switches, and simulated seconds.
    """

    def __init__(
        self,
        chance: random.Random,
        *,
        preemption: float = 0.1,
        step_limit: int = 2_000_000,
        seconds_limit: float = 100_000.0,
    ) -> None:
        self.now = 0.0
        self.steps = 0
        self._chance = chance
        self._preemption = preemption
        self._step_limit = step_limit
        self._seconds_limit = seconds_limit
        self._runnable: list[SimulatedThread] = []
        self._deadlines: list[tuple[float, int, SimulatedThread, int]] = []
        self._numbers = count(1)
        self._all: dict[SimulatedThread, None] = {}
        self._current: SimulatedThread | None = None
        self._failed: tuple[SimulatedThread, BaseException] | None = None
        self._is_over = False
        self.hub = getcurrent()
        self.world = Process("world")

    # Life of the world.

    def run(self, body: Callable[[], object]) -> None:
        """Run `body` as the first thread until it returns; then all others end, wherever they are.

        Raises what a thread did not catch, or `Stuck`.
        """
        self.hub = getcurrent()
        first = self.spawn(body, "main", self.world)
        try:
            while first.is_alive():
                self._run_one()
                if self._failed is not None:
                    raise self._failed[1]
        finally:
            self._end_all()

    def _run_one(self) -> None:
        runnable = self._runnable
        if not runnable:
            self._advance()
            return
        position = int(self._chance.random() * len(runnable))
        thread = runnable[position]
        runnable[position] = runnable[-1]
        runnable.pop()
        if not thread.process.is_alive:
            return
        self.steps += 1
        if self.steps > self._step_limit:
            raise Stuck(f"{self._step_limit} switches were not enough. {self.describe()}")
        self._current = thread
        thread.greenlet.switch()
        self._current = None
        if thread.greenlet.dead:
            self._all.pop(thread, None)

    def _advance(self) -> None:
        """Let time pass until the next deadline, and wake all that have it."""
        deadlines = self._deadlines
        while deadlines and not self._is_due(deadlines[0]):
            heapq.heappop(deadlines)
        if not deadlines:
            raise Stuck(f"every thread waits for another one. {self.describe()}")
        self.now = max(self.now, deadlines[0][0])
        if self.now > self._seconds_limit:
            raise Stuck(f"{self._seconds_limit:g} simulated seconds were not enough. {self.describe()}")
        while deadlines and deadlines[0][0] <= self.now:
            due = heapq.heappop(deadlines)
            if self._is_due(due):
                thread = due[2]
                thread.wait_number += 1
                thread.waits_for = ""
                self._runnable.append(thread)

    def _is_due(self, entry: tuple[float, int, SimulatedThread, int]) -> bool:
        _, _, thread, number = entry
        return thread.wait_number == number and thread.process.is_alive

    def describe(self) -> str:
        """What every thread waits for, as a thread dump."""
        lines = [f"  {thread!r}: {thread.waits_for or 'runnable'}" for thread in self._all if thread.process.is_alive]
        return "\n".join([f"At {self.now:.3f} s:", *lines[:_SHOWN_THREADS]])

    def fail(self, thread: SimulatedThread, error: BaseException) -> None:
        if self._failed is None and not self._is_over:
            error.add_note(f"in the simulated thread {thread!r} at {self.now:.3f} s")
            self._failed = (thread, error)

    def _end_all(self) -> None:
        """Unwind what is left: greenlets that are only dropped would run their `finally` blocks at any later time."""
        self._is_over = True
        for thread in list(self._all):
            if thread.greenlet:  # started and not dead
                for _ in range(20):
                    thread.greenlet.throw(WorldEnded)
                    if thread.greenlet.dead:
                        break
        self._all.clear()
        self._runnable.clear()
        self._deadlines.clear()

    # Processes.

    @property
    def process(self) -> Process:
        """The process of the thread that runs."""
        assert self._current is not None
        return self._current.process

    def spawn(self, target: Callable[[], object], name: str, process: Process | None = None) -> SimulatedThread:
        """Start a thread, in the process of the caller by default."""
        thread = self.thread(target, name, process)
        thread.start()
        return thread

    def kill(self, process: Process, *, silently: bool = False) -> None:
        """End a process at once; who joins its threads is told, unless that is silent: then nobody ever is."""
        process.is_alive = False
        if not silently:
            self.announce(process)

    def announce(self, process: Process) -> None:
        """Tell who joins threads of a killed process that they are gone."""
        for thread in process.threads:
            if thread.is_alive():
                thread.end()

    # Waiting.

    def deadline(self, timeout: float | None) -> float | None:
        return None if timeout is None else self.now + max(0.0, timeout)

    def wait(self, what: str, deadline: float | None) -> bool:
        """Let others run until `notify`; False if the deadline came first."""
        thread = self._switching()
        if deadline is not None:
            heapq.heappush(self._deadlines, (deadline, next(self._numbers), thread, thread.wait_number))
        thread.waits_for, thread.was_notified = what, False
        self._switch()
        thread.waits_for = ""
        return thread.was_notified

    def notify(self, thread: SimulatedThread) -> bool:
        """End the wait of a thread; False if it does not wait any more."""
        if not thread.waits_for or thread.was_notified or not thread.process.is_alive:
            return False
        thread.was_notified = True
        thread.wait_number += 1
        self._runnable.append(thread)
        return True

    def notify_one(self, waiting: list[SimulatedThread]) -> None:
        """End the wait of the first that still waits, and take it and those before it off the list."""
        while waiting and not self.notify(waiting.pop(0)):
            pass

    def pause(self) -> None:
        """Let others run, and go on as soon as the seed says so."""
        thread = self._switching()
        self._runnable.append(thread)
        self._switch()

    def preempt(self) -> None:
        """The same, sometimes."""
        if self._is_over:
            raise WorldEnded
        if self._chance.random() < self._preemption:
            self.pause()

    def begin(self, thread: SimulatedThread) -> None:
        if self._is_over:
            raise WorldEnded
        self._all[thread] = None
        thread.process.threads = [one for one in thread.process.threads if one.is_alive()]
        thread.process.threads.append(thread)
        self._runnable.append(thread)

    def _switching(self) -> SimulatedThread:
        if self._is_over:
            raise WorldEnded
        assert self._current is not None, "only a simulated thread may wait"
        return self._current

    def _switch(self) -> None:
        self.hub.switch()
        if self._is_over:
            raise WorldEnded

    # The port `elastic.threads.Threads`.

    def thread(self, target: Callable[[], object], name: str, process: Process | None = None) -> SimulatedThread:
        return SimulatedThread(self, target, name, process or self.process, next(self._numbers))

    def current(self) -> Any:
        if self._is_over:
            raise WorldEnded
        return self._current

    def event(self) -> SimulatedEvent:
        return SimulatedEvent(self)

    def lock(self, reentrant: bool) -> SimulatedLock:
        return SimulatedLock(self, reentrant)

    def condition(self) -> SimulatedCondition:
        return SimulatedCondition(self)

    def queue(self, maxsize: int) -> SimulatedQueue:
        return SimulatedQueue(self, maxsize)

    def pool(self, size: int, name: str, initializer: Callable[[], object] | None = None) -> SimulatedPool:  # noqa: ARG002
        """An initializer is for real threads: it changes their priority."""
        return SimulatedPool(self, size, name)

    def future(self) -> SimulatedFuture:
        return SimulatedFuture(self)

    def monotonic(self) -> float:
        return self.now

    def time_ns(self) -> int:
        return _EPOCH_NS + int(self.now * 1e9)

    def sleep(self, seconds: float) -> None:
        self.wait("time to pass", self.deadline(seconds))

    def random_seconds(self, most: float) -> float:
        return self._chance.random() * most
