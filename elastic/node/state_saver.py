"""Captured states become bytes, and bytes objects in the store, in the background and within limits."""

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from elastic import threads
from elastic.core.unit_host import Capture
from elastic.node.throttle import lower_priority
from elastic.operators.upgrades import VERSION
from elastic.retry import retry_while_unavailable
from storage.codec import estimate_encoded_size
from storage.state import PackedState, StateManager, StateRef

if TYPE_CHECKING:
    from concurrent.futures import Future

_CAPTURED_BYTES = 64 << 20  # captures are copies of state: beyond this, one after the other
_LONGEST_PAUSE_SECONDS = 1.0  # a slow store should not make snapshots slower still


class StateSaver:
    """Saves captured states in the background. One thread calls it; `wake` is called when it should call again.

    Invariant: another state is captured only while fewer than `at_once` are in flight, and those are small. So a node
    holds at most one large state twice, however many it saves. For the first `throttled_seconds` of a lease the saver
    works at low priority and pauses after every state as long as saving it took, so that it takes neither processors
    nor disks from the stream. Then it stops throttling: on a machine that is never idle, the snapshot would never end.
    """

    def __init__(
        self,
        manager: StateManager,
        wake: Callable[[], None],
        name: str,
        *,
        at_once: int,
        throttled_seconds: float = 0.0,
    ) -> None:
        self._manager = manager
        self._wake = wake
        self._at_once = at_once
        self._captured: dict[Future[StateRef], int] = {}  # bytes, about
        self._throttled_seconds = throttled_seconds
        self._pause_seconds = 0.0
        self._lease, self._lease_began = "", 0.0
        # Threads start when they are needed. A thread that has lowered its priority cannot raise it again.
        self._pool = threads.ThreadPool(at_once, name)
        self._throttled_pool = threads.ThreadPool(at_once, f"{name}-throttled", initializer=lower_priority)

    @property
    def has_room(self) -> bool:
        """Whether one more state may be captured now."""
        sizes = [size for future, size in self._captured.items() if not future.done()]
        return len(sizes) < self._at_once and sum(sizes) < _CAPTURED_BYTES

    def save(
        self,
        capture: Capture,
        lease: str,
        retry_seconds: float = 0.0,
        give_up: threading.Event | None = None,
    ) -> "Future[StateRef]":
        """Make a state durable; without `retry_seconds`, it fails at once while the store is unavailable."""
        meta = {VERSION: capture.version}
        save = partial(self._manager.save, capture.unit, capture.state, batch=capture.batch, lease=lease, meta=meta)
        work = partial(retry_while_unavailable, save, retry_seconds, give_up) if retry_seconds else save
        return self._submit(capture, lease, work)

    def pack(self, capture: Capture, lease: str, then: Callable[[PackedState], StateRef]) -> "Future[StateRef]":
        """Make a state bytes only, and give them to `then`."""

        def pack() -> StateRef:
            meta = {VERSION: capture.version}
            return then(self._manager.pack(capture.unit, capture.state, batch=capture.batch, lease=lease, meta=meta))

        return self._submit(capture, lease, pack)

    def close(self) -> None:
        for pool in (self._pool, self._throttled_pool):
            pool.shutdown(wait=False, cancel_futures=True)

    def _submit(self, capture: Capture, lease: str, work: Callable[[], StateRef]) -> "Future[StateRef]":
        self._captured = {future: size for future, size in self._captured.items() if not future.done()}
        if lease != self._lease:
            self._lease, self._lease_began = lease, threads.monotonic()
        if threads.monotonic() - self._lease_began < self._throttled_seconds:
            future = self._throttled_pool.submit(self._work_after_pause, work)
        else:
            future = self._pool.submit(work)
        self._captured[future] = estimate_encoded_size(capture.state)
        future.add_done_callback(lambda _: self._wake())
        return future

    def _work_after_pause(self, work: Callable[[], StateRef]) -> StateRef:
        """Pause for the state before, then work: so the result of the last one does not wait for a pause."""
        threads.sleep(self._pause_seconds)
        began = threads.monotonic()
        try:
            return work()
        finally:
            self._pause_seconds = min(threads.monotonic() - began, _LONGEST_PAUSE_SECONDS)
