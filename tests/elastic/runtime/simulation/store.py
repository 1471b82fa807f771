"""A store in memory whose operations fail by the seed."""

import random
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from storage.errors import StoreUnavailable
from storage.stores.memory import MemoryStore
from storage.stores.protocol import Bytes, Entry, Stored

Answer = TypeVar("Answer")


class FaultyStore:
    """Passes every operation on to `objects`; raises `StoreUnavailable` before it, or after it, by chance.

    A write that fails afterwards is *in doubt*: it happened, and the caller does not know. Reads of the test itself use
    `objects`, which never fails.
    """

    url = "memory:faulty"
    conditional = True

    def __init__(self, chance: random.Random, probability: Callable[[], float]) -> None:
        self.objects = MemoryStore()
        self.faults = 0
        self._chance = chance
        self._probability = probability

    def put(self, key: str, data: Bytes, *, timeout: float | None = None) -> str:
        return self._attempt("put", key, lambda: self.objects.put(key, data, timeout=timeout))

    def put_if_absent(self, key: str, data: Bytes, *, timeout: float | None = None) -> str:
        return self._attempt("put", key, lambda: self.objects.put_if_absent(key, data, timeout=timeout))

    def compare_and_swap(self, key: str, data: Bytes, expected: str, *, timeout: float | None = None) -> str:
        return self._attempt("put", key, lambda: self.objects.compare_and_swap(key, data, expected, timeout=timeout))

    def get(self, key: str, *, timeout: float | None = None) -> Stored:
        return self._attempt("get", key, lambda: self.objects.get(key, timeout=timeout))

    def get_range(self, key: str, start: int, stop: int, *, timeout: float | None = None) -> memoryview:
        return self._attempt("get", key, lambda: self.objects.get_range(key, start, stop, timeout=timeout))

    def list(self, prefix: str = "", *, timeout: float | None = None) -> Iterator[Entry]:
        return self._attempt("list", prefix, lambda: self.objects.list(prefix, timeout=timeout))

    def delete(self, keys: Iterable[str], *, timeout: float | None = None) -> None:
        wanted = list(keys)
        self._attempt("delete", ",".join(wanted[:3]), lambda: self.objects.delete(wanted, timeout=timeout))

    def close(self) -> None:
        """Nothing to give back."""

    def _attempt(self, operation: str, key: str, call: Callable[[], Answer]) -> Answer:
        if self._chance.random() >= self._probability():
            return call()
        self.faults += 1
        if self._chance.random() < 0.5:
            call()
        raise StoreUnavailable(self.url, operation, key, "the seed says so")
