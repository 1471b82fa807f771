"""The driver's side of a batch: numbers it, lets senders log it, and returns when it is committed."""

from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from elastic import threads
from elastic.core.ids import Batch
from elastic.core.stage_costs import NodeCosts, forecast_stage
from elastic.core.view import JobView
from elastic.driver.context import JobContext
from elastic.driver.driver import Driver
from elastic.errors import CheckpointMismatch, JobStopped
from elastic.ingest.batch_spec import BatchSpec
from elastic.ingest.partition_sender import PartitionStatus
from elastic.operators.combiner import Combiner
from elastic.retry import retry_while_unavailable
from elastic.routing import ShuffleGrouping
from elastic.routing.shuffle import NO_FORECAST, Forecast
from storage.state import BatchTime, SourceBatch

_TEXT_LENGTH = 500
_OFFSETS_SECONDS = 60.0  # for Spark to read one small file of its checkpoint
_GATE_SECONDS = 0.2  # between two checks whether the job stops while its stream is suspended


class BatchNotIngested(Exception):
    """What Spark is told when a batch is not committed; Spark keeps it and sends it again in the next life."""


class BatchSource(Protocol):
    """What an ingest needs of the engine that brings the batches; `rows` is that engine's own type."""

    def query_id(self, rows: Any) -> str:
        """Return the id of the query that a batch belongs to."""
        ...

    def read_digest(self, query: str, batch: int) -> "Future[str | None]":
        """Return a digest of what the source planned for a batch; None if the source does not reveal it."""
        ...

    def send(self, rows: Any, spec: BatchSpec) -> list[PartitionStatus]:
        """Let a sender log each partition of the rows."""
        ...


@dataclass(frozen=True)
class IngestPlan:
    """How rows become a batch: their key and their event time, and what the operator combines before they travel."""

    key: tuple[str, ...]
    combine: Combiner | None = None
    event_time: str | None = None
    watermark_delay_ms: int = 0


