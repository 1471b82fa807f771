"""The states of some units, from wherever they are: the node that offers them, else the store."""

import logging
from collections.abc import Callable, Iterable
from typing import Any

from elastic.runtime.protocol import Held
from elastic.runtime.wire import PeerUnavailable, Refused
from storage.errors import BadObject, ObjectMissing, StoreUnavailable, TransferFailed
from storage.state import StateManager, StateRef
from storage.stores.protocol import Bytes

_log = logging.getLogger(__name__)

Download = Callable[[str, StateRef], Bytes]  # from the node at an address


class Retrieval:
    """What was asked for together, and what of it has arrived.

    `attempt` raises `StoreUnavailable` as long as another attempt may bring more: while the store is away, and while a
    state that was offered is neither at its source nor in the store. The source stores it soon, or is lost; then the
    controller gives another state for the unit, and nobody wants this one (`is_wanted`).
    """

    def __init__(
        self, manager: StateManager, download: Download, units: Iterable[Held], is_wanted: Callable[[Held], bool]
    ) -> None:
        self.found: dict[Held, Any] = {}
        self.direct_bytes = 0
        self._manager = manager
        self._download = download
        self._is_wanted = is_wanted
        self._left: list[tuple[Held, StateRef]] = []
        for held in units:
            if held.state is None:
                self.found[held] = None
            else:
                self._left.append((held, held.state))
        self._offered = {ref.key: held.source for held, ref in self._left if held.source is not None}
        self._distrusted: set[str] = set()  # keys of offered states that were not what was signed
        self._came_directly: set[str] = set()

    def attempt(self) -> None:
        """Load what is missing."""
        self._left = [(held, ref) for held, ref in self._left if self._is_wanted(held)]
        transfer = self._manager.load_many((ref for _, ref in self._left), fetch=self._fetch)
        failed: TransferFailed | None = None
        try:
            arrived = transfer.result()
        except TransferFailed as failure:
            failed, arrived = failure, failure.succeeded
        for held, ref in self._left:
            if ref.unit in arrived:
                self.found[held] = arrived[ref.unit].state
                self.direct_bytes += ref.size * (ref.key in self._came_directly)
        self._left = [(held, ref) for held, ref in self._left if ref.unit not in arrived]
        if failed is not None:
            raise self._worst(list(failed.reasons.values())) from failed

    def _fetch(self, ref: StateRef) -> Bytes:
        source = self._offered.get(ref.key)
        if source is None:
            return self._manager.fetch(ref)
        if ref.key not in self._distrusted:
            try:
                data = self._download(source, ref)
            except (PeerUnavailable, Refused) as error:
                _log.info("%s does not come from its source, reading the store: %s", ref.key, error)
            else:
                self._came_directly.add(ref.key)
                return data
        self._came_directly.discard(ref.key)
        try:
            return self._manager.fetch(ref)
        except ObjectMissing as missing:
            reason = "its source does not answer, and has not stored it yet"
            raise StoreUnavailable(missing.store, "get", ref.key, reason) from missing

    def _worst(self, reasons: list[BaseException]) -> BaseException:
        """Whatever is not somebody's absence, or damage on the way, will not go away by trying again."""
        for reason in reasons:
            if isinstance(reason, BadObject) and reason.key in self._came_directly:
                self._distrusted.add(reason.key)
                again = StoreUnavailable("the source", "send", reason.key, reason.reason)
                reasons = [again if one is reason else one for one in reasons]
        return next((reason for reason in reasons if not isinstance(reason, StoreUnavailable)), reasons[0])
