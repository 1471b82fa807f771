"""The end of a job: drained and stopped by its user, or ended because its stream or its driver did."""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from elastic import threads
from elastic.control import Autoscaler, PeriodicThread, Scaler
from elastic.deadlines import Deadline, finish_within
from elastic.driver.context import JobContext
from elastic.driver.driver import Driver
from elastic.errors import ElasticError, JobStopped, MigrationFailed
from elastic.ingest.batch_ingest import BatchIngest
from elastic.job.status import JobStatus
from elastic.job.stream import Stream
from elastic.results.sink_writers import SinkWriters

_log = logging.getLogger(__name__)
_SETTLE_SECONDS = 10.0  # for the mini-migration in flight; longer, and the next life does without it
_QUERY_SECONDS = 15.0  # for Spark to interrupt the batch in flight
_THREAD_SECONDS = 5.0  # for threads that only observe
_SINK_SECONDS = 30.0  # for sinks to take what is published
_REMIND_SECONDS = 60.0  # between two log lines that say what a job whose source has ended waits for
_WATCH_SECONDS = 0.2


@dataclass(frozen=True)
class StopReport:
    """How a job stopped.

    Batches up to `last_batch` are committed, those up to `published_batch` are applied and their results published,
    and saved states include those up to `saved_batch`. The next run of the job repeats what is committed and not
    saved, so nothing is lost. `unfinished` says in sentences what did not finish in time; it is empty after a clean
    stop.
    """

    seconds: float
    last_batch: int
    published_batch: int
    saved_batch: int
    unfinished: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        """Whether everything that the stop was asked to do was done."""
        return not self.unfinished


@dataclass
class RunningParts:
    """The parts that end with a job."""

    driver: Driver
    ingest: BatchIngest
    stream: Stream
    scaler: Scaler
    sink_writers: SinkWriters
    repeating: tuple[PeriodicThread, ...]
    autoscaler: Autoscaler | None = None