class BatchIngest:
    """Ingests the batches of one job, one after the other, and ticks between them."""

    def __init__(self, context: JobContext, driver: Driver, source: BatchSource, plan: IngestPlan) -> None:
        self.rows = 0  # ingested in this life of the job
        self.failure: BaseException | None = None  # what the newest batch failed with
        self._context = context
        self._driver = driver
        self._source = source
        self._plan = plan
        self._gate = threads.Lock()  # whoever holds it suspends the stream
        self._query: str | None = None  # Spark's id of the query, once the job is bound to it
        self._stopped = threads.Event()
        self._abandons_batches = False
        self._senders = 1  # of the latest batch
        self._costs: tuple[NodeCosts, ...] = ()
        self._known = NO_FORECAST  # from these costs

    @property
    def next_source_batch(self) -> int:
        """The batch of the source that comes next."""
        return self._driver.view.source.batch + 1

    def ingest(self, rows: Any, batch: int) -> None:
        """Ingest a batch, as the function that `foreachBatch` calls.

        Spark turns what is raised here into text, so the error itself is kept in `failure`. The text must be short:
        Spark searches it with a pattern that overflows its stack on a long one. It looks for an interrupt, by the full
        name of Py4J's error: that is how it tells a stop from a failure.
        """
        try:
            with self._enter_gate():
                self._ingest(rows, batch)
        except Exception as error:  # noqa: BLE001 - whatever it is, the job ends with it
            self.failure = error
            kind = f"{type(error).__module__}.{type(error).__name__}"
            raise BatchNotIngested(f"batch {batch}: {kind}: {str(error)[:_TEXT_LENGTH]}") from None

    def tick(self, due_ms: int) -> bool:
        """Commit an empty batch if a timer that is due at `due_ms` would otherwise wait for rows.

        A batch that is being ingested advances the time by itself. Returns whether a batch was committed.
        """
        self.check()
        if self._clock_ms() < due_ms or not self._gate.acquire(blocking=False):
            return False
        try:
            number, watermark_ms = self._next_number(), self._watermark_ms()
            time = BatchTime(number, self._clock_ms(), watermark_ms, watermark_ms)
            return self._commit(number, (), time, self._known_source(), self._driver.view.routing.groupings.epoch, {})
        finally:
            self._gate.release()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Ingest nothing for the time of the block."""
        with self._gate:
            yield

    def stop(self, *, abandon: bool) -> None:
        """Refuse batches from now on, also those that wait for room: Spark sends them again in the next life.

        With `abandon` the commit in flight is not waited for either.
        """
        self._stopped.set()
        self._abandons_batches = self._abandons_batches or abandon
        self._driver.views.notify()

    def check(self) -> None:
        """Raise unless batches are ingested."""
        self._driver.views.check()
        if self._stopped.is_set():
            raise JobStopped(self._context.name)

    @contextmanager
    def _enter_gate(self) -> Iterator[None]:
        """Wait while a migration suspends the stream, unless the job stops."""
        while not self._gate.acquire(timeout=_GATE_SECONDS):
            self.check()
        try:
            yield
        finally:
            self._gate.release()

    def _ingest(self, rows: Any, batch: int) -> None:
        """Spark sends the newest batch again after a crash before it noted the end: then there is nothing to do.

        The same number with other offsets, or an older number, comes from a checkpoint that is behind the state: Spark
        puts rows into it that are in no committed batch.
        """
        self.check()
        query, newest = self._claim(rows), self._driver.view.source
        if batch == newest.batch:
            self._check_replay(query, newest)
            return
        if batch != newest.batch + 1:
            raise CheckpointMismatch(self._context.name, batch, newest.batch)
        self._wait_for(lambda view: view.pending_batches < self._context.settings.max_pending_batches)
        digest = self._source.read_digest(query, batch)  # while the rows are being sent
        while not self._send(rows, batch, digest):
            pass  # the groupings changed while the rows were sent, at most once per batch

    def _send(self, rows: Any, batch: int, digest: "Future[str | None]") -> bool:
        """Let the rows be logged and commit them; False if they have to be sent again, by other groupings.

        If the batch before is about to commit other groupings, that takes less time than to send the rows twice.
        """
        self._wait_for(lambda view: not view.awaits_groupings)
        number = self._next_number()
        timestamp_ms = self._clock_ms()
        spec = self._spec(number)
        statuses = self._source.send(rows, spec)
        for status in statuses:
            status.check()
        logs = tuple(ref for status in statuses for ref in status.logs)
        watermark_ms = self._watermark_ms()
        time = BatchTime(number, timestamp_ms, watermark_ms, self._watermark_after(statuses, watermark_ms))
        source = SourceBatch(batch, digest.result(_OFFSETS_SECONDS))
        self._senders = max(1, len(statuses))
        seconds = Counter[str]()
        for status in statuses:
            seconds.update(status.seconds)
        is_committed = self._commit(number, logs, time, source, spec.routing.groupings.epoch, seconds)
        if is_committed:
            self.rows += sum(status.rows for status in statuses)
        return is_committed

    def _commit(
        self,
        number: Batch,
        logs: Any,
        time: BatchTime,
        source: SourceBatch | None,
        groupings_epoch: int,
        seconds: Mapping[str, float],
    ) -> bool:
        self._wait_for(lambda view: view.is_complete)

        def check() -> None:
            if self._abandons_batches:
                raise JobStopped(self._context.name, f"batch {number} was not committed before")

        return self._driver.commit_batch(number, logs, time, source, groupings_epoch, seconds, check)

    def _wait_for(self, condition: Any) -> None:
        """Wait as long as it takes, which throttles the source; ended by `stop`."""

        def is_met(view: JobView) -> bool:
            self.check()
            return bool(condition(view))

        self._driver.views.wait_for(is_met)

    def _check_replay(self, query: str, newest: SourceBatch) -> None:
        digest = self._source.read_digest(query, newest.batch).result(_OFFSETS_SECONDS)
        if None not in (digest, newest.digest) and digest != newest.digest:
            raise CheckpointMismatch(self._context.name, newest.batch, newest.batch)

    def _claim(self, rows: Any) -> str:
        if self._query is None:
            query = self._source.query_id(rows)
            retry_seconds = self._context.settings.store_retry_seconds
            retry_while_unavailable(lambda: self._driver.claim(query), retry_seconds, self._stopped)
            self._query = query
        return self._query

    def _known_source(self) -> SourceBatch | None:
        """Return the newest batch of the source if the manifest does not name it: then numbers of both were equal.

        A tick ends that, so it has to record the number.
        """
        view = self._driver.view
        return view.source if view.manifest.source is None else None

    def _next_number(self) -> Batch:
        return Batch(self._driver.view.newest_batch + 1)

    def _clock_ms(self) -> int:
        """Return the processing time; it does not go back when the machine's clock does."""
        latest = self._driver.view.latest_time
        now_ms = threads.time_ns() // 1_000_000
        return now_ms if latest is None else max(now_ms, latest.timestamp_ms)

    def _watermark_ms(self) -> int | None:
        """Return the watermark after the newest committed batch, of this life of the job or the one before."""
        latest = self._driver.view.latest_time
        return None if latest is None else latest.next_watermark_ms

    def _watermark_after(self, statuses: list[PartitionStatus], before_ms: int | None) -> int | None:
        """Return the latest event time of all batches, less the delay; it never goes back."""
        latest = [status.latest_ms for status in statuses if status.latest_ms is not None]
        if not latest:
            return before_ms
        watermark = max(latest) - self._plan.watermark_delay_ms
        return watermark if before_ms is None else max(before_ms, watermark)

    def _spec(self, number: Batch) -> BatchSpec:
        context, plan, view = self._context, self._plan, self._driver.view
        return BatchSpec(
            context.name,
            number,
            view.route,
            view.addresses(),
            context.token,
            context.access,
            context.settings,
            plan.key,
            plan.event_time,
            plan.combine,
            self._forecast(number),
            self._senders,
        )

    def _forecast(self, number: Batch) -> Forecast:
        """Return what the nodes have measured and have left, for a first stage that is shuffled by costs."""
        view = self._driver.view
        grouping = view.route.groupings[0]
        if not isinstance(grouping, ShuffleGrouping):
            return NO_FORECAST
        known = self._read_costs(view.costs()) if grouping.is_measured else NO_FORECAST
        now = threads.monotonic()
        backlogs = {node: max(0.0, end - now) for node, end in view.work_ends.items()}
        return replace(known, batch=number, backlogs=backlogs)

    def _read_costs(self, costs: tuple[NodeCosts, ...]) -> Forecast:
        """Return what these costs tell of the first stage; they change with heartbeats, not with batches."""
        if costs != self._costs:
            self._costs, self._known = costs, forecast_stage(costs, 0)
        return self._known
