"""Units that leave a node: each stops at the end of its batch, its state is stored, then all are reported together."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from elastic.routing import Routing
from elastic.runtime.patience import patiently
from elastic.runtime.protocol import Host, Release, Released
from elastic.runtime.protocol.host import Capture
from storage.state import StateManager, StateRef

_AT_ONCE = 4  # captured and not yet stored: copies of state are memory


@dataclass
class _Leaving:
    """One request: slots that have not stopped, and states on their way to the store."""

    lease: str
    slots: list[int]
    stored: list[Future[StateRef]] = field(default_factory=list)


class Releases:
    """The releases under way on one node. One thread calls it; `wake` is called when it should call again."""

    def __init__(
        self,
        host: Host,
        manager: StateManager,
        routing: Routing,
        report: Callable[[Released], None],
        names: tuple[str, str],
        patience_seconds: float,
    ) -> None:
        self._host = host
        self._manager = manager
        self._routing = routing
        self._report = report
        self._names = names
        self._patience = patience_seconds
        self._leaving: list[_Leaving] = []
        self._executor = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="release")

    def begin(self, message: Release) -> None:
        slots = self._host.release(message)
        if slots:
            self._leaving.append(_Leaving(message.lease, list(slots)))

    def go_on(self, wake: Callable[[], None]) -> bool:
        """Capture one more unit that has stopped, or report; whether anything was done."""
        for leaving in self._leaving:
            if sum(not future.done() for future in leaving.stored) < _AT_ONCE and self._capture_one(leaving, wake):
                return True
            if not leaving.slots and all(future.done() for future in leaving.stored):
                self._leaving.remove(leaving)
                self._report(Released(*self._names, tuple(future.result() for future in leaving.stored)))
                return True
        return False

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _capture_one(self, leaving: _Leaving, wake: Callable[[], None]) -> bool:
        for slot in leaving.slots:
            captured = self._host.capture_released(slot)
            if captured is not None:
                leaving.slots.remove(slot)
                future = self._executor.submit(self._store, captured, leaving.lease)
                future.add_done_callback(lambda _: wake())
                leaving.stored.append(future)
                return True
        return False

    def _store(self, captured: Capture, lease: str) -> StateRef:
        unit = self._routing.unit(captured.slot)
        return patiently(
            lambda: self._manager.save(unit, captured.state, batch=captured.batch, lease=lease), self._patience
        )