class Shutdown:
    """Ends a job once, within a bound. `on_end` is called when it has ended."""

    def __init__(self, context: JobContext, parts: RunningParts, on_end: Callable[[], None]) -> None:
        self._context = context
        self._parts = parts
        self._on_end = on_end
        self._lock = threads.Lock()
        self._ended = threads.Event()
        self._report: StopReport | None = None

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the job has ended; False if it has not in time."""
        return self._ended.wait(seconds)

    def watch(self) -> None:
        """End the job, from a thread of its own, when its stream ends or its driver fails."""
        threads.Thread(self._watch, name=f"watch-{self._context.name}").start()

    def stop(self, *, drain: bool = True, timeout_seconds: float | None = None) -> StopReport:
        """Stop the stream, let nodes finish what was ingested, save the state, end the nodes."""
        timeout = self._context.settings.stop_seconds if timeout_seconds is None else timeout_seconds
        drained_by, deadline = Deadline.for_stop(timeout)
        if self.has_ended:
            return self._report or self._make_report(deadline, [])
        parts = self._parts
        finish_within(deadline.left(_WATCH_SECONDS), self._note_failure, "checking Spark's query")
        for repeating in parts.repeating:
            finish_within(deadline.left(_THREAD_SECONDS), repeating.stop, f"stopping {repeating.name}")
        with parts.stream.ending():
            parts.ingest.stop(abandon=not drain)
            unfinished = self._settle_migration(drained_by) if drain else []
            unfinished += self._stop_stream(drained_by.left(_QUERY_SECONDS))
            if drain and parts.driver.views.error is None and not self.has_ended:
                unfinished += self._drain(drained_by)
            unfinished += self.end(deadline)
        for sentence in unfinished:
            _log.warning("%s stopped before it was done. %s", self._context.name, sentence)
        self._report = self._report or self._make_report(deadline, unfinished)
        return self._report

    def end(self, deadline: Deadline) -> list[str]:
        """End everything that runs; return what did not end in time. The job has ended then in any case."""
        parts = self._parts
        with self._lock:
            if self.has_ended:
                return []
            unfinished: list[str] = []
            for repeating in parts.repeating:
                finish_within(deadline.left(_THREAD_SECONDS), repeating.stop, f"stopping {repeating.name}")
            self._stop_autoscaler(deadline)
            left = deadline.left()
            close = partial(parts.driver.close, 0.7 * left)  # sinks and the store come after it
            if not finish_within(0.8 * left, lambda: unfinished.extend(close()), "ending the nodes"):
                unfinished.append(
                    f"The nodes did not end within {left:.0f} s; they end by themselves when they miss the driver."
                )
            unfinished += self._parts.sink_writers.stop(deadline.left(_SINK_SECONDS))
            finish_within(deadline.left(_THREAD_SECONDS), self._context.store.close, "closing the store")
            self._ended.set()
        state = "failed" if parts.driver.views.error is not None else "stopped"
        batch = parts.driver.view.newest_batch
        _log.info("job %s %s: batch=%d rows=%d", self._context.name, state, batch, parts.ingest.rows)
        self._on_end()
        return unfinished

    def _make_report(self, deadline: Deadline, unfinished: list[str]) -> StopReport:
        view = self._parts.driver.view
        batches = (view.newest_batch, view.published_batch, view.saved_batch)
        return StopReport(deadline.elapsed_seconds, *batches, tuple(unfinished))

    def _stop_autoscaler(self, deadline: Deadline) -> None:
        if (autoscaler := self._parts.autoscaler) is not None:
            finish_within(deadline.left(_THREAD_SECONDS), autoscaler.stop, "stopping the autoscaler")

    def _settle_migration(self, deadline: Deadline) -> list[str]:
        """Cancel a migration that is under way: what has moved is committed, the rest stays."""
        self._stop_autoscaler(deadline)
        migration = self._parts.scaler.current
        if migration is None or migration.is_over:
            return []
        migration.cancel()
        with suppress(MigrationFailed):
            if not migration.wait(deadline.left(_SETTLE_SECONDS)):
                return ["The mini-migration in flight did not finish; its tasks stay where they were committed last."]
        return []

    def _stop_stream(self, seconds: float) -> list[str]:
        if finish_within(seconds, self._parts.stream.stop, "stopping Spark's query"):
            return []
        return [f"Spark's query did not stop within {seconds:.0f} s; the next run gets its batch again."]

    def _drain(self, deadline: Deadline) -> list[str]:
        """Let nodes apply what is committed, and save all state."""
        driver = self._parts.driver
        try:
            driver.wait_until_published(driver.view.newest_batch, deadline.left())
            driver.snapshot(deadline.left())
        except (TimeoutError, ElasticError) as error:
            return [f"{error} {self._describe_backlog()}"]
        return []

    def _describe_backlog(self) -> str:
        status = JobStatus.of(self._context.name, "stopping", self._parts.driver.view)
        pending = ", ".join(f"{node.name} ({node.pending_steps})" for node in status.nodes if node.pending_steps)
        return (
            f"Batch {status.last_batch} is committed, batch {status.published_batch} published, "
            f"batch {status.saved_batch} saved. Nodes with pending steps: {pending or 'none that reported it'}."
        )

    def _watch(self) -> None:
        while not self._ended.wait(_WATCH_SECONDS):
            try:
                self._end_if_over()
            except Exception as error:  # noqa: BLE001 - else nothing would ever end the job
                self._parts.driver.views.fail(error)

    def _note_failure(self) -> None:
        views = self._parts.driver.views
        if views.error is None and (error := self._parts.stream.failure) is not None:
            views.fail(error)

    def _end_if_over(self) -> None:
        self._note_failure()
        parts = self._parts
        if parts.driver.views.error is not None:
            deadline = Deadline(self._context.settings.stop_seconds)
            with parts.stream.ending():
                parts.ingest.stop(abandon=True)
                self._stop_stream(deadline.left(_QUERY_SECONDS))
                self.end(deadline)
        elif parts.stream.has_ended:
            self._finish()

    def _finish(self) -> None:
        """End a job whose source has no more batches, when all are applied, delivered and saved."""
        driver = self._parts.driver
        newest = driver.view.newest_batch
        try:
            driver.wait_until_published(newest, _REMIND_SECONDS)
            self._wait_for_sinks(newest)
            driver.snapshot(_REMIND_SECONDS)
        except JobStopped:
            return  # another thread ended it
        except TimeoutError as error:
            _log.warning("the source of %s has ended, but the job has not: %s", self._context.name, error)
        else:
            self.stop()

    def _wait_for_sinks(self, batch: int) -> None:
        if (slow := self._parts.sink_writers.wait(batch, _REMIND_SECONDS)) is not None:
            raise TimeoutError(f"timed out after {_REMIND_SECONDS:g} s waiting for {slow} to take batch {batch}.")
