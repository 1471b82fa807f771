"""A store in memory whose operations take time and fail, by the seed."""

import random
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from storage.errors import StoreUnavailable
from storage.stores.memory import MemoryStore
from storage.stores.protocol import Bytes, ObjectInfo
from tests.elastic.simulation.faults import Faults
from tests.elastic.simulation.scheduler import Process, Scheduler

Answer = TypeVar("Answer")
_LATENCY_SECONDS = 0.01
_SLOW_SECONDS = (0.1, 0.5, 2.0)
_SLOW_PROCESSES = 0.2  # of all processes have a slow connection to the store
_SLOW_PROCESS_SECONDS = 0.3


class FaultyStore:
    """Passes every operation on to `objects`; raises `StoreUnavailable` before it, or after it, by chance.

    A write that fails afterwards is *in doubt*: it happened, and the caller does not know. Reads of the test itself use
    `objects`, which never fails. `on_write` is called after every write, with its key.
    """

    url = "memory:faulty"
    conditional = True

    def __init__(
        self,
        scheduler: Scheduler,
        chance: random.Random,
        faults: Callable[[], Faults],
        on_write: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.objects = MemoryStore()
        self.faults = self.operations = 0
        self.away_until = 0.0  # for everybody
        self._latency_seconds: dict[Process, float] = {}
        self.cut_off_until: dict[Process, float] = {}  # for some processes
        self._scheduler = scheduler
        self._chance = chance
        self._faults = faults
        self._on_write = on_write

    @property
    def is_reachable(self) -> bool:
        """Whether every process can use it now."""
        return self._scheduler.now >= max(self.away_until, *self.cut_off_until.values(), 0.0)

    def put(self, key: str, data: Bytes, *, timeout: float | None = None) -> None:
        self._write(key, lambda: self.objects.put(key, data, timeout=timeout))

    def put_if_absent(self, key: str, data: Bytes, *, timeout: float | None = None) -> None:
        self._write(key, lambda: self.objects.put_if_absent(key, data, timeout=timeout))

    def get(self, key: str, *, timeout: float | None = None) -> memoryview:
        return self._attempt("get", key, lambda: self.objects.get(key, timeout=timeout))

    def get_range(self, key: str, start: int, stop: int, *, timeout: float | None = None) -> memoryview:
        return self._attempt("get", key, lambda: self.objects.get_range(key, start, stop, timeout=timeout))

    def list(self, prefix: str = "", *, timeout: float | None = None) -> Iterator[ObjectInfo]:
        return self._attempt("list", prefix, lambda: self.objects.list(prefix, timeout=timeout))

    def delete(self, keys: Iterable[str], *, timeout: float | None = None) -> None:
        wanted = list(keys)
        self._attempt("delete", ",".join(wanted[:3]), lambda: self.objects.delete(wanted, timeout=timeout))

    def close(self) -> None:
        """Nothing to give back."""

    def _write(self, key: str, call: Callable[[], None]) -> None:
        def write() -> None:
            call()
            self._on_write(key)

        self._attempt("put", key, write)

    def _attempt(self, operation: str, key: str, call: Callable[[], Answer]) -> Answer:
        self.operations += 1
        self._pass_time()
        faults = self._faults()
        is_away = self._scheduler.now < max(self.away_until, self.cut_off_until.get(self._scheduler.process, 0.0))
        if not is_away and self._chance.random() >= faults.store:
            answer = call()
            self._pass_time()
            return answer
        self.faults += 1
        if not is_away and self._chance.random() < 0.5:
            call()
        raise StoreUnavailable(self.url, operation, key, "the seed says so")

    def _pass_time(self) -> None:
        process = self._scheduler.process
        if process not in self._latency_seconds:
            is_slow = self._chance.random() < _SLOW_PROCESSES
            self._latency_seconds[process] = _SLOW_PROCESS_SECONDS if is_slow else _LATENCY_SECONDS
        is_slow = self._chance.random() < self._faults().slow_store
        self._scheduler.sleep(
            self._chance.choice(_SLOW_SECONDS) if is_slow else self._chance.random() * self._latency_seconds[process]
        )
