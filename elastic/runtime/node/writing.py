"""Outputs are written behind the working thread, in order, so that the next step need not wait for the store."""

import queue
import threading
from collections.abc import Callable

from elastic.runtime.node.outputs import Outputs
from elastic.runtime.node.reports import Reports
from elastic.runtime.patience import patiently
from elastic.runtime.protocol.host import Taken
from elastic.runtime.stopping import Deadline

_CLOSE_SECONDS = 5.0  # for a store that does not answer: less than the driver waits before it cancels the node
_BEHIND = 4  # steps whose outputs wait for the store; more would be memory without end while it is away


class Writer:
    """Makes outputs durable and reports them, one step after the other, in a thread of its own."""

    def __init__(
        self,
        outputs: Outputs,
        reports: Reports,
        names: tuple[str, str],
        patience_seconds: float,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._outputs = outputs
        self._reports = reports
        self._names = names
        self._patience = patience_seconds
        self._on_failure = on_failure
        self._closing = threading.Event()
        self._queue: queue.Queue[Taken | None] = queue.Queue(_BEHIND)
        self._thread = threading.Thread(target=self._write_all, name="outputs", daemon=True)
        self._thread.start()

    def put(self, taken: Taken) -> None:
        """Waits while too many are behind."""
        if taken.slots:
            self._queue.put(taken)

    def hurry(self) -> None:
        """The node is about to leave: from now on a store that is away is not waited for."""
        self._closing.set()

    def close(self, seconds: float = _CLOSE_SECONDS) -> bool:
        """Write what is queued, unless the store is away; whether that was done in time."""
        self.hurry()
        deadline = Deadline(seconds)
        try:
            self._queue.put(None, timeout=seconds)
        except queue.Full:
            return False
        self._thread.join(deadline.left())
        return not self._thread.is_alive()

    def _write_all(self) -> None:
        while (taken := self._queue.get()) is not None:
            try:
                self._write(taken)
            except Exception as error:  # noqa: BLE001 - handed to the working thread, which ends the node with it
                self._on_failure(error)

    def _write(self, taken: Taken) -> None:
        report = patiently(lambda: self._outputs.store(taken, *self._names), self._patience, self._closing)
        self._reports.send("applied", report.to_json())
