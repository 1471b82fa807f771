"""Snapshots on a node: one unit after the other is captured between two steps and saved in the background."""

import logging
from collections.abc import Callable
from concurrent.futures import Future

from elastic.runtime.node.saver import Saver
from elastic.runtime.protocol import Host, Saved, Snapshot, Unchanged
from storage.errors import StorageError
from storage.state import StateRef

_log = logging.getLogger(__name__)


class Snapshots:
    """The snapshot under way on one node, if any. One thread calls it, and again when the saver wakes it."""

    def __init__(self, host: Host, saver: Saver, report: Callable[[Saved], None], names: tuple[str, str]) -> None:
        self._host = host
        self._saver = saver
        self._report = report
        self._names = names
        self._lease: str | None = None
        self._under_way: list[Future[StateRef]] = []
        self._states: list[StateRef] = []
        self._unchanged: list[Unchanged] = []

    def begin(self, message: Snapshot) -> None:
        if self._host.begin_snapshot(message):
            self._lease = message.lease
            self._under_way, self._states, self._unchanged = [], [], []

    def go_on(self) -> bool:
        """Capture one more unit if one is ready; whether anything was done."""
        if self._lease is None:
            return False
        self._collect()
        if not self._saver.has_room:
            return False
        captured = self._host.next_capture()
        if isinstance(captured, Unchanged):
            self._unchanged.append(captured)
        elif captured is not None:
            self._under_way.append(self._saver.save(captured, self._lease))
        elif not self._host.left_to_capture and not self._under_way:
            self._report(Saved(*self._names, self._lease, tuple(self._states), tuple(self._unchanged)))
            self._lease = None
        return captured is not None

    def _collect(self) -> None:
        """States that fail to be saved are left out; the next snapshot saves them."""
        for future in [future for future in self._under_way if future.done()]:
            self._under_way.remove(future)
            try:
                self._states.append(future.result())
            except StorageError as error:
                _log.warning("a state was not saved, the next snapshot will try again: %s", error)
