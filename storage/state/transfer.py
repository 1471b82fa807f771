"""Many units on their way at once, in the background."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Executor, Future
from typing import Generic, NamedTuple, TypeVar

from storage.errors import TransferFailed
from storage.state.unit import Unit

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Progress(NamedTuple):
    """How far a transfer is: `done` of `total` units have ended, `failed` of them badly (or were cancelled)."""

    done: int
    total: int
    bytes_done: int
    failed: int


class Transfer(Generic[T]):
    """Work on many units, each on its own: one that fails does not stop the others.

    Every unit ends once: done, failed or cancelled. `on_progress` is called after each, never twice at a time and
    always with a later progress than before, from a thread of the transfer: it may cancel the transfer, and must not
    wait for it. What it raises is logged and does no harm.
    """

    def __init__(
        self,
        executor: Executor,
        work: Mapping[Unit, Callable[[], tuple[T, int]]],
        on_progress: Callable[[Progress], object] | None = None,
    ) -> None:
        """Start; each piece of work returns its result and how many bytes that moved."""
        self._on_progress = on_progress
        self._telling = threading.Lock()
        self._changed = threading.Condition()
        self._progress = Progress(0, len(work), 0, 0)
        self._untold: deque[Unit] = deque()
        self._ended: list[Unit] = []  # in the order in which they ended, after their progress was told
        self._futures: dict[Unit, Future[tuple[T, int]]] = {}
        # Nothing begins before all is known: a future that is done already would call back in this very thread, before
        # the caller has the transfer that a callback may want to cancel.
        known = threading.Event()

        def begun(one: Callable[[], tuple[T, int]]) -> tuple[T, int]:
            known.wait()
            return one()

        try:
            for unit, one in work.items():
                self._futures[unit] = executor.submit(begun, one)
                self._futures[unit].add_done_callback(lambda _, unit=unit: self._end(unit))  # type: ignore[misc]
        finally:
            known.set()

    def progress(self) -> Progress:
        return self._progress

    def cancel(self) -> None:
        """Leave out what has not begun; what is under way is finished."""
        for future in self._futures.values():
            future.cancel()

    def results(self, timeout: float | None = None) -> Iterator[tuple[Unit, T]]:
        """Units and their results as they complete; `TransferFailed` at the end if there were others."""
        deadline = None if timeout is None else time.monotonic() + timeout
        for position in range(len(self._futures)):
            unit = self._ended_at(position, deadline)
            future = self._futures[unit]
            if _succeeded(future):
                yield unit, future.result()[0]
        self._raise_failures()

    def result(self, timeout: float | None = None) -> dict[Unit, T]:
        """All results in the order given; `TransferFailed`, which keeps those that succeeded, if some are missing."""
        found = dict(self.results(timeout))
        return {unit: found[unit] for unit in self._futures}

    def _end(self, unit: Unit) -> None:
        self._untold.append(unit)
        # Whoever tells already goes on with this one: a callback may cancel, which ends other units in its own thread.
        while self._untold and self._telling.acquire(blocking=False):
            try:
                while self._untold:
                    self._tell(self._untold.popleft())
            finally:
                self._telling.release()

    def _tell(self, unit: Unit) -> None:
        future = self._futures[unit]
        good = _succeeded(future)
        done, total, bytes_done, failed = self._progress
        moved = future.result()[1] if good else 0
        self._progress = Progress(done + 1, total, bytes_done + moved, failed + (not good))
        try:
            if self._on_progress is not None:
                self._on_progress(self._progress)
        except Exception:  # noqa: BLE001 - a user's callback may raise anything
            _log.exception("on_progress failed after %s; the transfer goes on", unit)
        with self._changed:
            self._ended.append(unit)
            self._changed.notify_all()

    def _ended_at(self, position: int, deadline: float | None) -> Unit:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._ended) > position, left):
                raise TimeoutError(
                    f"{len(self._ended)} of {len(self._futures)} units have arrived in time, and the rest is still "
                    "under way. Ask again, or cancel."
                )
            return self._ended[position]

    def _raise_failures(self) -> None:
        reasons: dict[Unit, BaseException] = {}
        succeeded: dict[Unit, T] = {}
        for unit, future in self._futures.items():
            reason = CancelledError() if future.cancelled() else future.exception()
            if reason is None:
                succeeded[unit] = future.result()[0]
            else:
                reasons[unit] = reason
        if reasons:
            raise TransferFailed(reasons, succeeded)


def _succeeded(future: Future[tuple[T, int]]) -> bool:
    return not future.cancelled() and future.exception() is None
