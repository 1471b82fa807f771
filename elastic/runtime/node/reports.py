"""What a node tells the controller: in order, each again and again until it was heard."""

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from elastic.runtime.pauses import PauseMeter
from elastic.runtime.wire import Peer, PeerUnavailable, Refused
from elastic.runtime.wire.client import CALL_SECONDS

_PAUSE_SECONDS = 0.1


class Reports:
    """Sends reports in a thread of its own, and pulses in another. Calls `leave` when the controller does not want us.

    `leave` is also called when the controller was silent for `silence_seconds`: it is gone, and nobody will ever ask
    for what this node has. Time in which this node itself did not run does not count as silence.
    """

    def __init__(
        self,
        controller: Peer,
        pulse: Callable[[], dict[str, Any]],
        leave: Callable[[str], object],
        *,
        pulse_seconds: float,
        silence_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._controller = controller
        self._pulse = pulse
        self._leave = leave
        self._pulse_seconds = pulse_seconds
        self._silence_seconds = silence_seconds
        self._clock = clock
        self._pauses = PauseMeter(2 * pulse_seconds + CALL_SECONDS, clock)
        self._heard = clock()
        self._closing = threading.Event()
        self._queue: queue.SimpleQueue[tuple[str, dict[str, Any]] | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._send_all, name="reports", daemon=True),
            threading.Thread(target=self._pulse_always, name="pulse", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def send(self, kind: str, document: dict[str, Any]) -> None:
        self._queue.put((kind, document))

    def tell(self, kind: str, document: dict[str, Any]) -> None:
        """Send it now, past the queue, and return when it was heard, or when this node has no reason to wait."""
        while not self._closing.is_set() and not self._sent(kind, document):
            if time.monotonic() - self._heard > self._silence_seconds:
                return  # the thread that sends heartbeats lets the node leave
            self._closing.wait(_PAUSE_SECONDS)

    def close(self, flush_seconds: float = 5.0) -> None:
        """Send what is queued, as far as that works, and stop."""
        self._queue.put(None)
        started = [thread for thread in self._threads if thread.ident is not None]
        for thread in started[:1]:
            thread.join(flush_seconds)
        self._closing.set()
        for thread in started:
            thread.join(flush_seconds)

    def _send_all(self) -> None:
        while (report := self._queue.get()) is not None:
            while not self._closing.is_set() and not self._sent(*report):
                self._closing.wait(_PAUSE_SECONDS)

    def _pulse_always(self) -> None:
        while not self._closing.wait(self._pulse_seconds):
            self._sent("pulse", self._pulse())
            self._heard = min(self._clock(), self._heard + self._pauses.measure())
            if self._clock() - self._heard > self._silence_seconds:
                self._leave(f"the controller was silent for {self._silence_seconds:g} s")

    def _sent(self, kind: str, document: dict[str, Any]) -> bool:
        """Whether it was heard; a refusal was heard too."""
        try:
            self._controller.call(kind, document)
        except PeerUnavailable:
            return False
        except Refused as refused:
            self._leave(str(refused))
        self._heard = self._clock()
        return True
