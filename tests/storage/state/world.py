"""A seeded world: drivers, nodes and collectors over one store, interleaved at every store operation.

Every actor is a thread, and only one of them runs at a time: before each operation on the store it yields,
and the seed decides which actor continues, which one crashes, and which operation fails, gets no answer, or arrives
late. The code under test is the real one. The story lists what happened.
"""

import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import TypeVar

from storage.errors import StoreUnavailable
from storage.stores.memory import MemoryStore
from storage.stores.protocol import Bytes, ObjectInfo

T = TypeVar("T")

PAGE = 5  # objects that a listing sees at a time; others act between two pages


def closed_gate() -> threading.Lock:
    """Return a lock that one thread takes and another releases: a semaphore, and twice as fast."""
    gate = threading.Lock()
    gate.acquire()
    return gate


class Crash(BaseException):
    """The actor's process is gone: nothing may catch it."""


class Actor:
    """One process of the world, which pauses before every operation until the world resumes it."""

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
        """Let other actors act, at least until the condition holds, and for that many steps."""
        if not self._crashed:
            self.ready = until
            self.wakes_at = self.world.steps + steps
            self.world.back.release()
            self._turn.acquire()
        if self._crashed:
            raise Crash

    def sleep(self) -> None:
        """Pause long enough for others to do much and for a collection."""
        self.pause(steps=60)

    def resume(self, crash: bool = False) -> None:
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
    """All actors, the store, and the operations that are still in flight."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311
        self.trouble = self.random.choice([0.001, 0.05, 0.2])  # share of operations that do not go well
        self.crashes = self.random.choice([0.0, 0.0, 0.01, 0.03])  # share of steps that are a crash
        self.stickiness = self.random.choice([0.0, 0.7, 0.9, 0.95])  # how likely the same actor continues: others sleep
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
        """Run until no actor has anything to do, or a check fails."""
        acting = None
        while not self.errors and (ready := self.ready()):
            self.steps += 1
            if self.late and self.random.random() < 0.02:
                self.deliver()
            if acting not in ready or self.random.random() >= self.stickiness:
                acting = self.random.choice(ready)
            acting.resume(crash=self.random.random() < self.crashes)
        self.end()

    def ready(self) -> list[Actor]:
        """Return the actors that can act now; if all of them sleep, the first one wakes up."""
        able = [actor for actor in self.actors if actor.alive and actor.ready()]
        if able:
            self.steps = max(self.steps, min(actor.wakes_at for actor in able))
        return [actor for actor in able if actor.wakes_at <= self.steps]

    def end(self) -> None:
        """Stop all actors; operations in flight arrive or are lost."""
        for actor in self.actors:
            if actor.alive:
                actor.resume(crash=True)
        while self.late:
            self.deliver()

    def deliver(self) -> None:
        operation = self.late.pop(self.random.randrange(len(self.late)))
        if self.random.random() < 0.7:
            self.tell("the network", "delivers what was late")
            try:
                operation()
            except Exception as refused:  # noqa: BLE001 - its caller is gone
                self.tell("the store", f"refuses it: {type(refused).__name__}")
            self.check()

    def check(self) -> None:
        try:
            for check in self.checks:
                check()
        except Exception:  # noqa: BLE001 - kept for the test, which fails with it
            self.errors.append(traceback.format_exc())


class ActorStore:
    """The store as one actor sees it: others act between its operations, and the network is unreliable."""

    conditional = True

    def __init__(self, actor: Actor) -> None:
        self._actor = actor
        self._world = actor.world
        self.url = "memory:world"

    def put(self, key: str, data: Bytes, *, timeout: float | None = None) -> None:
        data = bytes(data)
        self._write("put", key, lambda: self._world.store.put(key, data, timeout=timeout))

    def put_if_absent(self, key: str, data: Bytes, *, timeout: float | None = None) -> None:
        data = bytes(data)
        self._write("put_if_absent", key, lambda: self._world.store.put_if_absent(key, data, timeout=timeout))

    def get(self, key: str, *, timeout: float | None = None) -> memoryview:
        return self._read("get", key, lambda: self._world.store.get(key, timeout=timeout))

    def get_range(self, key: str, start: int, stop: int, *, timeout: float | None = None) -> memoryview:
        return self._read("get_range", key, lambda: self._world.store.get_range(key, start, stop, timeout=timeout))

    def list(self, prefix: str = "", *, timeout: float | None = None) -> Iterator[ObjectInfo]:
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

            def delete_one(key: str = key) -> None:
                self._world.store.delete([key], timeout=timeout)

            self._write("delete", key, delete_one)

    def close(self) -> None:
        """Do nothing."""

    def _read(self, operation: str, key: str, run: Callable[[], T]) -> T:
        self._actor.pause()
        if self._world.random.random() < self._world.trouble / 10:
            raise self._trouble(operation, key, "fails")
        return run()

    def _write(self, operation: str, key: str, run: Callable[[], None]) -> None:
        self._actor.pause()
        fate = self._world.random.random() / self._world.trouble
        if fate < 1 / 3:
            raise self._trouble(operation, key, "fails")
        if fate < 2 / 3:
            self._world.late.append(run)
            raise self._trouble(operation, key, "is late")
        self._world.tell(self._actor.name, f"{operation} {key}")
        run()
        if operation != "put":  # a new object harms no promise
            self._world.check()
        if fate < 1:
            raise self._trouble(operation, key, "gets no answer")

    def _trouble(self, operation: str, key: str, what: str) -> StoreUnavailable:
        self._world.tell(self._actor.name, f"{operation} {key} {what}")
        return StoreUnavailable(self.url, operation, key, what)
