"""A background thread that delivers every published batch of the result log to a sink, in order."""

import logging

from elastic import threads
from elastic.errors import StoreUnreachable
from elastic.results.errors import SinkUnavailable, SinkUnreachable
from elastic.results.log import ResultLog
from elastic.results.sinks import Sink
from storage.errors import StoreUnavailable

_POLL_SECONDS = 1.0  # between polls without a notification, and between retries while the store is unavailable
_RETRY_SECONDS = 600.0
_SINK_RETRY_SECONDS = 3_600.0

_logger = logging.getLogger(__name__)


class SinkWriter:
    """Delivers the results of one stage from the log to a sink.

    `next_batch` is the first batch that the sink does not have, None until the sink is open. While the store is
    unavailable the writer retries for up to `retry_seconds`, and while the sink is (`SinkUnavailable`) for up to
    `sink_retry_seconds`; the log keeps the batches meanwhile. Any other failure ends it: the exception is in `error`,
    and the sink keeps what was delivered. `part` tells the results of this stage from those of others that have a sink.
    """

    def __init__(
        self,
        log: ResultLog,
        stage: str,
        sink: Sink,
        *,
        part: str = "",
        poll_seconds: float = _POLL_SECONDS,
        retry_seconds: float = _RETRY_SECONDS,
        sink_retry_seconds: float = _SINK_RETRY_SECONDS,
    ) -> None:
        self.error: BaseException | None = None
        self.next_batch: int | None = None
        self._log = log
        self._stage = stage
        self._sink = sink
        self._part = part
        self._whose = f"{log.job!r}, stage {part!r}" if part else repr(log.job)
        self._poll_seconds = poll_seconds
        self._retry_seconds = retry_seconds
        self._sink_retry_seconds = sink_retry_seconds
        self._is_open = False
        self._has_ended = False
        self._is_stopping = False
        self._is_abandoned = False
        self._wake_up = threads.Event()
        self._progress = threads.Condition()
        self._thread = threads.Thread(target=self._run, name=f"sink-writer-{log.job}{part and f'-{part}'}")

    def start(self) -> "SinkWriter":
        """Start the thread; return this writer."""
        self._thread.start()
        return self

    @property
    def needed_from(self) -> int | None:
        """The first batch that may not expire: all of them, until the sink has said which ones it has."""
        return self.next_batch if self._is_open else 0

    def notify(self) -> None:
        """Poll the log now: a batch was published."""
        self._wake_up.set()

    def wait(self, batch: int, timeout_seconds: float | None = None) -> bool:
        """Wait until the sink has the batch; return False after the timeout, or if the writer has ended without it."""
        with self._progress:
            self._progress.wait_for(lambda: self._has_ended or self._has(batch), timeout_seconds)
            return self._has(batch)

    def begin_stop(self) -> None:
        """Ask the thread to end after it has delivered all published batches; `stop` waits for that."""
        self._is_stopping = True
        self._wake_up.set()

    def stop(self, *, drain: bool = True, timeout_seconds: float = 30.0) -> bool:
        """End the thread, with `drain` after it has delivered all published batches; return False after the timeout.

        The thread closes the sink itself, so that no delivery is interrupted.
        """
        self._is_abandoned = not drain
        self.begin_stop()
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
            _logger.exception("the sink of job %s gets no more results", self._whose)
        finally:
            try:
                self._sink.close()
            except Exception as error:  # noqa: BLE001 - as above; the first error matters more
                self.error = self.error or error
            with self._progress:
                self._has_ended = True
                self._progress.notify_all()

    def _deliver_until_stopped(self) -> None:
        unavailable_since: float | None = None
        while True:
            is_stopping = self._is_stopping  # read before the poll: what was published before stop() is delivered
            began_with = self.next_batch
            try:
                self._deliver_published()
            except (StoreUnavailable, SinkUnavailable) as cause:
                if unavailable_since is None or self.next_batch != began_with:
                    unavailable_since = threads.monotonic()
                    _logger.warning("results of job %s wait, and delivery is repeated: %s", self._whose, cause)
                self._check_patience(unavailable_since, cause)
            else:
                if unavailable_since is not None:
                    waited = threads.monotonic() - unavailable_since
                    _logger.warning("results of job %s are delivered again after %.1f s", self._whose, waited)
                unavailable_since = None
            if self._is_abandoned or (is_stopping and unavailable_since is None):
                return
            self._wake_up.wait(self._poll_seconds)
            self._wake_up.clear()

    def _check_patience(self, unavailable_since: float, cause: StoreUnavailable | SinkUnavailable) -> None:
        waited = threads.monotonic() - unavailable_since
        if isinstance(cause, SinkUnavailable):
            if waited > self._sink_retry_seconds:
                raise SinkUnreachable(self._sink_retry_seconds, cause.why) from cause
        elif waited > self._retry_seconds:
            raise StoreUnreachable(self._retry_seconds, str(cause)) from cause

    def _deliver_published(self) -> None:
        if not self._is_open:
            identity = self._log.read_identity()
            self.next_batch = self._sink.open(f"{identity}.{self._part}" if self._part else identity)
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
