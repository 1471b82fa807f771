"""A seeded world: controllers, nodes and collectors over one store, interleaved at every store operation.

Every actor is a thread, and only one of them runs at a time: before each operation on the store it hands control back,
and the seed decides who goes on, who crashes there, and which operation fails, gets no answer, or arrives late. The
code under test is the real one. What happened is in the story.
"""

import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import TypeVar

from storage.errors import StoreUnavailable
from storage.stores.memory import MemoryStore
from storage.stores.protocol import Bytes, Entry, Stored

T = TypeVar("T")

PAGE = 5  # objects that a listing sees at a time; others act between two pages


def closed_gate() -> threading.Lock:
    """A lock that one thread takes and another gives back: a semaphore, and twice as fast."""
    gate = threading.Lock()
    gate.acquire()
    return gate


class Crash(BaseException):
    """The actor's process is gone: nothing may catch it."""


class Actor:
    """One process of the world, which stops before every operation until the world lets it go on."""

    def __init__(self, world: "World", name: str, program: Callable[["Actor"], None]) -> None:
        self.world = world
        self.name = name
        self.store = ActorStore(self)
        self.alive = True
        self.ready: Callable[[], bool] = lambda: True
        self.wakes_at = 0
        self._crashed = False
        self._turn = closed_gate()
        self._thread = threading.Thread(target=self._run, args=(program,), daemon=True)
        self._thread.start()

    def pause(self, until: Callable[[], bool] = lambda: True, steps: int = 0) -> None:
        """Let others act, at least until the condition holds, and for that many steps of theirs."""
        if not self._crashed:
            self.ready = until
            self.wakes_at = self.world.steps + steps
            self.world.back.release()
            self._turn.acquire()
        if self._crashed:
            raise Crash

    def sleep(self) -> None:
        """Long enough for others to do much, and to collect what is left of it."""
        self.pause(steps=60)

    def go_on(self, crash: bool = False) -> None:
        """Called by the world: run until the next pause, or the end."""
        self._crashed = crash
        self._turn.release()
        self.world.back.acquire()
        if not self.alive:
            self._thread.join()

    def _run(self, program: Callable[["Actor"], None]) -> None:
        self._turn.acquire()
        try:
            if not self._crashed:
                program(self)
        except Crash:
            self.world.tell(self.name, "crashes")
        except BaseException:  # noqa: BLE001 - kept for the test, which fails with it
            self.world.errors.append(traceback.format_exc())
        self.alive = False
        self.world.back.release()


