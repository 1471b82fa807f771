"""Saved states of units, from the node that offers them or from the store, loaded in the background."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence

from elastic import threads
from elastic.core.ids import UnitId
from elastic.core.messages import UnitHandle
from elastic.node.context import NodeContext
from elastic.node.throttle import CopyThrottle, lower_priority
from elastic.retry import retry_while_unavailable
from elastic.wire import Peer, PeerUnavailable, Refused
from storage.errors import BadObject, ObjectMissing, StoreUnavailable, TransferFailed
from storage.state import SavedState, StateManager, StateRef
from storage.stores.protocol import Bytes

_log = logging.getLogger(__name__)
_LOADS_AT_ONCE = 4  # so that one that waits for a lost source does not delay its own correction
# Of throttled loads that are used together: their units read the log together, but do not wait for seconds for others.
_PORTION_BYTES = 64 << 20
_DOWNLOAD_SECONDS = 30.0  # a gigabyte over a slow link; the driver notices a source that hangs sooner

Download = Callable[[str, StateRef], Bytes]  # from the node at an address
OnMissing = Callable[[list[UnitHandle]], None]
# Gets the states by handle, and the bytes that came from other nodes.
UseStates = Callable[[dict[UnitHandle, SavedState | None], int], None]


class StateLoader:
    """Loads in the background and passes the states to the working thread.

    Throttled loads are for units that another node serves: one state after the other, at low priority, and as many
    bytes per second as the throttle allows. A unit that no node serves is never throttled: results wait for it.
    """

    def __init__(
        self, context: NodeContext, manager: StateManager, background: StateManager, throttle: CopyThrottle
    ) -> None:
        self._context = context
        self._manager = manager
        self._background = background
        self._throttle = throttle
        self._wanted: dict[UnitId, StateRef | None] = {}  # what was asked for last
        self._peers: dict[str, Peer] = {}
        self._lock = threads.Lock()
        self._executor = threads.ThreadPool(_LOADS_AT_ONCE, "load")
        self._throttled_executor = threads.ThreadPool(1, "load-throttled", initializer=lower_priority)

    def load(
        self,
        units: Sequence[UnitHandle],
        use: UseStates,
        cause: str = "",
        *,
        throttled: bool = False,
        on_missing: OnMissing | None = None,
    ) -> None:
        """Load all these states, None where there is none, and call `use` with them in the working thread.

        In one call, so that a replay reads the log once. Units for which another state is asked for meanwhile are left
        out. `throttled`: another node serves these units, so that no result waits for them; many bytes are used in
        portions, one call for each. `on_missing` is called in the working thread with those that the store does not
        have any more, or only damaged; without it, one such state ends the node.
        """
        self._wanted.update((handle.unit, handle.state) for handle in units)
        executor = self._throttled_executor if throttled else self._executor
        for portion in _divide(units) if throttled else (units,):
            retrieval = Retrieval(
                self._background if throttled else self._manager,
                self._download,
                portion,
                self._is_wanted,
                pace=self._throttle.wait_for if throttled else _do_not_wait,
                may_miss=on_missing is not None,
            )
            executor.submit(self._load, retrieval, use, cause, on_missing)

    def close(self) -> None:
        for executor in (self._executor, self._throttled_executor):
            executor.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            for peer in self._peers.values():
                peer.close()

    def _load(self, retrieval: "Retrieval", use: UseStates, cause: str, on_missing: OnMissing | None) -> None:
        closing = self._context.closing
        try:
            retry_while_unavailable(retrieval.attempt, self._context.settings.store_retry_seconds, closing)
        except Exception as error:  # noqa: BLE001 - passed to the working thread, which ends the node with it
            if not closing.is_set():
                self._context.fail(error, cause)
            return
        if on_missing is not None and retrieval.missing:
            self._context.post(lambda: on_missing(retrieval.missing))
        self._context.post(lambda: use(retrieval.found, retrieval.direct_bytes))

    def _is_wanted(self, handle: UnitHandle) -> bool:
        return self._wanted.get(handle.unit) == handle.state

    def _download(self, address: str, ref: StateRef) -> Bytes:
        with self._lock:
            if address not in self._peers:
                self._peers[address] = self._context.network.connect(address, self._context.spec.token)
            peer = self._peers[address]
        return peer.download({"state": ref.key}, ref.size, _DOWNLOAD_SECONDS)


def _divide(units: Sequence[UnitHandle]) -> Iterator[Sequence[UnitHandle]]:
    """Yield the units in portions of bounded size, each of at least one unit."""
    start, size = 0, 0
    for index, handle in enumerate(units):
        size += handle.state.size if handle.state is not None else 0
        if size > _PORTION_BYTES and index > start:
            yield units[start:index]
            start, size = index, handle.state.size if handle.state is not None else 0
    yield units[start:]


def _do_not_wait(_size: int) -> None:
    """Let a copy through at once."""


class Retrieval:
    """States that were asked for together, and those of them that have arrived.

    `attempt` raises `StoreUnavailable` as long as another attempt may bring more: while the store is unavailable, and
    while an offered state is neither at its source nor in the store. The source stores it soon, or is lost; then the
    driver names another state for the unit, and this one is not wanted any more (`is_wanted`).

    With `may_miss`, states that the store does not have any more, or only damaged, are `missing`, and the others arrive
    nevertheless: the owner has its state, and saves a newer one.
    """

    def __init__(
        self,
        manager: StateManager,
        download: Download,
        units: Iterable[UnitHandle],
        is_wanted: Callable[[UnitHandle], bool],
        pace: Callable[[int], None] = _do_not_wait,
        *,
        may_miss: bool = False,
    ) -> None:
        self.found: dict[UnitHandle, SavedState | None] = {}
        self.missing: list[UnitHandle] = []
        self.direct_bytes = 0
        self._manager = manager
        self._download = download
        self._is_wanted = is_wanted
        self._may_miss = may_miss
        self._pace = pace  # called with the size of a state before it is fetched; may wait
        self._left: list[tuple[UnitHandle, StateRef]] = []
        for handle in units:
            if handle.state is None:
                self.found[handle] = None
            else:
                self._left.append((handle, handle.state))
        self._offered = {ref.key: handle.source for handle, ref in self._left if handle.source is not None}
        self._distrusted: set[str] = set()  # keys of offered states whose bytes were not what was signed
        self._came_directly: set[str] = set()

    def attempt(self) -> None:
        """Load what is missing."""
        self._left = [(handle, ref) for handle, ref in self._left if self._is_wanted(handle)]
        failed: TransferFailed | None = None
        try:
            arrived = self._manager.load_many((ref for _, ref in self._left), fetch=self._fetch)
        except TransferFailed as failure:
            failed, arrived = failure, failure.succeeded
        for handle, ref in self._left:
            if ref.unit in arrived:
                self.found[handle] = arrived[ref.unit]
                self.direct_bytes += ref.size * (ref.key in self._came_directly)
        self._left = [(handle, ref) for handle, ref in self._left if ref.unit not in arrived]
        if failed is not None:
            reasons = failed.reasons
            if self._may_miss:
                gone = {unit for unit, reason in reasons.items() if self._is_gone(reason)}
                self.missing += [handle for handle, _ in self._left if handle.unit in gone]
                self._left = [(handle, ref) for handle, ref in self._left if handle.unit not in gone]
                reasons = {unit: reason for unit, reason in reasons.items() if unit not in gone}
            if reasons:
                raise self._select_error(list(reasons.values())) from failed

    def _is_gone(self, reason: BaseException) -> bool:
        if isinstance(reason, BadObject) and reason.key not in self._came_directly:
            _log.error("cannot follow a unit until its owner has saved it again: %s", reason)
            return True
        return isinstance(reason, ObjectMissing)

    def _fetch(self, ref: StateRef) -> Bytes:
        self._pace(ref.size)
        source = self._offered.get(ref.key)
        if source is None:
            return self._manager.fetch(ref)
        if ref.key not in self._distrusted:
            try:
                data = self._download(source, ref)
            except (PeerUnavailable, Refused) as error:
                _log.info("cannot download %s from its source, reading the store: %s", ref.key, error)
            else:
                self._came_directly.add(ref.key)
                return data
        self._came_directly.discard(ref.key)
        try:
            return self._manager.fetch(ref)
        except ObjectMissing as missing:
            reason = "its source does not answer, and has not stored it yet"
            raise StoreUnavailable(missing.store, "get", ref.key, reason) from missing

    def _select_error(self, reasons: list[BaseException]) -> BaseException:
        """Return an error that another attempt would meet again, if there is one; else one that makes it retry."""
        for reason in reasons:
            if isinstance(reason, BadObject) and reason.key in self._came_directly:
                self._distrusted.add(reason.key)  # damaged in transit: the store has it, or will
                retryable = StoreUnavailable("the source", "send", reason.key, reason.reason)
                reasons = [retryable if one is reason else one for one in reasons]
        return next((reason for reason in reasons if not isinstance(reason, StoreUnavailable)), reasons[0])
