"""The rows of a step: staged ones at once, others from the log, ahead of their turn."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa

from elastic.runtime.node.staging import Staging
from elastic.runtime.patience import patiently
from elastic.runtime.protocol import Position, Step, Work
from storage.state import InputLog, LogRef

Rows = dict[int, list[pa.Table]]
_AHEAD = 8  # steps fetched while one is processed: a store answers in milliseconds, a replay may have thousands


class Fetcher:
    """Gives the rows of a `Work`, or None and wakes its owner when they are there. One thread asks."""

    def __init__(self, staging: Staging, log: InputLog, patience_seconds: float, wake: Callable[[], None]) -> None:
        self._staging = staging
        self._log = log
        self._patience = patience_seconds
        self._wake = wake
        self._executor = ThreadPoolExecutor(_AHEAD, thread_name_prefix="fetch")
        self._under_way: dict[tuple[Position, tuple[int, ...]], Future[Rows]] = {}

    def rows(self, work: Work, epoch: int, coming: Iterable[Step]) -> Rows | None:
        """The slices of every unit in `work`, in the order of the log; `coming` are the steps after it."""
        key = (work.step.position, work.slots)
        if key in self._under_way:
            future = self._under_way[key]
            if not future.done():
                return None
            del self._under_way[key]
            return future.result()
        staged = self._staged(work, epoch)
        if staged is not None:
            return staged
        for step in (work.step, *coming):
            self._start(Work(step, work.slots))
            if len(self._under_way) >= _AHEAD:
                break
        return None

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _staged(self, work: Work, epoch: int) -> Rows | None:
        found: Rows = {}
        for ref in work.step.logs:
            slices = self._staging.rows(ref, epoch, work.slots)
            if slices is None:
                return None
            _add(slices, found)
        return found

    def _start(self, work: Work) -> None:
        key = (work.step.position, work.slots)
        if key not in self._under_way:
            future = self._under_way[key] = self._executor.submit(self._read, work.step.logs, work.slots)
            future.add_done_callback(lambda _: self._wake())

    def _read(self, logs: Iterable[LogRef], slots: tuple[int, ...]) -> Rows:
        found: Rows = {}
        for ref in logs:
            _add(patiently(lambda ref=ref: self._log.read(ref, slots), self._patience), found)  # type: ignore[misc]
        return found


def _add(slices: dict[int, pa.Table], found: Rows) -> None:
    for slot, rows in slices.items():
        found.setdefault(slot, []).append(rows)
