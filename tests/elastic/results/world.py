"""A small job whose results are known in closed form, and stores that crash at a chosen operation."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from threading import Lock
from typing import TypeVar

import pyarrow as pa

from elastic.results import UNIT, ResultLog, ResultRef
from storage.codec import Secret
from storage.errors import StorageError
from storage.state import TASKS_PER_STAGE
from storage.stores.memory import MemoryStore
from storage.stores.protocol import Bytes, ObjectInfo

_Answer = TypeVar("_Answer")

SECRET = Secret.of("a secret for tests only")
STAGE = "count"
NODES = ((3, 1), (0, 2))  # the tasks of two nodes, out of order
ROUNDS = 2
QUIET = frozenset({1, 2, 4})  # batches without results


def rows(unit_numbers: Sequence[int], values: Sequence[int]) -> pa.Table:
    return pa.table({"value": pa.array(values, pa.int64()), UNIT: pa.array(unit_numbers, pa.int64())})


def value(batch: int, round_: int, task: int) -> int:
    return batch * 1_000 + round_ * 100 + task


def expected(batch: int) -> list[dict[str, int]]:
    """Return the results of a batch: one row for each task and round, in order."""
    if batch in QUIET:
        return []
    tasks = sorted(task for node in NODES for task in node)
    return [
        {"value": value(batch, round_, task), "_batch": batch, "_task": task}
        for task in tasks
        for round_ in range(ROUNDS)
    ]


def write_results(log: ResultLog, batch: int) -> list[ResultRef]:
    """Write each round of a batch, as every node does."""
    refs = []
    for round_ in range(ROUNDS):
        for tasks in NODES:
            made = [] if batch in QUIET else list(tasks)
            table = rows([TASKS_PER_STAGE + task for task in made], [value(batch, round_, task) for task in made])
            refs.append(log.write(batch, round_, [TASKS_PER_STAGE + task for task in tasks], {STAGE: table}))
    return refs


def publish_batches(log: ResultLog, batches: int) -> None:
    """Publish the batches that are not published yet, as a driver does when it starts or restarts."""
    for batch in range(log.poll().stop, batches):
        log.publish(batch, write_results(log, batch), timestamp_ms=batch)


def published_log(store: MemoryStore, batches: int) -> ResultLog:
    log = ResultLog(store, SECRET, "job")
    publish_batches(log, batches)
    return log


class Crash(Exception):
    """The process ends here."""


class CrashPlan:
    """Ends the process at given store operations, before or after the operation takes effect."""

    def __init__(self, crashes: Iterable[tuple[int, bool]] = ()) -> None:
        self.operations = 0
        self._counting = Lock()
        self._crashes = dict(crashes)  # operation -> whether it takes effect first

    def end(self) -> None:
        """Stop crashing; the crashes left belong to operations that were never reached."""
        self._crashes = {}

    def run(self, work: Callable[[], _Answer]) -> _Answer:
        with self._counting:
            takes_effect = self._crashes.get(self.operations)
            self.operations += 1
        if takes_effect is None:
            return work()
        if takes_effect:
            with suppress(StorageError):
                work()
        raise Crash


class CrashingStore(MemoryStore):
    """Every operation may be the last one of the process."""

    def __init__(self, plan: CrashPlan) -> None:
        super().__init__()
        self._plan = plan

    def put(self, key: str, data: Bytes, *, timeout: float | None = None) -> None:
        self._plan.run(lambda: MemoryStore.put(self, key, data, timeout=timeout))

    def put_if_absent(self, key: str, data: Bytes, *, timeout: float | None = None) -> None:
        self._plan.run(lambda: MemoryStore.put_if_absent(self, key, data, timeout=timeout))

    def get(self, key: str, *, timeout: float | None = None) -> memoryview:
        return self._plan.run(lambda: MemoryStore.get(self, key, timeout=timeout))

    def list(self, prefix: str = "", *, timeout: float | None = None) -> Iterator[ObjectInfo]:
        return self._plan.run(lambda: MemoryStore.list(self, prefix, timeout=timeout))

    def delete(self, keys: Iterable[str], *, timeout: float | None = None) -> None:
        doomed = [*keys]
        for key in doomed:  # one by one: a process may end between two of them
            self._plan.run(lambda key=key: MemoryStore.delete(self, [key], timeout=timeout))  # type: ignore[misc]


class CountingStore(MemoryStore):
    """Counts requests by kind."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: dict[str, int] = {}

    def get(self, key: str, *, timeout: float | None = None) -> memoryview:
        self._count("get")
        return super().get(key, timeout=timeout)

    def list(self, prefix: str = "", *, timeout: float | None = None) -> Iterator[ObjectInfo]:
        self._count("list")
        return super().list(prefix, timeout=timeout)

    def put(self, key: str, data: Bytes, *, timeout: float | None = None) -> None:
        self._count("put")
        super().put(key, data, timeout=timeout)

    def put_if_absent(self, key: str, data: Bytes, *, timeout: float | None = None) -> None:
        self._count("put")
        super().put_if_absent(key, data, timeout=timeout)

    def pop_requests(self) -> dict[str, int]:
        """Return the counts since the last call."""
        requests, self.requests = self.requests, {}
        return requests

    def _count(self, kind: str) -> None:
        self.requests[kind] = self.requests.get(kind, 0) + 1
