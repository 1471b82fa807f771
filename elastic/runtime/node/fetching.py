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
    """Finds rows for work. One thread asks; `wake` is called when it should ask again."""

    def __init__(self, staging: Staging, log: InputLog, patience_seconds: float, wake: Callable[[], None]) -> None:
        self._staging = staging
        self._log = log
        self._patience = patience_seconds
        self._wake = wake
        self._executor = ThreadPoolExecutor(_AHEAD, thread_name_prefix="fetch")
        self._under_way: dict[Position, list[tuple[tuple[int, ...], Future[Rows]]]] = {}

    def ready(self, work: Work, coming: Iterable[Step]) -> tuple[Work, Rows] | None:
        """As much of the work as has its rows here, with its slices in the order of the log; None if nothing has.

        Slots whose rows are staged do not wait for those whose rows must be read; `coming` are the steps after it.
        """
        staged = self._staging.covered(work.step.logs, work.slots)
        if staged:
            return Work(work.step, staged), self._staging.rows(work.step.logs, staged)
        for slots, future in self._under_way.get(work.step.position, []):
            if future.done() and set(slots) & set(work.slots):
                self._under_way[work.step.position].remove((slots, future))
                return Work(work.step, slots), future.result()
        for step in (work.step, *coming):
            self._start(Work(step, work.slots))
            if len(self._under_way) >= _AHEAD:
                break
        return None

    def forget(self, through: int) -> None:
        """Nothing of batches up to this one is needed any more."""
        for position in [position for position in self._under_way if position.batch <= through]:
            del self._under_way[position]

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _start(self, work: Work) -> None:
        """Read what nobody reads yet."""
        started = self._under_way.setdefault(work.step.position, [])
        here = self._staging.covered(work.step.logs, work.slots)
        missing = tuple(sorted(set(work.slots).difference(here, *(slots for slots, _ in started))))
        if missing:
            future = self._executor.submit(self._read, work.step.logs, missing)
            started.append((missing, future))
            future.add_done_callback(lambda _: self._wake())

    def _read(self, logs: Iterable[LogRef], slots: tuple[int, ...]) -> Rows:
        found: Rows = {}
        for ref in logs:
            slices = patiently(lambda ref=ref: self._log.read(ref, slots), self._patience)  # type: ignore[misc]
            for slot, rows in slices.items():
                found.setdefault(slot, []).append(rows)
        return found
