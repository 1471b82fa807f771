"""A running job: the handle that its user holds."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from elastic import threads
from elastic.control import (
    LEVELS,
    OBSERVE_SECONDS,
    Autoscaler,
    AutoscalerSettings,
    KeyRequest,
    LevelPlans,
    Load,
    Migration,
    Monitor,
    PeriodicThread,
    Policy,
    Scaler,
    ScaleRequest,
    TaskMigration,
    make_requests,
)
from elastic.core.pipeline import select_counted_stages
from elastic.deadlines import Deadline
from elastic.driver.context import JobContext
from elastic.driver.driver import Driver
from elastic.errors import (
    AutoscalerRunning,
    ElasticError,
    InvalidRequest,
    KeysNotCounted,
    SinkFailed,
    StreamFailed,
)
from elastic.ingest.batch_ingest import BatchIngest
from elastic.job.cluster import JobCluster
from elastic.job.html import job_to_html
from elastic.job.keys import KeyStatus, KeyTableStatus, list_key_tables, list_keys
from elastic.job.queries import StateQueries
from elastic.job.shutdown import RunningParts, Shutdown, StopReport
from elastic.job.status import JobStatus
from elastic.job.stream import Stream
from elastic.job.ticker import Ticker
from elastic.numbers import as_int
from elastic.operators.graph import JobGraph
from elastic.operators.quarantine import QUARANTINE
from elastic.results import ORIGIN, Description, ResultLog
from elastic.results.sink_writers import SinkWriters
from elastic.results.stage_sinks import StageSinks
from elastic.routing import Routing
from migration import Ownership, Plan, Workload
from storage.journal import JobJournal, JournalPage

if TYPE_CHECKING:
    from migration import KeyPlan, ValueFunction  # bring compiled code with them

_log = logging.getLogger(__name__)


class Job:
    """One life of a job, from its start until `stop` or its failure. Any thread may call it."""

    def __init__(
        self,
        context: JobContext,
        driver: Driver,
        ingest: BatchIngest,
        stream: Stream,
        sinks: StageSinks,
        results: ResultLog | None,
        sink_writers: SinkWriters,
        *,
        check_room: Callable[[int], None],
        on_end: Callable[["Job"], None],
    ) -> None:
        self._context = context
        self._driver = driver
        self._ingest = ingest
        self._stream = stream
        self._sinks = sinks
        self._results = results
        self._sink_writers = sink_writers
        self._journal = JobJournal(context.store, context.name)
        self._cluster = cluster = JobCluster(context, driver, ingest, stream, check_room)
        self._monitor = monitor = Monitor(context.pipeline.tasks)
        self._scaler = Scaler(cluster, monitor, self._journal)
        self._observing = PeriodicThread(f"monitor-{context.name}", OBSERVE_SECONDS, lambda: monitor.poll(cluster))
        ticker = Ticker(driver, ingest, is_on=context.settings.empty_batches == "on")
        self._ticking = PeriodicThread(f"ticks-{context.name}", context.settings.heartbeat_seconds, ticker.poll)
        self._parts = RunningParts(driver, ingest, stream, self._scaler, sink_writers, (self._ticking, self._observing))
        self._shutdown = Shutdown(context, self._parts, lambda: on_end(self))
        self._autoscaling = threads.Lock()
        self._queries = StateQueries(context, driver)

    def start(self) -> None:
        """Start the nodes, then the stream; called once."""
        began, view, name = threads.monotonic(), self._driver.view, self.name
        nodes = [node.name for node in view.nodes]
        verb = "starts" if view.newest_batch < 0 else "resumes"
        facts = (name, verb, len(nodes), self.pipeline.tasks, view.newest_batch, self._context.store.url)
        _log.info("job %s %s: nodes=%d tasks=%d batch=%d store=%s", *facts)
        try:
            self._driver.start()
            self._driver.wait_until_serving(nodes, self._context.settings.node_start_seconds)
            self._observing.start()
            self._sink_writers.start()
            self._stream.start()
            self._ticking.start()
        except BaseException:
            self._shutdown.end(Deadline(self._context.settings.stop_seconds))
            raise
        self._shutdown.watch()
        _log.info("job %s runs: nodes=%d seconds=%.1f", name, len(nodes), threads.monotonic() - began)

    @property
    def name(self) -> str:
        return self._context.name

    @property
    def pipeline(self) -> Description:
        return self._context.pipeline

    def graph(self) -> JobGraph:
        """Return the inputs, the stages and the sinks, and what flows between them; it draws itself in notebooks."""
        return replace(self.pipeline.graph, sinks=self._sinks.drawn)

    # What it is doing.

    def status(self) -> JobStatus:
        return JobStatus.of(self.name, self._state(), self._driver.view, self._ingest.rows, self._sink_writers.failure)

    def batches(self) -> tuple[int, int]:
        """Return the newest committed batch and the newest published one: `status` without its cost."""
        view = self._driver.view
        return view.newest_batch, view.published_batch

    def load(self, seconds: float = 60.0) -> Load:
        """Return how busy the nodes were in the last seconds, 60 at most, and how much is pending."""
        return self._monitor.load(seconds)

    def workload(self) -> Workload:
        """Return work and state size of every task, measured over the last minute: what plans are made from."""
        return self._scaler.workload()

    def keys(self, top: int = 20, stage: str | None = None) -> list[KeyStatus]:
        """Return the heaviest keys of the last interval, of one stage or of all whose keys are counted.

        Empty until the first interval is over. Raises `KeysNotCounted` if the setting `key_statistics` excludes them.
        """
        counted = select_counted_stages(self.pipeline, self._context.settings.key_statistics)
        stages = range(len(self.pipeline.stages)) if stage is None else [self.pipeline.stage_number(stage)]
        wanted = [number for number in stages if number in counted]
        if not wanted:
            raise KeysNotCounted(self.pipeline.stages[number].name for number in stages)
        if (count := as_int(top)) is None or count < 1:
            raise InvalidRequest(f"top={top!r} is invalid. Give a whole number above zero.")
        return list_keys(self._driver.view, self.pipeline, wanted, count)

    def key_tables(self) -> list[KeyTableStatus]:
        """Return the key table of every stage that is grouped by table, as committed last."""
        return list_key_tables(self._driver.view.routing.groupings, self.pipeline)

    def assignment(self) -> Ownership:
        """Return which node owns which tasks, as committed last."""
        return self._cluster.assignment()

    def routing(self) -> Routing:
        """Return how rows find their unit and which node owns it: groupings by stage and assignment, as committed."""
        return self._driver.view.routing

    @property
    def node_count(self) -> int:
        """Number of nodes that hold a task slot, or are about to."""
        return max(len(self.assignment().nodes), len(self._driver.view.nodes))

    @property
    def slot_count(self) -> int:
        """Number of task slots that nodes and spares hold, or are about to."""
        return self.node_count + self._context.settings.spares

    def story(self) -> list[str]:
        """Return the newest events that the driver handled, and what it decided about each."""
        return self._driver.story()

    def journal(self) -> list[dict[str, Any]]:
        """Return the migrations and decisions of all runs of this job, oldest first."""
        with self._open_journal() as journal:
            return list(journal.read())

    def journal_page(self, limit: int, before: int | None = None) -> JournalPage:
        """Return the journal in pages, newest first."""
        with self._open_journal() as journal:
            return journal.page(limit, before)

    # What it produces.

    def collected(self, stage: str | None = None) -> pa.Table:
        """Return all results that the `memory` sink holds; `stage` says which one, if several stages have one."""
        return self._sinks.find_memory(stage).table()

    def quarantined(self) -> pa.Table:
        """Return the rows that operators failed on, with their errors, of all batches whose results are kept."""
        if self._results is None:
            raise ElasticError('a job without results keeps no failed rows. Run it with sink="store".')
        found = [self._results.read_quarantined(batch) for batch in self._results.poll()]
        filled = [rows for rows in found if rows.num_rows]
        return pa.concat_tables(filled) if filled else pa.schema([*QUARANTINE, *ORIGIN]).empty_table()

    def state(self, key: Any, stage: str | None = None, *, fresh: bool = False, stale: bool = False) -> Any:
        """Return what the operator answers for a key now, after the steps that its node has taken.

        While the state moves or is being restored this waits, `query_seconds` at most.
        Behind a partial stage that is as of the last time that its tasks emitted partials; `fresh` adds what they hold.
        `stale` allows a standby to answer, as of a batch that was published lately, if the node that owns the key does
        not.
        """
        if fresh and stale:
            raise InvalidRequest("fresh and stale exclude each other. Give one of them.")
        number = self.pipeline.stage_number(stage)
        if fresh:
            return self._queries.look_up_fresh(key, number)
        return self._queries.look_up(key, number, stale=stale)

    def snapshot(self, seconds: float = 60.0) -> int:
        """Save all state that changed; return the newest batch that every saved state includes."""
        return self._driver.snapshot(seconds)

    def process_all_available(self) -> None:
        """Wait until everything that the source has now is applied and its results are published, for tests and demos.

        Raises `SinkFailed` if results cannot reach a sink.
        """
        try:
            self._stream.process_all_available()
        except StreamFailed:
            self._driver.views.check()  # what a node raised ends the stream too, and is the reason
            raise
        self._raise_failure()
        newest = self._driver.view.newest_batch
        self._driver.wait_until_published(newest)
        self._sink_writers.wait(newest)
        if (failure := self._sink_writers.failure) is not None:
            raise SinkFailed(self.name, failure) from self._sink_writers.error

    # How it scales.

    def scale(
        self,
        nodes: int | None = None,
        *,
        add: int | None = None,
        remove: Sequence[str] = (),
        strategy: str = ScaleRequest.strategy,
        tau: float = ScaleRequest.tau,
        mode: str = ScaleRequest.mode,
        tasks_per_node: int | None = ScaleRequest.tasks_per_node,
        bytes_per_node: float | None = ScaleRequest.bytes_per_node,
        transfer: str = ScaleRequest.transfer,
        relax: bool = ScaleRequest.relax,
        queue: bool = False,
        **knowledge: Any,
    ) -> TaskMigration:
        """Change the number of nodes while the stream runs: to `nodes`, by `add` more, or by removing the nodes named
        in `remove`.

        Returns when the migration has begun; see `Migration.wait`. A second request is refused while one is under way,
        or waits with `queue`. States go through the store, or with `transfer="direct"` from node to node. `knowledge`
        is what the strategy needs, as in `migration.plan`; `value` may also be the name of a value table in the job's
        store. If no assignment is balanced, the plan takes the smallest feasible cap and says so; `relax=False` raises
        `Infeasible` instead. `TooFewSlots` is raised if Spark has no room for the nodes; nothing was started then. See
        `plan` for a dry run.
        """
        options = {
            "strategy": strategy,
            "tau": tau,
            "mode": mode,
            "tasks_per_node": tasks_per_node,
            "bytes_per_node": bytes_per_node,
            "transfer": transfer,
            "relax": relax,
        }
        request = self._scale_request(nodes, add, remove, {**options, **knowledge})
        self._driver.views.check()
        return self._scaler.scale(request, queue=queue)

    def rebalance(self, level: str = "tasks", *, queue: bool = False, **how: Any) -> Migration:
        """Balance the work of the nodes that there are, while the stream runs.

        - `level="tasks"` moves whole tasks until no node carries more than `tau` allows; `how` is as for `scale`.
        - `level="keys"` moves single keys of a stage with `grouping="table"` until no node carries more than 1 +
          `theta` times the mean work; `how` has the fields of `elastic.control.KeyRequest`.
        - `level="auto"` plans both with `theta`, and carries out the cheaper one that balances the nodes; its plan says
          why in its `note`. `how` has options of both; `key_strategy` is the strategy of the keys.

        Returns when the migration has begun; `queue` is as for `scale`. See `plan_keys` and `plan_levels` for dry runs.
        """
        if level not in tuple(LEVELS):
            raise InvalidRequest(f"unknown level {level!r}. Use one of {', '.join(LEVELS)}.")
        self._driver.views.check()
        if level == "tasks":
            return self.scale(queue=queue, **how)
        if level == "keys":
            return self._scaler.move_keys(_key_request(how), queue=queue)
        return self._scaler.balance(*self._level_requests(how), queue=queue)

    def split(self, split: str = "head", stage: str | None = None) -> None:
        """Change which keys a partial stage splits while the stream runs, as in `partial`: "all", "head" or "none".

        No state moves; returns when the change is committed. `stage` names the operator, if there are several.
        """
        self._driver.views.check()
        self._cluster.split_keys(stage, split)

    def plan_keys(self, **how: Any) -> "KeyPlan":
        """Return what `rebalance(level="keys")` would do with the same arguments; changes nothing."""
        return self._scaler.plan_keys(_key_request(how))

    def plan_levels(self, **how: Any) -> LevelPlans:
        """Return the plans that `rebalance(level="auto")` would choose from, and its choice; changes nothing."""
        return self._scaler.plan_levels(*self._level_requests(how))

    def plan(self, nodes: int | None = None, *, add: int | None = None, remove: Sequence[str] = (), **how: Any) -> Plan:
        """Return what `scale` would do with the same arguments; changes nothing."""
        return self._scaler.plan(self._scale_request(nodes, add, remove, how))

    @property
    def migration(self) -> Migration | None:
        """The latest migration of this life, over or not."""
        return self._scaler.current

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

        With `recommend_only` it only records what it would do. `how` is what else
        `AutoscalerSettings.from_arguments` takes, such as `window_seconds` and `cool_down_seconds`, and the options of
        the policy.
        """
        settings = AutoscalerSettings.from_arguments(
            self.pipeline.tasks, policy=policy, ceiling=ceiling, floor=floor, recommend_only=recommend_only, **how
        )
        self._cluster.check_room(settings.ceiling)
        return self.begin_autoscaling(settings)

    def begin_autoscaling(self, settings: AutoscalerSettings) -> Autoscaler:
        """Start an autoscaler with settings that were checked."""
        with self._autoscaling:
            self._driver.views.check()
            if self.autoscaler is not None and not self.autoscaler.is_stopped:
                raise AutoscalerRunning(self.name)
            autoscaler = Autoscaler(settings, self._cluster, self._monitor, self._scaler, self._journal)
            self._parts.autoscaler = autoscaler
            autoscaler.start()
            return autoscaler

    @property
    def autoscaler(self) -> Autoscaler | None:
        """The latest autoscaler of this life, stopped or not."""
        return self._parts.autoscaler

    # How it ends.

    def await_termination(self, seconds: float | None = None) -> bool:
        """Wait until the job ends; False if it has not in time. Raises what ended it, if that was a failure."""
        ended = self._shutdown.wait(seconds)
        self._raise_failure()
        return ended

    def stop(self, *, drain: bool = True, timeout_seconds: float | None = None) -> StopReport:
        """Stop the stream, let nodes finish what was ingested, save the state, end the nodes.

        Returns within `timeout_seconds`, by default the setting `stop_seconds`, even if something hangs: an operator,
        the store, a sink or Spark. The report says what was left undone, and every such thing is logged as a warning;
        the next run repeats it. Without `drain` nothing is waited for but the end of the nodes. A second call returns
        at once.
        """
        return self._shutdown.stop(drain=drain, timeout_seconds=timeout_seconds)

    def __repr__(self) -> str:
        nodes, batch = len(self.assignment().nodes), self._driver.view.newest_batch
        facts = f"nodes={nodes}, batch={batch}, rows={self._ingest.rows}"
        return f"{type(self).__name__}({self.name!r}, {self._state()}, {facts})"

    def _repr_html_(self) -> str:
        """Return what notebooks show."""
        return job_to_html(self.status(), self.assignment(), self.graph())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @contextmanager
    def _open_journal(self) -> Iterator[JobJournal]:
        """Open the journal; the store of a job that has ended is closed, so another one is opened."""
        if not self._shutdown.has_ended:
            yield self._journal
            return
        with closing(self._context.access.open()) as store:
            yield JobJournal(store, self.name)

    def _scale_request(
        self, nodes: int | None, add: int | None, remove: Sequence[str], how: Mapping[str, Any]
    ) -> ScaleRequest:
        options = {name: how[name] for name in ScaleRequest.option_names() if name in how}
        knowledge = {name: value for name, value in how.items() if name not in options}
        if isinstance(value := knowledge.get("value"), str):
            knowledge["value"] = self._read_value_table(value)
        return ScaleRequest(nodes, add, tuple(remove), **options, knowledge=knowledge)

    def _level_requests(self, how: Mapping[str, Any]) -> tuple[ScaleRequest, KeyRequest]:
        tasks, keys = make_requests(how)
        if keys.stage is not None:
            self.pipeline.stage_number(keys.stage)  # raises: a wrong name must not decide for the other level
        return tasks, keys

    def _read_value_table(self, name: str) -> "ValueFunction":
        # Imported late: it brings a compiler with it, and few jobs plan with foresight.
        from mdp import ValueTable

        return ValueTable.read(self._context.store, name, secret=self._context.secret)

    def _raise_failure(self) -> None:
        if self._driver.views.error is not None:
            self._driver.views.check()
        self._stream.raise_failure()

    def _state(self) -> str:
        if self._driver.views.error is not None:
            return "failed"
        return "stopped" if self._shutdown.has_ended else "running"


def _key_request(how: Mapping[str, Any]) -> KeyRequest:
    unknown = sorted(set(how) - set(KeyRequest.option_names()))
    if unknown:
        names = ", ".join(KeyRequest.option_names())
        raise InvalidRequest(f"{unknown[0]} is not an option of level 'keys'. Use {names}.")
    return KeyRequest(**how)
