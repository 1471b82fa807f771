"""Snapshots on a node: one unit after the other is captured between two steps and saved in the background."""

import logging
from typing import TYPE_CHECKING

from elastic.core.messages import SnapshotTaken, TakeSnapshot, UnchangedUnit
from elastic.core.unit_host import UnitHost
from elastic.node.context import NodeContext
from elastic.node.state_saver import StateSaver
from storage.errors import StorageError
from storage.state import StateManager, StateRef

if TYPE_CHECKING:
    from concurrent.futures import Future

_log = logging.getLogger(__name__)
_THROTTLED_SHARE = 0.5  # of the time between two snapshots: after it, a node saves what is left as fast as it can


class SnapshotTaker:
    """The snapshot under way on one node, if any. Only the working thread calls it, and again when it is woken."""

    def __init__(self, context: NodeContext, host: UnitHost, manager: StateManager) -> None:
        self._context = context
        self._host = host
        # No caller waits for a snapshot, so it should slow down the stream as little as possible.
        throttled_seconds = _THROTTLED_SHARE * context.settings.snapshot_seconds
        self._saver = StateSaver(manager, context.wake, "save", at_once=1, throttled_seconds=throttled_seconds)
        self._message: TakeSnapshot | None = None
        self._under_way: list[Future[StateRef]] = []
        self._states: list[StateRef] = []
        self._unchanged: list[UnchangedUnit] = []

    def begin(self, message: TakeSnapshot) -> None:
        if self._host.begin_snapshot(message):
            self._message = message
            self._under_way, self._states, self._unchanged = [], [], []

    def advance(self) -> bool:
        """Capture one more unit if one is ready; return whether there was one."""
        if self._message is None:
            return False
        self._collect(self._message)
        if not self._saver.has_room:
            return False
        capture = self._host.capture_next()
        if isinstance(capture, UnchangedUnit):
            self._unchanged.append(capture)
        elif capture is not None:
            self._under_way.append(self._saver.save(capture, self._message.lease))
        elif not self._host.left_to_capture and not self._under_way:
            self._report(self._message)
            self._message = None
        return capture is not None

    def close(self) -> None:
        self._saver.close()

    def _collect(self, message: TakeSnapshot) -> None:
        """Collect saved states. One that failed is left out; the next snapshot saves it."""
        for future in [future for future in self._under_way if future.done()]:
            self._under_way.remove(future)
            try:
                self._states.append(future.result())
            except StorageError as error:
                _log.warning(
                    "%s did not save a state, the next snapshot tries again [%s]: %s",
                    self._context.node,
                    message.cause,
                    error,
                )

    def _report(self, message: TakeSnapshot) -> None:
        self._context.report(
            SnapshotTaken(
                self._context.node,
                self._context.incarnation,
                message.lease,
                tuple(self._states),
                tuple(self._unchanged),
                cause=message.cause,
            )
        )