class World:
    """All actors, the store as it really is, and the operations that are still on their way to it."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311
        self.trouble = self.random.choice([0.001, 0.05, 0.2])  # share of operations that do not go well
        self.crashes = self.random.choice([0.0, 0.0, 0.01, 0.03])  # share of steps that are a crash
        self.stickiness = self.random.choice([0.0, 0.7, 0.9, 0.95])  # how likely the same actor goes on: others sleep
        self.store = MemoryStore()
        self.actors: list[Actor] = []
        self.late: list[Callable[[], object]] = []
        self.story: list[str] = []
        self.errors: list[str] = []
        self.checks: list[Callable[[], None]] = []
        self.back = closed_gate()
        self.steps = 0

    def start(self, name: str, program: Callable[[Actor], None]) -> None:
        self.actors.append(Actor(self, name, program))

    def tell(self, who: str, what: str) -> None:
        self.story.append(f"{who} {what}")

    def run(self) -> None:
        """Until nobody has anything to do, or something is wrong."""
        acting = None
        while not self.errors and (ready := self.ready()):
            self.steps += 1
            if self.late and self.random.random() < 0.02:
                self.deliver()
            if acting not in ready or self.random.random() >= self.stickiness:
                acting = self.random.choice(ready)
            acting.go_on(crash=self.random.random() < self.crashes)
        self.end()

    def ready(self) -> list[Actor]:
        """Who could act now; if all of those sleep, the time has come for the first to wake up."""
        able = [actor for actor in self.actors if actor.alive and actor.ready()]
        if able:
            self.steps = max(self.steps, min(actor.wakes_at for actor in able))
        return [actor for actor in able if actor.wakes_at <= self.steps]

    def end(self) -> None:
        """Everybody stops; what is on its way arrives or is lost."""
        for actor in self.actors:
            if actor.alive:
                actor.go_on(crash=True)
        while self.late:
            self.deliver()

    def deliver(self) -> None:
        operation = self.late.pop(self.random.randrange(len(self.late)))
        if self.random.random() < 0.7:
            self.tell("the network", "delivers what was late")
            try:
                operation()
            except Exception as refused:  # noqa: BLE001 - nobody is there any more to hear it
                self.tell("the store", f"answers nobody: {type(refused).__name__}")
            self.check()

    def check(self) -> None:
        try:
            for check in self.checks:
                check()
        except Exception:  # noqa: BLE001 - kept for the test, which fails with it
            self.errors.append(traceback.format_exc())


class ActorStore:
    """The store as one actor sees it: others act between its operations, and the network is not to be trusted."""

    conditional = True

    def __init__(self, actor: Actor) -> None:
        self._actor = actor
        self._world = actor.world
        self.url = "memory:world"

    def put(self, key: str, data: Bytes, *, timeout: float | None = None) -> str:
        data = bytes(data)
        return self._write("put", key, lambda: self._world.store.put(key, data, timeout=timeout))

    def put_if_absent(self, key: str, data: Bytes, *, timeout: float | None = None) -> str:
        data = bytes(data)
        return self._write("put_if_absent", key, lambda: self._world.store.put_if_absent(key, data, timeout=timeout))

    def compare_and_swap(self, key: str, data: Bytes, expected: str, *, timeout: float | None = None) -> str:
        raise NotImplementedError

    def get(self, key: str, *, timeout: float | None = None) -> Stored:
        return self._read("get", key, lambda: self._world.store.get(key, timeout=timeout))

    def get_range(self, key: str, start: int, stop: int, *, timeout: float | None = None) -> memoryview:
        return self._read("get_range", key, lambda: self._world.store.get_range(key, start, stop, timeout=timeout))

    def list(self, prefix: str = "", *, timeout: float | None = None) -> Iterator[Entry]:
        last = ""
        while True:
            page = self._read("list", prefix, lambda: list(self._world.store.list(prefix, timeout=timeout)))
            page = [entry for entry in page if entry.key > last][:PAGE]
            if not page:
                return
            yield from page
            last = page[-1].key

    def delete(self, keys: Iterable[str], *, timeout: float | None = None) -> None:
        for key in list(keys):

            def delete_one(key: str = key) -> str:
                self._world.store.delete([key], timeout=timeout)
                return ""

            self._write("delete", key, delete_one)

    def close(self) -> None:
        """Nothing to give back."""

    def _read(self, operation: str, key: str, run: Callable[[], T]) -> T:
        self._actor.pause()
        if self._world.random.random() < self._world.trouble / 10:
            raise self._trouble(operation, key, "fails")
        return run()

    def _write(self, operation: str, key: str, run: Callable[[], str]) -> str:
        self._actor.pause()
        fate = self._world.random.random() / self._world.trouble
        if fate < 1 / 3:
            raise self._trouble(operation, key, "fails")
        if fate < 2 / 3:
            self._world.late.append(run)
            raise self._trouble(operation, key, "is late")
        self._world.tell(self._actor.name, f"{operation} {key}")
        version = run()
        if operation != "put":  # a new object harms no promise
            self._world.check()
        if fate < 1:
            raise self._trouble(operation, key, "gets no answer")
        return version

    def _trouble(self, operation: str, key: str, what: str) -> StoreUnavailable:
        self._world.tell(self._actor.name, f"{operation} {key} {what}")
        return StoreUnavailable(self.url, operation, key, what)
