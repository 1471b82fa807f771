"""Units that leave a node: each stops at the end of its batch, its state is saved, then all are reported together.

A state is stored; or it is packed, offered to other nodes, and stored afterwards (`ReleaseUnits.direct`); or it stays
where it is, because the next node follows the unit (`ReleaseUnits.warm`).
"""

import logging
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from elastic import threads
from elastic.core.ids import UnitId
from elastic.core.messages import DropUnits, ReleaseUnits, StateStored, StoppedUnit, UnitsReleased
from elastic.core.unit_host import Capture, UnitHost
from elastic.errors import StoreUnreachable
from elastic.node.context import NodeContext
from elastic.node.offers import Offers
from elastic.node.state_saver import StateSaver
from elastic.retry import retry_while_unavailable
from storage.errors import StorageError
from storage.state import PackedState, StateManager, StateRef

if TYPE_CHECKING:
    from concurrent.futures import Future

_log = logging.getLogger(__name__)
_RELEASE_THREADS = 4
_STORE_THREADS = 2  # for offered states: the stream and the direct transfers are more urgent


@dataclass
class _Release:
    """One command under way: units that have not stopped, and states that are being stored or packed."""

    message: ReleaseUnits
    units: list[UnitId]
    saved: list["Future[StateRef]"] = field(default_factory=list)
    stopped: list[StoppedUnit] = field(default_factory=list)


class Releases:
    """The releases under way on one node. Only the working thread calls it; it is woken when it should call again."""

    def __init__(self, context: NodeContext, host: UnitHost, manager: StateManager, offers: Offers) -> None:
        self._context = context
        self._host = host
        self._manager = manager
        self._offers = offers
        self._saver = StateSaver(manager, context.wake, "release", at_once=_RELEASE_THREADS)
        self._releases: list[_Release] = []
        self._store_pool = threads.ThreadPool(_STORE_THREADS, "store-offered")

    def begin(self, message: ReleaseUnits) -> None:
        units = self._host.release(message)
        if units:
            self._releases.append(_Release(message, list(units)))

    def drop(self, message: DropUnits) -> None:
        self._host.drop(message)
        self._offers.drop(message.units)

    def advance(self) -> bool:
        """Capture one more unit that has stopped, or report; return whether there was anything to do."""
        for release in self._releases:
            if release.message.warm:
                self._note_stopped(release)
            elif self._saver.has_room and self._offers.has_room and self._capture_one(release):
                return True
            if not release.units and all(future.done() for future in release.saved):
                self._releases.remove(release)
                self._report(release)
                return True
        return False

    def close(self) -> None:
        self._saver.close()
        self._store_pool.shutdown(wait=False, cancel_futures=True)

    def _report(self, release: _Release) -> None:
        states = tuple(future.result() for future in release.saved)
        stored, cause = not release.message.direct, release.message.cause
        node, incarnation = self._context.node, self._context.incarnation
        self._context.report(UnitsReleased(node, incarnation, states, stored, tuple(release.stopped), cause=cause))

    def _note_stopped(self, release: _Release) -> None:
        for unit in list(release.units):
            batch = self._host.stopped_batch(unit)
            if batch is not None:
                release.units.remove(unit)
                release.stopped.append(StoppedUnit(unit, batch))

    def _capture_one(self, release: _Release) -> bool:
        for unit in release.units:
            capture = self._host.capture_released(unit)
            if capture is not None:
                release.units.remove(unit)
                release.saved.append(self._save(capture, release.message))
                return True
        return False

    def _save(self, capture: Capture, message: ReleaseUnits) -> "Future[StateRef]":
        if message.direct:
            return self._saver.pack(capture, message.lease, partial(self._offer, message.cause))
        retry_seconds = self._context.settings.store_retry_seconds
        return self._saver.save(capture, message.lease, retry_seconds, self._context.closing)

    def _offer(self, cause: str, packed: PackedState) -> StateRef:
        self._offers.put(packed)
        self._store_pool.submit(self._store, cause, packed)
        return packed.ref

    def _store(self, cause: str, packed: PackedState) -> None:
        """Store an offered state. One that never gets to the store is lost with this node, as if not released."""
        if not self._offers.has(packed.ref):
            return  # another node has installed its unit
        settings, closing = self._context.settings, self._context.closing
        try:
            retry_while_unavailable(lambda: self._manager.put(packed), settings.store_retry_seconds, closing)
        except (StorageError, StoreUnreachable) as error:
            _log.warning(
                "%s did not store the offered state of %s [%s]: %s", self._context.node, packed.ref.unit, cause, error
            )
        else:
            self._offers.mark_stored(packed.ref)
            self._context.report(StateStored(self._context.node, self._context.incarnation, packed.ref, cause=cause))
            self._context.wake()  # there may be room for another one
