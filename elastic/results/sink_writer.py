"""A background thread that delivers every published batch of the result log to a sink, in order."""

import logging

from elastic import threads
from elastic.errors import StoreUnreachable
from elastic.results.log import ResultLog
from elastic.results.sinks import Sink
from storage.errors import StoreUnavailable

_POLL_SECONDS = 1.0  # between polls without a notification, and between retries while the store is unavailable
_RETRY_SECONDS = 600.0

_logger = logging.getLogger(__name__)


class SinkWriter:
    """Delivers the results of one stage from the log to a sink.

    `next_batch` is the first batch that the sink does not have; no batch from it on may expire. While the store is
    unavailable the writer retries for up to `retry_seconds`. Any other failure ends it: the exception is in `error`,
    and the sink keeps what was delivered.
    """

    def __init__(
        self,
        log: ResultLog,
        stage: str,
        sink: Sink,
        *,
        poll_seconds: float = _POLL_SECONDS,
        retry_seconds: float = _RETRY_SECONDS,
    ) -> None:
        self.error: BaseException | None = None
        self.next_batch: int | None = None
        self._log = log
        self._stage = stage
        self._sink = sink
        self._poll_seconds = poll_seconds
        self._retry_seconds = retry_seconds
        self._is_open = False
        self._has_ended = False
        self._is_stopping = False
        self._is_abandoned = False
        self._wake_up = threads.Event()
        self._progress = threads.Condition()
        self._thread = threads.Thread(target=self._run, name=f"sink-writer-{log.job}")

    def start(self) -> "SinkWriter":
        """Start the thread; return this writer."""
        self._thread.start()
        return self

    def notify(self) -> None:
        """Poll the log now: a batch was published."""
        self._wake_up.set()

    def wait(self, batch: int, timeout_seconds: float | None = None) -> bool:
        """Wait until the sink has the batch; return False after the timeout, or if the writer has ended without it."""
        with self._progress:
            self._progress.wait_for(lambda: self._has_ended or self._has(batch), timeout_seconds)
            return self._has(batch)

    def stop(self, *, drain: bool = True, timeout_seconds: float = 30.0) -> bool:
        """End the thread, with `drain` after it has delivered all published batches; return False after the timeout.

        The thread closes the sink itself, so that no delivery is interrupted.
        """
        self._is_abandoned = not drain
        self._is_stopping = True
        self._wake_up.set()
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)
        has_ended = not self._thread.is_alive()
        self._is_abandoned = True
        self._wake_up.set()
        return has_ended

    def _run(self) -> None:
        try:
            self._deliver_until_stopped()
        except Exception as error:  # a sink may raise anything, and a thread has no caller
            self.error = error
            _logger.exception("the sink of job %r gets no more results", self._log.job)
        finally:
            try:
                self._sink.close()
            except Exception as error:  # noqa: BLE001 - as above; the first error matters more
                self.error = self.error or error
            with self._progress:
                self._has_ended = True
                self._progress.notify_all()

    def _deliver_until_stopped(self) -> None:
        unavailable_since = None
        while True:
            is_stopping = self._is_stopping  # read before the poll: what was published before stop() is delivered
            try:
                self._deliver_published()
                unavailable_since = None
            except StoreUnavailable as cause:
                unavailable_since = unavailable_since or threads.monotonic()
                if threads.monotonic() - unavailable_since > self._retry_seconds:
                    raise StoreUnreachable(self._retry_seconds, str(cause)) from cause
            if self._is_abandoned or (is_stopping and unavailable_since is None):
                return
            self._wake_up.wait(self._poll_seconds)
            self._wake_up.clear()

    def _deliver_published(self) -> None:
        if not self._is_open:
            self.next_batch = self._sink.open(self._log.read_identity())
            self._is_open = True
        published = self._log.poll(self.next_batch - 1 if self.next_batch else None)
        if self.next_batch is None and published:
            self.next_batch = published.start
        while self.next_batch is not None and self.next_batch < published.stop and not self._is_abandoned:
            self._skip_gap()
            self._sink.deliver(self.next_batch, self._log.read(self.next_batch, self._stage))
            with self._progress:
                self.next_batch += 1
                self._progress.notify_all()

    def _skip_gap(self) -> None:
        """Continue with the last batch of a gap: all its batches are empty, and one suffices to give the position."""
        gap = self._log.find_gap(self.next_batch) if self.next_batch is not None else None
        if gap is not None:
            self.next_batch = gap[-1]

    def _has(self, batch: int) -> bool:
        return batch < 0 or (self.next_batch is not None and batch < self.next_batch)
