"""A node's link to the driver: reports in order, each repeated until it is acknowledged, and heartbeats."""

from collections.abc import Callable

from elastic import threads
from elastic.core.messages import NodeReport, encode_message
from elastic.pauses import PauseMeter
from elastic.wire import CALL_SECONDS, Peer, Refused, ReliableSender


class DriverLink:
    """Sends reports in one thread and heartbeats in another, and calls `leave` when the driver refuses one.

    `leave` is also called when the driver was silent for `silence_seconds`: it is gone, and will never ask for what
    this node has. Time in which this process did not run is not silence.
    """

    def __init__(
        self,
        driver: Peer,
        heartbeat: Callable[[], NodeReport],
        leave: Callable[[str], object],
        *,
        heartbeat_seconds: float,
        silence_seconds: float,
        clock: Callable[[], float] = threads.monotonic,
    ) -> None:
        self._heartbeat = heartbeat
        self._leave = leave
        self._heartbeat_seconds = heartbeat_seconds
        self._silence_seconds = silence_seconds
        self._clock = clock
        self._pauses = PauseMeter(2 * heartbeat_seconds + CALL_SECONDS, clock)
        self._acknowledged_at = clock()
        self._closing = threads.Event()
        self._sender = ReliableSender(
            driver, "report", "reports", on_refused=self._handle_refusal, on_acknowledged=self._note_answer
        )
        self._thread = threads.Thread(target=self._send_heartbeats, name="heartbeats")

    def start(self) -> None:
        self._sender.start()
        self._thread.start()

    def report(self, report: NodeReport) -> None:
        """Queue a report; returns at once."""
        self._sender.send(encode_message(report))

    def report_now(self, report: NodeReport) -> None:
        """Send a report ahead of the queue and return when the driver has it, or is silent for too long."""
        self._sender.deliver(encode_message(report), give_up=self._is_driver_silent)

    def report_once(self, report: NodeReport) -> bool:
        """Send a report ahead of the queue without repeating it; return whether the driver answered."""
        return self._sender.try_once(encode_message(report))

    def close(self, flush_seconds: float = 5.0) -> None:
        """Send what is queued as far as that works in this time, then nothing more."""
        self._sender.close(flush_seconds)
        self._closing.set()
        if flush_seconds and self._thread.ident is not None:
            self._thread.join(flush_seconds)

    def _send_heartbeats(self) -> None:
        while not self._closing.wait(self._heartbeat_seconds):
            self.report_once(self._heartbeat())
            self._acknowledged_at = min(self._clock(), self._acknowledged_at + self._pauses.measure())
            if self._is_driver_silent():
                self._leave(f"the driver was silent for {self._silence_seconds:g} s")

    def _is_driver_silent(self) -> bool:
        return self._clock() - self._acknowledged_at > self._silence_seconds

    def _note_answer(self) -> None:
        self._acknowledged_at = self._clock()

    def _handle_refusal(self, refused: Refused) -> None:
        self._note_answer()
        self._leave(str(refused))
