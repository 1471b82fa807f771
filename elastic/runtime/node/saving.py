"""Snapshots on a node: one unit after the other is captured between two steps and saved in the background."""

import logging
from collections.abc import Callable

from elastic.routing import Routing
from elastic.runtime.protocol import Host, Saved, Snapshot, Unchanged
from elastic.runtime.protocol.host import Capture
from storage.errors import StorageError
from storage.state import Save, StateManager, StateRef, Transfer

_log = logging.getLogger(__name__)

_AT_ONCE = 2  # captured and not yet stored: copies of state are memory


class Snapshots:
    """The snapshot under way on one node, if any. One thread calls it; `wake` is called when it should call again."""

    def __init__(
        self,
        host: Host,
        manager: StateManager,
        routing: Routing,
        report: Callable[[Saved], None],
        names: tuple[str, str],
    ) -> None:
        self._host = host
        self._manager = manager
        self._routing = routing
        self._report = report
        self._names = names
        self._lease: str | None = None
        self._under_way: list[Transfer[StateRef]] = []
        self._states: list[StateRef] = []
        self._unchanged: list[Unchanged] = []

    def begin(self, message: Snapshot) -> None:
        if self._host.begin_snapshot(message):
            self._lease = message.lease
            self._under_way, self._states, self._unchanged = [], [], []

    def go_on(self, wake: Callable[[], None]) -> bool:
        """Capture one more unit if one is ready; whether anything was done."""
        if self._lease is None:
            return False
        self._collect()
        if len(self._under_way) >= _AT_ONCE:
            return False
        captured = self._host.next_capture()
        if isinstance(captured, Unchanged):
            self._unchanged.append(captured)
        elif captured is not None:
            self._save(captured, wake)
        elif not self._host.left_to_capture and not self._under_way:
            self._report(Saved(*self._names, self._lease, tuple(self._states), tuple(self._unchanged)))
            self._lease = None
        return captured is not None

    def _save(self, captured: Capture, wake: Callable[[], None]) -> None:
        assert self._lease is not None  # noqa: S101 - for the type checker
        item = Save(self._routing.unit(captured.slot), captured.state, batch=captured.batch)
        self._under_way.append(self._manager.save_many([item], lease=self._lease, on_progress=lambda _: wake()))

    def _collect(self) -> None:
        """States that fail to be saved are left out; the next snapshot saves them."""
        for transfer in [transfer for transfer in self._under_way if _is_over(transfer)]:
            self._under_way.remove(transfer)
            try:
                self._states.extend(transfer.result().values())
            except StorageError as error:
                _log.warning("a state was not saved, the next snapshot will try again: %s", error)


def _is_over(transfer: Transfer[StateRef]) -> bool:
    progress = transfer.progress()
    return progress.done == progress.total
