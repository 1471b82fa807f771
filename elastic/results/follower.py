"""Feeds a sink from the log: every published batch, in order, in the background."""

import logging
import threading
from time import monotonic

from elastic.errors import StoreAway
from elastic.results.log import ResultLog
from elastic.results.sinks import Sink
from storage.errors import StoreUnavailable

_POLL_SECONDS = 1.0  # between looks when nobody notifies, and between tries while the store is away
_PATIENCE_SECONDS = 600.0

_logger = logging.getLogger(__name__)


class Follower:
    """A thread between the log and a sink.

    `next_batch` is the first batch that the sink has not got; nothing from it on may expire. While the store is away
    it waits, up to `patience_seconds`. Whatever else stops it is in `error`, and the sink keeps what it has.
    """

    def __init__(
        self,
        log: ResultLog,
        stage: str,
        sink: Sink,
        *,
        poll_seconds: float = _POLL_SECONDS,
        patience_seconds: float = _PATIENCE_SECONDS,
    ) -> None:
        self.error: BaseException | None = None
        self.next_batch: int | None = None
        self._log = log
        self._stage = stage
        self._sink = sink
        self._poll_seconds = poll_seconds
        self._patience_seconds = patience_seconds
        self._opened = False
        self._ended = False
        self._stopping = False
        self._abandoned = False
        self._awake = threading.Event()
        self._progress = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=f"follower-{log.job}", daemon=True)

    def start(self) -> "Follower":
        self._thread.start()
        return self

    def notify(self) -> None:
        """Something was published: look now."""
        self._awake.set()

    def wait(self, batch: int, timeout_seconds: float | None = None) -> bool:
        """Until the sink has got that batch; False if it has not in time, or the follower has ended."""
        with self._progress:
            self._progress.wait_for(lambda: self._ended or self._has(batch), timeout_seconds)
            return self._has(batch)

    def stop(self, *, drain: bool = True, timeout_seconds: float = 30.0) -> bool:
        """End; with `drain`, when the sink has got all that is published now. False if that took too long.

        The sink is closed by its thread, when nothing is under way any more.
        """
        self._abandoned = not drain
        self._stopping = True
        self._awake.set()
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)
        ended = not self._thread.is_alive()
        self._abandoned = True
        self._awake.set()
        return ended

    def _run(self) -> None:
        try:
            self._follow()
        except Exception as error:  # a sink may raise anything, and a thread has nobody to raise to
            self.error = error
            _logger.exception("results of job %r no longer reach their sink", self._log.job)
        finally:
            try:
                self._sink.close()
            except Exception as error:  # noqa: BLE001 - as above; the first error matters more
                self.error = self.error or error
            with self._progress:
                self._ended = True
                self._progress.notify_all()

    def _follow(self) -> None:
        away_since = None
        while True:
            stopping = self._stopping  # read before the look: what was published before stop() is delivered
            try:
                self._catch_up()
                away_since = None
            except StoreUnavailable as away:
                away_since = away_since or monotonic()
                if monotonic() - away_since > self._patience_seconds:
                    raise StoreAway(self._patience_seconds, str(away)) from away
            if self._abandoned or (stopping and away_since is None):
                return
            self._awake.wait(self._poll_seconds)
            self._awake.clear()

    def _catch_up(self) -> None:
        if not self._opened:
            self.next_batch = self._sink.open(self._log.identity())
            self._opened = True
        published = self._log.published(self.next_batch - 1 if self.next_batch else None)
        if self.next_batch is None and published:
            self.next_batch = published.start
        while self.next_batch is not None and self.next_batch < published.stop and not self._abandoned:
            self._pass_gap()
            self._sink.deliver(self.next_batch, self._log.read(self.next_batch, self._stage))
            with self._progress:
                self.next_batch += 1
                self._progress.notify_all()

    def _pass_gap(self) -> None:
        """Deliver only the last batch of a gap, which is empty as all of them are: it tells the sink the position."""
        gap = self._log.gap_at(self.next_batch) if self.next_batch is not None else None
        if gap is not None:
            self.next_batch = gap[-1]

    def _has(self, batch: int) -> bool:
        return batch < 0 or (self.next_batch is not None and batch < self.next_batch)
