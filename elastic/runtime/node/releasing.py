"""Units that leave a node: each stops at the end of its batch, its state is saved, then all are reported together.

A state is stored, or packed, offered to other nodes and stored behind that (`Release.direct`).
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from elastic.errors import StoreAway
from elastic.runtime.node.offering import Offers
from elastic.runtime.node.saver import Saver
from elastic.runtime.patience import patiently
from elastic.runtime.protocol import Forget, Host, Release, Released, Stored
from elastic.runtime.protocol.host import Capture
from storage.errors import StorageError
from storage.state import PackedState, StateManager, StateRef

_log = logging.getLogger(__name__)
_STORING_AT_ONCE = 2  # behind the stream and the direct transfers, which are what somebody waits for


@dataclass
class _Leaving:
    """One request: slots that have not stopped, and states that are being stored or packed."""

    message: Release
    slots: list[int]
    saved: list[Future[StateRef]] = field(default_factory=list)


class Releases:
    """The releases under way on one node. One thread calls it; `wake` is called when it should call again."""

    def __init__(
        self,
        host: Host,
        saver: Saver,
        manager: StateManager,
        offers: Offers,
        report: Callable[[Released | Stored], None],
        names: tuple[str, str],
        patience_seconds: float,
        wake: Callable[[], None],
    ) -> None:
        self._host = host
        self._saver = saver
        self._manager = manager
        self._offers = offers
        self._report = report
        self._names = names
        self._patience = patience_seconds
        self._wake = wake
        self._leaving: list[_Leaving] = []
        self._storing = ThreadPoolExecutor(_STORING_AT_ONCE, thread_name_prefix="store-offered")

    def begin(self, message: Release) -> None:
        slots = self._host.release(message)
        if slots:
            self._leaving.append(_Leaving(message, list(slots)))

    def forget(self, message: Forget) -> None:
        self._host.forget(message)
        self._offers.forget(message.slots)

    def go_on(self) -> bool:
        """Capture one more unit that has stopped, or report; whether anything was done."""
        for leaving in self._leaving:
            if self._saver.has_room and self._offers.has_room and self._capture_one(leaving):
                return True
            if not leaving.slots and all(future.done() for future in leaving.saved):
                self._leaving.remove(leaving)
                states = tuple(future.result() for future in leaving.saved)
                self._report(Released(*self._names, states, stored=not leaving.message.direct))
                return True
        return False

    def close(self) -> None:
        self._storing.shutdown(wait=False, cancel_futures=True)

    def _capture_one(self, leaving: _Leaving) -> bool:
        for slot in leaving.slots:
            captured = self._host.capture_released(slot)
            if captured is not None:
                leaving.slots.remove(slot)
                leaving.saved.append(self._save(captured, leaving.message))
                return True
        return False

    def _save(self, captured: Capture, message: Release) -> Future[StateRef]:
        if message.direct:
            return self._saver.pack(captured, message.lease, self._offer)
        return self._saver.save(captured, message.lease, self._patience)

    def _offer(self, packed: PackedState) -> StateRef:
        self._offers.put(packed)
        self._storing.submit(self._store, packed)
        return packed.ref

    def _store(self, packed: PackedState) -> None:
        """Nobody waits for this; a state that never gets to the store is lost with this node, as if not released."""
        if not self._offers.has(packed.ref):
            return  # its unit works elsewhere already
        try:
            patiently(lambda: self._manager.put(packed), self._patience)
        except (StorageError, StoreAway) as error:
            _log.warning("an offered state was not stored: %s", error)
        else:
            self._offers.stored(packed.ref)
            self._report(Stored(*self._names, packed.ref))
            self._wake()  # there may be room for another one
