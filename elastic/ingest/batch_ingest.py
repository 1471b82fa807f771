"""The driver's side of a batch: numbers it, lets senders log it, and returns when it is committed."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol, Self

from elastic import threads
from elastic.core.ids import Batch
from elastic.core.stage_costs import NodeCosts, forecast_stage
from elastic.core.view import JobView
from elastic.driver.context import JobContext
from elastic.driver.driver import Driver
from elastic.errors import CheckpointMismatch, JobStopped
from elastic.ingest.batch_spec import BatchSpec, InputPlan, Slots, StageFeed
from elastic.ingest.partition_sender import PartitionStatus
from elastic.operators.graph import InputSpec, Watermarks
from elastic.operators.stage_runner import StageRunner
from elastic.retry import retry_while_unavailable
from elastic.routing import Grouping, ShuffleGrouping
from elastic.routing.shuffle import NO_FORECAST, Forecast
from storage.state import BatchTime, SourceBatch

_TEXT_LENGTH = 500
_OFFSETS_SECONDS = 60.0  # for Spark to read one small file of its checkpoint
_GATE_SECONDS = 0.2  # between two checks whether the job stops while its stream is suspended


class BatchNotIngested(Exception):
    """Raised to Spark when a batch is not committed; Spark keeps the batch and sends it again in the next run."""


class BatchSource(Protocol):
    """The port to the engine that brings the batches; `rows` is that engine's own type."""

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
    """How rows become a batch: those of each input, and how time passes with them. `stages` is their number."""

    inputs: tuple[InputPlan, ...]
    watermarks: Watermarks
    stages: int = 1

    @classmethod
    def of(cls, inputs: Sequence[InputSpec], runners: Sequence[StageRunner], slots: Sequence[Slots] = ()) -> Self:
        """Return the plan of a job from its inputs, in the order of their numbers, and the runners of its stages.

        `slots` are those of each input (see `InputPlan`), if it comes in any.
        """
        plans = tuple(
            InputPlan(spec.name, spec.event_time, _find_feeds(spec.name, runners), found)
            for spec, found in zip(inputs, slots or [()] * len(inputs), strict=True)
        )
        watermarks = Watermarks(tuple(inputs), tuple(runner.clock for runner in runners))
        return cls(plans, watermarks, len(runners))


def _find_feeds(name: str, runners: Sequence[StageRunner]) -> tuple[StageFeed, ...]:
    """Return the ways of the rows of an input to the stages that read it."""
    return tuple(
        StageFeed(runner.stage, runner.grouped_by, runner.combiner, None if feed.schema is None else feed)
        for runner in runners
        for feed in runner.feeds
        if feed.source == name
    )


class BatchIngest:
    """Ingests the batches of one job, one after the other, and ticks between them."""

    def __init__(self, context: JobContext, driver: Driver, source: BatchSource, plan: IngestPlan) -> None:
        self.rows = 0  # ingested in this life of the job
        self.failure: BaseException | None = None  # what the newest batch failed with
        self._context = context
        self._driver = driver
        self._source = source
        self._plan = plan
        self._gate = threads.Lock()  # held while the stream is suspended
        self._query: str | None = None  # Spark's id of the query, once the job is bound to it
        self._stopped = threads.Event()
        self._abandons_batches = False
        self._senders = 1  # of the latest batch
        self._first_ms: int | None = None  # when this life first looked at the clock
        self._costs: tuple[NodeCosts, ...] = ()
        self._known: dict[int, Forecast] = {}  # from these costs, by stage

    @property
    def next_tick_ms(self) -> int | None:
        """When time has to pass though no rows come: now if stages that lag behind can catch up; None if it need not.

        Else when an input becomes idle and lets the watermark of the others pass.
        """
        view, watermarks = self._driver.view, self._plan.watermarks
        if watermarks.is_draining(view.latest_time, view.next_event_timers()):
            return 0
        return watermarks.next_idle_ms(view.latest_time, self._began_ms)

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
        except Exception as error:  # noqa: BLE001 - any error ends the job
            self.failure = error
            kind = f"{type(error).__module__}.{type(error).__name__}"
            raise BatchNotIngested(f"batch {batch}: {kind}: {str(error)[:_TEXT_LENGTH]}") from None

    def tick(self, due_ms: int) -> bool:
        """Commit an empty batch if a timer that is due at `due_ms` would otherwise wait for rows.

        A batch that is being ingested advances the time as well. Returns whether a batch was committed.
        """
        self.check()
        if self._clock_ms() < due_ms or not self._gate.acquire(blocking=False):
            return False
        try:
            number = self._next_number()
            time = self._time(number, self._clock_ms(), {})
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
        time = self._time(number, timestamp_ms, _merge_seen(statuses))
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

    @property
    def _began_ms(self) -> int:
        """When the stream of this life began."""
        self._first_ms = self._clock_ms() if self._first_ms is None else self._first_ms
        return self._first_ms

    def _time(self, number: Batch, timestamp_ms: int, seen: Mapping[int, int | None]) -> BatchTime:
        """Return the clock of a batch, from that of the batch before."""
        began_ms = min(self._began_ms, timestamp_ms)
        return self._plan.watermarks.advance(self._driver.view.latest_time, number, timestamp_ms, seen, began_ms)

    def _clock_ms(self) -> int:
        """Return the processing time; it does not go back when the machine's clock does."""
        latest = self._driver.view.latest_time
        now_ms = threads.time_ns() // 1_000_000
        return now_ms if latest is None else max(now_ms, latest.timestamp_ms)

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
            plan.inputs,
            plan.stages,
            self._forecasts(number),
            self._senders,
        )

    def _forecasts(self, number: Batch) -> dict[int, Forecast]:
        """Return what the nodes have measured and have left, of the stages that are shuffled and read an input."""
        groupings = self._driver.view.route.groupings
        stages = sorted({feed.stage for plan in self._plan.inputs for feed in plan.feeds})
        return {stage: self._forecast(number, stage) for stage in stages if _is_shuffled(groupings[stage])}

    def _forecast(self, number: Batch, stage: int) -> Forecast:
        view = self._driver.view
        grouping = view.route.groupings[stage]
        is_measured = isinstance(grouping, ShuffleGrouping) and grouping.is_measured
        known = self._read_costs(view.costs(), stage) if is_measured else NO_FORECAST
        now = threads.monotonic()
        backlogs = {node: max(0.0, end - now) for node, end in view.work_ends.items()}
        return replace(known, batch=number, backlogs=backlogs)

    def _read_costs(self, costs: tuple[NodeCosts, ...], stage: int) -> Forecast:
        """Return the forecast of a stage from these costs; they change with heartbeats, not with batches."""
        if costs != self._costs:
            self._costs, self._known = costs, {}
        if stage not in self._known:
            self._known[stage] = forecast_stage(costs, stage)
        return self._known[stage]


def _is_shuffled(grouping: Grouping) -> bool:
    return isinstance(grouping, ShuffleGrouping)


def _merge_seen(statuses: Iterable[PartitionStatus]) -> dict[int, int | None]:
    """Return the latest event time of each input that has rows."""
    seen: dict[int, int | None] = {}
    for number, latest_ms in chain.from_iterable(status.seen for status in statuses):
        known = seen.get(number)
        seen[number] = latest_ms if known is None else known if latest_ms is None else max(known, latest_ms)
    return seen
