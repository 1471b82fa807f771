"""Captured states become bytes, and bytes objects in the store, behind the working thread and within limits."""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from elastic.routing import Routing
from elastic.runtime.patience import patiently
from elastic.runtime.protocol.host import Capture
from storage.codec import encoded_size_hint
from storage.state import PackedState, StateManager, StateRef

_CAPTURED_BYTES = 64 << 20  # captures are copies of state: beyond this, one after the other
_LONGEST_REST_SECONDS = 1.0  # a store that is slow should not make snapshots slower still
_NICENESS = 10  # added for threads that nobody waits for: they get a tenth of a processor that the stream wants too
_HIGHEST_NICENESS = 19  # the kernel knows no higher one
_log = logging.getLogger(__name__)


class Saver:
    """Saves captured states in the background. One thread calls it; `wake` is called when it should look again.

    Invariant: another state is captured only while fewer than `at_once` are on their way, and those are small. So of
    large states a node holds one twice at a time, however many it saves. For the first `gentle_seconds` of a lease it
    stands back behind the stream: it rests after every state as long as the state took, so that neither processors nor
    disks are its own. After them it does not: on a machine that is never idle, the rest would never be saved.
    """

    def __init__(
        self,
        manager: StateManager,
        routing: Routing,
        wake: Callable[[], None],
        name: str,
        *,
        at_once: int,
        gentle_seconds: float = 0.0,
    ) -> None:
        self._manager = manager
        self._routing = routing
        self._wake = wake
        self._at_once = at_once
        self._captured: dict[Future[StateRef], int] = {}  # bytes, about
        self._gentle_seconds = gentle_seconds
        self._rest_seconds = 0.0
        self._lease, self._lease_began = "", 0.0
        # Their threads start when they are needed. A thread that has stepped back cannot come forward again.
        self._quick = ThreadPoolExecutor(at_once, name)
        self._gentle = ThreadPoolExecutor(at_once, f"{name}-gently", initializer=_stand_back)

    @property
    def has_room(self) -> bool:
        """Whether one more state may be captured now."""
        sizes = [size for future, size in self._captured.items() if not future.done()]
        return len(sizes) < self._at_once and sum(sizes) < _CAPTURED_BYTES

    def save(self, captured: Capture, lease: str, patience_seconds: float = 0.0) -> Future[StateRef]:
        """Make it durable; without patience, a store that is away fails it at once."""
        unit = self._routing.unit(captured.slot)
        saving = partial(self._manager.save, unit, captured.state, batch=captured.batch, lease=lease)
        work = partial(patiently, saving, patience_seconds) if patience_seconds else saving
        return self._begin(captured, lease, work)

    def pack(self, captured: Capture, lease: str, then: Callable[[PackedState], StateRef]) -> Future[StateRef]:
        """Make it bytes only, and let `then` take care of them."""
        unit = self._routing.unit(captured.slot)

        def packed() -> StateRef:
            return then(self._manager.pack(unit, captured.state, batch=captured.batch, lease=lease))

        return self._begin(captured, lease, packed)

    def close(self) -> None:
        for executor in (self._quick, self._gentle):
            executor.shutdown(wait=False, cancel_futures=True)

    def _begin(self, captured: Capture, lease: str, work: Callable[[], StateRef]) -> Future[StateRef]:
        self._captured = {future: size for future, size in self._captured.items() if not future.done()}
        if lease != self._lease:
            self._lease, self._lease_began = lease, time.monotonic()
        if time.monotonic() - self._lease_began < self._gentle_seconds:
            future = self._gentle.submit(self._with_rest(work))
        else:
            future = self._quick.submit(work)
        self._captured[future] = encoded_size_hint(captured.state)
        future.add_done_callback(lambda _: self._wake())
        return future

    def _with_rest(self, work: Callable[[], StateRef]) -> Callable[[], StateRef]:
        """The rest that the last state earned comes before this one: nobody waits for the end of a rest."""

        def rested() -> StateRef:
            time.sleep(self._rest_seconds)
            began = time.monotonic()
            try:
                return work()
            finally:
                self._rest_seconds = min(time.monotonic() - began, _LONGEST_REST_SECONDS)

        return rested


def _stand_back() -> None:
    """Lower the priority of the calling thread; Linux has one for each thread.

    Relative to the current one and never upwards: only a privileged process may lower its niceness. A sandbox may
    forbid even this, and then snapshots run at the priority of the node: slower batches, but no failure.
    """
    if sys.platform != "linux":
        return
    thread = threading.get_native_id()
    try:
        current = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, min(current + _NICENESS, _HIGHEST_NICENESS))
    except OSError as error:
        _log.warning("snapshots run at the priority of the node, because it cannot be lowered: %s", error)
