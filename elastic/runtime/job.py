"""A running job: what its user holds."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from elastic.control import (
    OBSERVE_SECONDS,
    Autoscaler,
    Autoscaling,
    Journal,
    JournalPage,
    Load,
    Migration,
    Monitor,
    Policy,
    Repeating,
    Scaler,
    ScaleRequest,
)
from elastic.errors import (
    AutoscalerRunning,
    ElasticError,
    JobStopped,
    MigrationFailed,
    SinkFailed,
    StateUnavailable,
    StreamFailed,
)
from elastic.results import Description, Follower, MemorySink, ResultLog, Sink
from elastic.routing import scalar_hash, slot_of, task_of_slot
from elastic.runtime.controller import Controller
from elastic.runtime.controller.nodes import Nodes
from elastic.runtime.intake.batches import Intake
from elastic.runtime.job_cluster import JobCluster
from elastic.runtime.sources.access import Access, Credentials
from elastic.runtime.sources.state_source import StageState
from elastic.runtime.status import JobStatus
from elastic.runtime.stopping import Deadline, StopReport, finish_within
from elastic.runtime.stream import Stream
from elastic.runtime.ticks import Ticker
from elastic.runtime.wire import PeerUnavailable, Refused
from elastic.runtime.wire.sealing import sealed, unsealed
from migration import Ownership, Plan, Workload
from storage import Store

if TYPE_CHECKING:
    from migration import ValueFunction  # brings the planner with it

_log = logging.getLogger(__name__)
_SETTLE_SECONDS = 10.0  # for the mini-migration under way; longer, and the next life does without it
_QUERY_SECONDS = 15.0  # for Spark to interrupt the batch under way
_THREAD_SECONDS = 5.0  # for threads that only observe
_SINK_SECONDS = 30.0  # for a sink to take what is published
_REMIND_SECONDS = 60.0  # between two lines that say what a job whose source has ended waits for
_WATCH_SECONDS = 0.2


class Job:
    """One life of a job, from `run` until `stop` or its failure. Any thread may call it."""

    def __init__(
        self,
        name: str,
        frame: DataFrame,
        pipeline: Description,
        controller: Controller,
        nodes: Nodes,
        intake: Intake,
        store: Store,
        sink: Sink,
        results: ResultLog | None,
        *,
        table: Callable[[str], "ValueFunction"],
        check_room: Callable[[int], None],
        on_end: Callable[["Job"], None],
    ) -> None:
        self.name = name
        self.pipeline = pipeline
        self._frame = frame
        self._stream = Stream(name, frame, intake)
        self._controller = controller
        self._nodes = nodes
        self._intake = intake
        self._store = store
        self._sink = sink
        self._results = results
        self._journal = Journal(store, name)
        self._cluster = cluster = JobCluster(controller, intake, self._stream, check_room)
        self._monitor = monitor = Monitor(pipeline.tasks)
        self._observing = Repeating(f"monitor-{name}", OBSERVE_SECONDS, lambda: monitor.look(cluster))
        ticker = Ticker(controller, nodes, intake)
        self._ticking = Repeating(f"ticks-{name}", intake.settings.heartbeat_seconds, ticker.poll)
        self._scaler = Scaler(cluster, monitor, self._journal)
        self._autoscaler: Autoscaler | None = None
        self._table = table
        self._on_end = on_end
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._report: StopReport | None = None
        self._stop_seconds = intake.settings.stop_seconds
        stage = next((s.name for s in reversed(pipeline.stages) if s.output_schema is not None), None)
        self._follower: Follower | None = None
        if results is not None and stage is not None and sink.follows:
            patience = intake.settings.store_patience_seconds
            self._follower = Follower(results, stage, sink, patience_seconds=patience)

    def start(self, checkpoint: str, trigger: Mapping[str, Any]) -> None:
        """Start the nodes, then the stream; called once, by `run`."""
        began, nodes, batch = time.monotonic(), len(self._nodes.names), self._controller.newest_batch
        verb = "starts" if batch < 0 else "resumes"
        facts = (self.name, verb, nodes, self.pipeline.tasks, batch, self._store.url)
        _log.info("job %s %s: nodes=%d tasks=%d batch=%d store=%s", *facts)
        try:
            self._controller.start()
            self._controller.wait_until_serving(self._intake.settings.node_start_seconds)
            self._observing.start()
            if (follower := self._follower) is not None:
                follower.start()
                self._controller.deeds.needed_from = lambda: follower.next_batch
                self._controller.deeds.on_published = follower.notify
            self._stream.start(checkpoint, trigger)
            self._ticking.start()
        except BaseException:
            self._end(Deadline(self._stop_seconds))
            raise
        threading.Thread(target=self._watch, name=f"watch-{self.name}", daemon=True).start()
        _log.info("job %s runs: nodes=%d seconds=%.1f", self.name, nodes, time.monotonic() - began)

    @property
    def stream(self) -> StreamingQuery:
        """Spark's own query that brings the batches; another one after a migration in the mode `restart`."""
        return self._stream.query

    def status(self) -> JobStatus:
        sink_error = None if self._follower is None else self._follower.error
        return JobStatus.of(self.name, self._state(), self._controller.status(), self._intake.rows, sink_error)

    def batches(self) -> tuple[int, int]:
        """The newest batch that counts, and the newest whose results are visible: `status` without its cost."""
        return self._controller.newest_batch, self._controller.published_batch

    def results(self, stage: str | None = None) -> DataFrame:
        """What the job gives out, as a streaming DataFrame."""
        return self._frame.sparkSession.readStream.format("elastic").options(**self._source_options(stage)).load()

    def collected(self) -> pa.Table:
        """All results that the `memory` sink holds."""
        if not isinstance(self._sink, MemorySink):
            raise ElasticError('results are collected by the memory sink only. Run the job with sink="memory".')
        return self._sink.table()

    def quarantined(self) -> pa.Table:
        """The rows that operators failed on, with their errors, of all batches whose results are kept."""
        if self._results is None:
            raise ElasticError('a job without results keeps no failed rows. Run it with sink="store".')
        found = [self._results.quarantined(batch) for batch in self._results.published()]
        filled = [rows for rows in found if rows.num_rows]
        return pa.concat_tables(filled or found[:1])

    def state(self, key: Any, stage: str | None = None) -> Any:
        """What the operator says about a key now, after the steps that its node has taken."""
        number = self.pipeline.stage_number(stage)
        keyed = self.pipeline.stages[number]
        columns = key if isinstance(key, tuple) else (key,)
        hashed = scalar_hash(*columns, types=[keyed.input_schema.field(name).type for name in keyed.key])
        return self._ask(slot_of(number, hashed % self.pipeline.tasks), columns)

    def state_table(self, stage: str | None = None) -> DataFrame:
        """The state of all keys as of the newest snapshot, as a batch DataFrame; see `snapshot`."""
        options = self._source_options(stage)
        try:
            return self._frame.sparkSession.read.format("elastic-state").options(**options).load()
        except PySparkException:
            # It comes from a process of Spark's, as text; here the same question raises the error itself.
            own = Credentials(jobs={(self._store.url, self.name): self._intake.store})
            StageState(Access.of(options, ("stage",), own), stage).columns()
            raise

    def snapshot(self, seconds: float = 60.0) -> int:
        """Save all state that changed; the newest batch that every saved state includes."""
        return self._controller.snapshot(seconds)

    def process_all_available(self) -> None:
        """Until everything that the source has now is applied and its results are visible. For tests and demos.

        Raises `SinkFailed` if they cannot reach the sink.
        """
        try:
            self._stream.process_all_available()
        except StreamFailed:
            self._controller.check()  # what a node raised ends the stream too, and is the reason
            raise
        self._raise_failure()
        self._controller.wait_until_applied(self._controller.newest_batch)
        if self._follower is not None:
            self._follower.wait(self._controller.newest_batch)
            if (error := self._follower.error) is not None:
                raise SinkFailed(self.name, f"{type(error).__name__}: {error}") from error

    def scale(
        self,
        nodes: int | None = None,
        *,
        add: int | None = None,
        remove: Sequence[str] = (),
        strategy: str = "ssm",
        tau: float = 0.2,
        mode: str = "progressive",
        tasks_per_node: int | None = 2,
        bytes_per_node: float | None = None,
        transfer: str = "store",
        relax: bool = ScaleRequest.relax,
        queue: bool = False,
        **knowledge: Any,
    ) -> Migration:
        """Change the number of nodes while the stream runs: `nodes` in all, `add` more, or `remove` these very ones.

        Returns when it has begun; see `Migration.wait`. A second request is refused while one is under way, or waits
        with `queue`. States go through the store, or with `transfer="direct"` from node to node. `knowledge` is what
        the strategy needs, as in `migration.plan`; `value` may also be the name of a value table in the job's store.
        If no assignment is balanced, the plan takes the smallest feasible cap and says so; `relax=False` raises
        `Infeasible` instead. `TooFewSlots` is raised if Spark has no room for the nodes; nothing was started then.
        See `plan` for a dry run.
        """
        request = ScaleRequest(
            nodes,
            add,
            tuple(remove),
            strategy,
            tau,
            mode,
            tasks_per_node,
            bytes_per_node,
            transfer,
            relax,
            self._known(knowledge),
        )
        self._controller.check()
        return self._scaler.scale(request, queue=queue)

    def rebalance(self, **how: Any) -> Migration:
        """Move tasks between the nodes that there are, until none carries more than `tau` allows."""
        return self.scale(**how)

    def plan(self, nodes: int | None = None, *, add: int | None = None, remove: Sequence[str] = (), **how: Any) -> Plan:
        """What `scale` would do with the same arguments; changes nothing."""
        asked = {name: how.pop(name) for name in ScaleRequest.options() if name in how}
        return self._scaler.plan(ScaleRequest(nodes, add, tuple(remove), **asked, knowledge=self._known(how)))

    def workload(self) -> Workload:
        """Work and state size of every task, measured over the last minute: what plans are made from."""
        return self._scaler.workload()

    def autoscale(
        self,
        policy: str | Policy = "utilisation",
        *,
        ceiling: int,
        floor: int = 1,
        recommend_only: bool = False,
        **how: Any,
    ) -> Autoscaler:
        """Let a policy change the number of nodes between `floor` and `ceiling`, until the autoscaler is stopped.

        With `recommend_only` it only writes down what it would do. `how` is what else `Autoscaling.of` takes, as
        `window_seconds` and `cool_down_seconds`, and the options of the policy.
        """
        asked = Autoscaling.of(
            self.pipeline.tasks, policy=policy, ceiling=ceiling, floor=floor, recommend_only=recommend_only, **how
        )
        self._cluster.check_room(asked.ceiling)
        return self.begin_autoscaling(asked)

    def begin_autoscaling(self, asked: Autoscaling) -> Autoscaler:
        """What `autoscale` does once its arguments are checked."""
        with self._lock:
            self._controller.check()
            if self._autoscaler is not None and not self._autoscaler.is_stopped:
                raise AutoscalerRunning(self.name)
            self._autoscaler = Autoscaler(asked, self._cluster, self._monitor, self._scaler, self._journal)
            self._autoscaler.start()
            return self._autoscaler

    @property
    def autoscaler(self) -> Autoscaler | None:
        """The latest autoscaler of this life, stopped or not."""
        return self._autoscaler

    def load(self, seconds: float = 60.0) -> Load:
        """How busy the nodes were in the last seconds, 60 at most, and how much waits for them."""
        return self._monitor.load(seconds)

    @property
    def migration(self) -> Migration | None:
        """The latest migration of this life, over or not."""
        return self._scaler.current

    def assignment(self) -> Ownership:
        """Which node owns which tasks, as committed last."""
        return self._cluster.assignment()

    @property
    def node_count(self) -> int:
        """How many nodes hold a task slot, or are about to."""
        return max(len(self.assignment().nodes), self._nodes.count)

    def journal(self) -> list[dict[str, Any]]:
        """What was decided about this job, in all its lives, oldest first."""
        with self._open_journal() as journal:
            return list(journal.read())

    def journal_page(self, limit: int, before: int | None = None) -> JournalPage:
        """The same in pages, newest first."""
        with self._open_journal() as journal:
            return journal.page(limit, before)

    def story(self) -> list[str]:
        """The newest events that the controller heard of, and what it decided."""
        return self._controller.story()

    def await_termination(self, seconds: float | None = None) -> bool:
        """Until the job ends; False if it has not in time. Raises what ended it, if that was a failure."""
        ended = self._ended.wait(seconds)
        self._raise_failure()
        return ended

    def stop(self, *, drain: bool = True, timeout_seconds: float | None = None) -> StopReport:
        """Stop the stream, let nodes finish what was accepted, save the state, end the nodes.

        Returns within `timeout_seconds`, by default the setting `stop_seconds`, whatever hangs: an operator, the store,
        a sink or Spark. The report says what was left undone, and every such thing is logged as a warning; the next
        run repeats it. Without `drain` nothing is waited for but the end of the nodes. A second call returns at once.
        """
        drained_by, deadline = Deadline.of_stop(self._stop_seconds if timeout_seconds is None else timeout_seconds)
        if self._ended.is_set():
            return self._report or self._reported(deadline, [])
        finish_within(deadline.left(_WATCH_SECONDS), self._note_failure, "looking at Spark's query")
        finish_within(deadline.left(_THREAD_SECONDS), self._ticking.stop, "stopping the ticks")
        with self._stream.ending():
            self._controller.stop_ingest(abandon=not drain)
            unfinished = self._settle_migration(drained_by) if drain else []
            unfinished += self._stop_stream(drained_by.left(_QUERY_SECONDS))
            if drain and self._controller.error is None and not self._ended.is_set():
                unfinished += self._settle(drained_by)
            unfinished += self._end(deadline)
        for left_undone in unfinished:
            _log.warning("%s stopped before it was done. %s", self.name, left_undone)
        self._report = self._report or self._reported(deadline, unfinished)
        return self._report

    def __repr__(self) -> str:
        nodes, batch = len(self._cluster.assignment().nodes), self._controller.newest_batch
        return f"Job({self.name!r}, {self._state()}, nodes={nodes}, batch={batch}, rows={self._intake.rows})"

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @contextmanager
    def _open_journal(self) -> Iterator[Journal]:
        """Also of a job that has ended, whose own store is closed."""
        if not self._ended.is_set():
            yield self._journal
            return
        with closing(self._intake.store.open()) as store:
            yield Journal(store, self.name)

    def _known(self, knowledge: Mapping[str, Any]) -> Mapping[str, Any]:
        """With the value table itself where there is the name of one."""
        value = knowledge.get("value")
        return {**knowledge, "value": self._table(value)} if isinstance(value, str) else knowledge

    def _source_options(self, stage: str | None) -> dict[str, str]:
        return {"store": self._store.url, "name": self.name, **({"stage": stage} if stage else {})}

    def _reported(self, deadline: Deadline, unfinished: list[str]) -> StopReport:
        status = self._controller.status()
        batches = (status["last_batch"], status["published_batch"], status["saved_batch"])
        return StopReport(deadline.passed_seconds, *batches, tuple(unfinished))

    def _settle_migration(self, deadline: Deadline) -> list[str]:
        """Whoever stops a job need not know that its autoscaler began one: what has moved counts, the rest stays."""
        if (autoscaler := self._autoscaler) is not None:
            finish_within(deadline.left(_THREAD_SECONDS), autoscaler.stop, "stopping the autoscaler")
        migration = self._scaler.current
        if migration is None or migration.is_over:
            return []
        migration.cancel()
        with suppress(MigrationFailed):
            if not migration.wait(deadline.left(_SETTLE_SECONDS)):
                return ["The mini-migration under way did not finish; its tasks stay where they were committed last."]
        return []

    def _stop_stream(self, seconds: float) -> list[str]:
        if finish_within(seconds, self._stream.stop, "stopping Spark's query"):
            return []
        return [f"Spark's query did not stop within {seconds:.0f} s; the next run gets its batch again."]

    def _settle(self, deadline: Deadline) -> list[str]:
        """Let nodes apply what is committed, and save all state."""
        try:
            self._controller.wait_until_applied(self._controller.newest_batch, deadline.left())
            self._controller.snapshot(deadline.left())
        except (TimeoutError, ElasticError) as error:
            return [f"{error} {self._behind()}"]
        return []

    def _behind(self) -> str:
        found = self.status()
        waiting = ", ".join(f"{node.name} ({node.waiting_steps})" for node in found.nodes if node.waiting_steps)
        return (
            f"Batch {found.last_batch} is committed, batch {found.published_batch} published, "
            f"batch {found.saved_batch} saved. Nodes with pending steps: {waiting or 'none that reported it'}."
        )

    def _end(self, deadline: Deadline) -> list[str]:
        """End all that runs; what did not end in time. The job has ended then in any case."""
        with self._lock:
            if self._ended.is_set():
                return []
            unfinished: list[str] = []
            finish_within(deadline.left(_THREAD_SECONDS), self._ticking.stop, "stopping the ticks")
            finish_within(deadline.left(_THREAD_SECONDS), self._observing.stop, "stopping the monitor")
            if (autoscaler := self._autoscaler) is not None:
                finish_within(deadline.left(_THREAD_SECONDS), autoscaler.stop, "stopping the autoscaler")
            left = deadline.left()
            close = partial(self._controller.close, 0.7 * left)  # the sink and the store come after it
            if not finish_within(0.8 * left, lambda: unfinished.extend(close()), "ending the nodes"):
                unfinished.append(
                    f"The nodes did not end within {left:.0f} s; they end by themselves when they miss the driver."
                )
            unfinished += self._stop_follower(deadline.left(_SINK_SECONDS))
            finish_within(deadline.left(_THREAD_SECONDS), self._store.close, "closing the store")
            self._ended.set()
        _log.info(
            "job %s %s: batch=%d rows=%d", self.name, self._state(), self._controller.newest_batch, self._intake.rows
        )
        self._on_end(self)
        return unfinished

    def _stop_follower(self, seconds: float) -> list[str]:
        follower = self._follower
        if follower is None or follower.stop(timeout_seconds=seconds):
            return []
        return [f"The sink has not taken batch {follower.next_batch} and those after it; the next run delivers them."]

    def _watch(self) -> None:
        """Ends the job when its stream ends or its controller fails."""
        while not self._ended.wait(_WATCH_SECONDS):
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - else nobody would ever end the job
                self._controller.fail(error)

    def _note_failure(self) -> None:
        if self._controller.error is None and (error := self._stream.failure) is not None:
            self._controller.fail(error)

    def _look(self) -> None:
        self._note_failure()
        if self._controller.error is not None:
            deadline = Deadline(self._stop_seconds)
            with self._stream.ending():
                self._controller.stop_ingest(abandon=True)
                self._stop_stream(deadline.left(_QUERY_SECONDS))
                self._end(deadline)
        elif self._stream.has_ended:
            self._finish()

    def _finish(self) -> None:
        """The source has no more batches: when all are applied, delivered and saved, the job ends."""
        newest = self._controller.newest_batch
        try:
            self._controller.wait_until_applied(newest, _REMIND_SECONDS)
            self._wait_for_sink(newest)
            self._controller.snapshot(_REMIND_SECONDS)
        except JobStopped:
            return  # somebody else ended it
        except TimeoutError as error:
            _log.warning("the source of %s has ended, the job not yet: %s", self.name, error)
        else:
            self.stop()

    def _wait_for_sink(self, batch: int) -> None:
        follower = self._follower
        if follower is not None and not follower.wait(batch, _REMIND_SECONDS) and follower.error is None:
            raise TimeoutError(f"timed out after {_REMIND_SECONDS:g} s waiting for the sink to take batch {batch}.")

    def _raise_failure(self) -> None:
        if self._controller.error is not None:
            self._controller.check()
        self._stream.raise_failure()

    def _state(self) -> str:
        if self._controller.error is not None:
            return "failed"
        return "stopped" if self._ended.is_set() else "running"

    def _ask(self, slot: int, key: tuple[Any, ...]) -> Any:
        node = self._intake.controller.route().routing.owners(slot)[0]
        secret = self._intake.store.secret
        try:
            answer = self._nodes.call(node, "lookup", {"slot": slot, "key": sealed(key, secret)})
        except (KeyError, Refused, PeerUnavailable) as cause:
            raise StateUnavailable(task_of_slot(slot), node) from cause
        return unsealed(answer, secret)
