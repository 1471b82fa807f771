"""A node's working thread: it handles commands, takes steps, captures states, and waits when there is nothing to do.

Everything that touches state happens in this thread, so nothing needs a lock. What takes long (reading the log, loading
and saving states, writing output) happens in other threads, and comes back as a call in the inbox.

While a node has nothing but standbys, another thread, of low priority, works in its place: a thread may lower its
priority, but not raise it again.
"""

import logging
import os
import queue
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from elastic import threads
from elastic.core.ids import UnitId
from elastic.core.messages import (
    ApplyStep,
    DropUnits,
    FollowBatches,
    Heartbeat,
    InstallUnits,
    LeaveJob,
    Message,
    NodeFailed,
    NodeJoined,
    ReleaseUnits,
    TakeSnapshot,
    decode_message,
)
from elastic.core.ordering import InOrder
from elastic.core.pipeline import create_runners
from elastic.core.unit_host import LookupFailure, ReadyStep, UnitHost
from elastic.errors import StateUnavailable
from elastic.node.context import NodeContext
from elastic.node.heartbeat import NodeStatistics
from elastic.node.installations import Installations
from elastic.node.isolation import Isolation
from elastic.node.known_costs import KnownCosts
from elastic.node.link import DriverLink
from elastic.node.offers import Offers
from elastic.node.output import OutputStore, OutputWriter
from elastic.node.releases import Releases
from elastic.node.rows import RowFetcher, Rows, StagedRows
from elastic.node.running_step import StepMonitor
from elastic.node.snapshots import SnapshotTaker
from elastic.node.spare import SILENT_TIMEOUTS
from elastic.node.spec import NodeSpec
from elastic.node.state_loader import StateLoader
from elastic.node.throttle import CatchUpPace, CopyThrottle, lower_priority
from elastic.operators.calls import UnitState
from elastic.operators.context import Moment
from elastic.operators.stage_runner import StageRunner, StepOutput
from elastic.results import ResultLog
from elastic.routing import UnitChooser
from elastic.wire import FlightNetwork, Network, Refused
from elastic.wire.addresses import find_own_host
from elastic.wire.failures import failure_to_json
from elastic.wire.signing import seal, unseal
from storage.errors import ObjectMissing
from storage.state import InputLog, StateManager

if TYPE_CHECKING:
    from concurrent.futures import Future
    from queue import SimpleQueue
    from threading import Event

_log = logging.getLogger(__name__)
_LOOKUP_SECONDS = 8.0  # a step may be under way; less than callers wait
_CLOSE_SECONDS = 5.0  # for output on its way to a store that does not answer, and for reports
_STATE_THREADS = 16  # states in flight from other nodes or the store; one on loopback gains nothing beyond 4
_PACED_SHARE = 0.5  # of the time between two snapshots: after it, standbys catch up as fast as they can
_OVERDUE_EXIT_CODE = 75  # any that an operator would not choose


class NodeProcess:
    """One incarnation of a node, from `run` to its end.

    `exit_process` ends the process at once when a step does not end; a host that runs several nodes in one process
    passes another way, such as `kill`.
    """

    def __init__(
        self, spec: NodeSpec, network: Network | None = None, *, exit_process: Callable[[int], object] = os._exit
    ) -> None:
        network, settings = network or FlightNetwork(), spec.settings
        # As long as a node may take to start; after that the driver gives up waiting for it.
        store, secret = spec.store.open_when_available(settings.node_start_seconds), spec.store.secret
        self._exit_process = exit_process
        self._inbox: SimpleQueue[Callable[[], None]] = threads.Queue()
        self._leaving: str | None = None
        self._leaving_since: float | None = None
        self._is_killed = False
        self._cause = ""  # of what the working thread is doing
        self._turn = 0
        self._waiting_steps: set[int] = set()  # numbers of `ApplyStep` commands in the inbox
        self._commands: InOrder[Message] = InOrder()
        self._driver = network.connect(spec.driver, spec.token)
        self._link = DriverLink(
            self._driver,
            self._heartbeat,
            self._leave,
            heartbeat_seconds=settings.heartbeat_seconds,
            silence_seconds=SILENT_TIMEOUTS * settings.node_timeout_seconds,
        )
        context = NodeContext(spec, store, network, threads.Event(), self._inbox.put, self._link.report, self._fail)
        self._context = context
        self._runners = create_runners(spec.pipeline, settings.on_error)
        self._isolation = Isolation(spec.node, spec.pipeline, settings.step_timeout_seconds)
        self._host = UnitHost(self._runners, self._isolate)
        self._monitor = StepMonitor(
            spec.node, spec.incarnation, report_now=self._link.report_now, report=self._link.report
        )
        log = InputLog(store, secret, spec.job, compression=settings.compression)
        self._staged = StagedRows(settings.staging_bytes)
        self._fetcher = RowFetcher(context, self._staged, log)
        self._statistics = NodeStatistics(spec, self._runners, self._host, self._staged, self._monitor)
        self._state_pool = threads.ThreadPool(_STATE_THREADS, "states")
        manager = StateManager(store, secret, spec.job, compression=settings.compression, executor=self._state_pool)
        self._background_pool = threads.ThreadPool(1, "states-background", initializer=lower_priority)
        background = StateManager(
            store, secret, spec.job, compression=settings.compression, executor=self._background_pool
        )
        throttle = CopyThrottle(settings.copy_bytes_per_second, context.closing)
        self._loader = StateLoader(context, manager, background, throttle)
        self._installations = Installations(context, self._host, self._loader, self._monitor)
        self._catch_up_pace = CatchUpPace(_PACED_SHARE * settings.snapshot_seconds)
        self._can_lower_priority = self._is_low_priority = False  # of the working thread
        self._reserve_pool = threads.ThreadPool(1, "reserve", initializer=self._lower_priority)
        self._snapshots = SnapshotTaker(context, self._host, manager)
        offers = Offers()
        self._releases = Releases(context, self._host, manager, offers)
        results = ResultLog(store, secret, spec.job, compression=settings.compression)
        chooser, self._known_costs = UnitChooser(settings.key_interval_seconds), KnownCosts()
        outputs = OutputStore(self._runners, log, results, spec.keeps_results, chooser, self._known_costs)
        self._writer = OutputWriter(context, outputs)
        self._handlers: dict[type[Message], Callable[[Any], object]] = {
            InstallUnits: self._installations.begin,
            ApplyStep: self._add_step,
            FollowBatches: self._host.follow,
            TakeSnapshot: self._snapshots.begin,
            ReleaseUnits: self._releases.begin,
            DropUnits: self._releases.drop,
            LeaveJob: lambda _: self._leave("the driver asked it to leave"),
        }
        actions = {"command": self._receive, "lookup": self._lookup, "partials": self._find_partials}
        host = spec.host or find_own_host(spec.driver)
        self._left = threads.Event()
        self._endpoint = network.listen(host, spec.token, actions, self._staged.upload, offers.download, self._hold)

    def run(self) -> str:
        """Work until the node leaves, and return why. Raises what an operator raises in its `open`."""
        context, opened = self._context, list[StageRunner]()
        try:
            for runner in self._runners:
                runner.open()
                opened.append(runner)
        except BaseException:
            self._close(opened)
            raise
        self._link.start()
        address, executor = self._endpoint.address, context.spec.executor
        context.report(NodeJoined(context.node, context.incarnation, address, os.getpid(), executor))
        try:
            while self._leaving is None:
                self._work_while(in_reserve=False)
                if self._leaving is None:
                    self._reserve_pool.submit(self._work_in_reserve).result()
        except Exception as error:  # noqa: BLE001 - the job must know what an operator or a damaged object raises
            self._report_failure(error)
        finally:
            self._close(opened)
        return str(self._leaving)

    def kill(self) -> None:
        """Stop at once without another report, as `kill -9` would; `run` returns when its current call does.

        For hosts that run a node in a thread, which cannot be killed.
        """
        self._is_killed = True
        self._link.close(flush_seconds=0.0)
        self._context.closing.set()
        self._writer.discard()
        self._endpoint.close()
        self._leave("it was killed")

    def _lower_priority(self) -> None:
        self._can_lower_priority = lower_priority()

    def _work_in_reserve(self) -> None:
        self._is_low_priority = self._can_lower_priority
        self._work_while(in_reserve=True)
        self._is_low_priority = False

    def _work_while(self, *, in_reserve: bool) -> None:
        """Work until the node leaves, or its role changes."""
        while self._leaving is None and self._is_in_reserve == in_reserve:
            self._handle_inbox(wait=not self._work())

    @property
    def _is_in_reserve(self) -> bool:
        """Whether all units here are standbys, as on a node that replaces a lost one or is about to join.

        No result waits for such a node, and on a busy machine its work would delay the nodes that serve. Not while its
        standbys are overdue: at low priority they might never catch up.
        """
        return self._host.only_follows and not self._catch_up_pace.is_overdue

    def _handle_inbox(self, wait: bool) -> None:
        """Run all calls in the inbox; wait for one first if there is nothing else to do, not even after a pause."""
        if wait:
            try:
                with self._statistics.busy.pause():
                    call = self._inbox.get(timeout=self._catch_up_pace.pause_seconds or None)
            except queue.Empty:
                return
            call()
        while not self._inbox.empty():
            self._inbox.get()()

    def _work(self) -> bool:
        """Do one thing; return whether there was one."""
        worked = self._take_one(self._host.ready_steps()) or self._follow_one()
        decoded = self._installations.advance()
        released = self._releases.advance()
        return self._snapshots.advance() or released or decoded or worked

    def _take_one(self, steps: Sequence[ReadyStep]) -> bool:
        """Take the oldest and the newest step in turns: units that replay must not delay the others.

        Standbys that are far behind take their turns too, or they would never catch up on a node that is always busy.
        """
        self._turn += 1
        if self._turn % 2 and self._is_far_behind and self._follow_one():
            return True
        for ready in steps if self._turn % 2 else reversed(steps):
            found = self._fetcher.fetch(ready, self._host.steps_after(ready.step.position))
            if found is not None:
                self._take(*found)
                return True
        return False

    def _follow_one(self) -> bool:
        """Let standbys take their oldest step, if its rows are here: results wait for no standby."""
        if self._catch_up_pace.pause_seconds or self._installations.has_arrived_states:
            return False
        for ready in self._host.ready_steps(standby=True)[:1]:
            try:
                found = self._fetcher.fetch(ready, self._host.steps_to_follow(ready.step.position))
            except ObjectMissing:
                self._installations.drop_standbys(ready.units)
                return True
            if found is not None:
                began = threads.monotonic()
                self._take(*found)
                self._catch_up_pace.note_step(
                    threads.monotonic() - began, is_behind=self._is_far_behind, pauses=not self._is_low_priority
                )
                return True
        return False

    @property
    def _is_far_behind(self) -> bool:
        """Whether some standby here lacks more batches than those in flight: it is catching up."""
        return self._host.standby_lag > self._context.settings.max_pending_batches

    def _take(self, ready: ReadyStep, rows: Rows) -> None:
        self._cause = ready.cause
        with self._monitor.watch_step(ready):
            result = self._host.take(ready, rows, self._monitor.watch_unit)
        with self._statistics.busy.pause():  # more nodes would not make the store faster
            self._writer.put(result)
        done = self._host.settled_batch()
        self._staged.forget(done)
        self._fetcher.forget(done)

    def _isolate(
        self, runner: StageRunner, state: UnitState, slices: Sequence[pa.Table], moment: Moment
    ) -> tuple[UnitState, StepOutput]:
        with self._monitor.watch_isolated():
            return self._isolation(runner, state, slices, moment)

    def _receive(self, document: dict[str, Any]) -> str:
        """Accept a command; the working thread handles it, in the order in which the driver sent it."""
        number, message = document["number"], decode_message(document)
        if isinstance(message, ApplyStep):
            self._waiting_steps.add(number)
        elif isinstance(message, LeaveJob):
            self._writer.stop_retrying()  # the working thread may be waiting for it, and would not see the command
        self._inbox.put(partial(self._handle, number, message))
        return "accepted"

    def _handle(self, number: int, message: Message) -> None:
        self._waiting_steps.discard(number)
        for ready in self._commands.accept(number, message):
            _log.debug("%s handles %s [%s]", self._context.node, type(ready).__name__, ready.cause)
            self._cause = ready.cause
            self._handlers[type(ready)](ready)

    def _add_step(self, message: ApplyStep) -> None:
        self._known_costs.learn(message.costs)
        self._host.add_step(message)

    def _hold(self, document: dict[str, Any]) -> "Event":
        """Let the driver hold a call open for as long as this incarnation lives; see `elastic.driver.liveness`."""
        if document["incarnation"] != self._context.incarnation:
            raise Refused(f"{document['incarnation']} does not listen here, but {self._context.incarnation}")
        return self._left

    def _lookup(self, document: dict[str, Any]) -> Any:
        """Answer a lookup of a key in one unit, with or without partials of other units."""
        unit, stale = UnitId.from_number(document["unit"]), document.get("stale", False)
        key, partials = unseal(document["key"], self._context.secret)
        return self._answer(lambda: tuple(self._host.lookup(unit, key, partials, stale=stale)))

    def _find_partials(self, document: dict[str, Any]) -> Any:
        """Answer what every unit of a partial stage on this node holds of a key."""
        stage, key = document["stage"], unseal(document["key"], self._context.secret)
        return self._answer(
            lambda: [tuple(self._host.lookup(unit, key)) for unit in self._host.units_of_stage(stage)],
        )

    def _answer(self, look_up: Callable[[], Any]) -> str:
        """Return the sealed result of a call in the working thread, between two steps; a `LookupFailure` if it fails.

        It is sealed there too, because a result may be part of a state that the next step changes.
        """
        answer: Future[str] = threads.Future()
        secret = self._context.secret

        def call() -> None:
            try:
                answer.set_result(seal(look_up(), secret))
            except StateUnavailable as error:
                answer.set_exception(Refused(str(error)))
            except Exception as error:  # noqa: BLE001 - no error of a query may end the node
                answer.set_result(seal(LookupFailure(repr(error)), secret))

        self._inbox.put(call)
        return answer.result(timeout=_LOOKUP_SECONDS)

    def _heartbeat(self) -> Heartbeat:
        self._exit_if_overdue()
        self._inbox.put(self._statistics.measure)
        return self._statistics.heartbeat(len(self._waiting_steps))

    def _exit_if_overdue(self) -> None:
        """End the process when its step takes too long: nothing else can end a call of the operator."""
        settings, leaving_since = self._context.settings, self._leaving_since
        if leaving_since is not None and self._monitor.find_overdue(settings.node_timeout_seconds) is not None:
            if threads.monotonic() - leaving_since > settings.node_timeout_seconds:
                _log.error("%s ends its process in the middle of a step: %s", self._context.node, self._leaving)
                self._exit_process(_OVERDUE_EXIT_CODE)
            return
        overdue = self._monitor.find_overdue(settings.step_timeout_seconds)
        if overdue is None:
            return
        _log.error("%s ends its process: a step is overdue: %s [%s]", self._context.node, overdue, overdue.cause)
        if not self._link.report_once(overdue):
            _log.error("%s could not report the step to the driver [%s]", self._context.node, overdue.cause)
        self._exit_process(_OVERDUE_EXIT_CODE)

    def _leave(self, why: str) -> None:
        self._leaving = self._leaving or why
        self._leaving_since = self._leaving_since or threads.monotonic()
        self._context.wake()

    def _fail(self, error: BaseException, cause: str = "") -> None:
        """Raise the error in the working thread."""

        def fail() -> None:
            self._cause = cause
            raise error

        self._inbox.put(fail)

    def _report_failure(self, error: Exception) -> None:
        context, cause = self._context, self._cause
        _log.error("%s cannot continue [%s]: %s", context.node, cause, error, exc_info=error)
        context.report(NodeFailed(context.node, context.incarnation, failure_to_json(error), cause=cause))
        self._leaving = f"failed: {error}"

    def _close(self, opened: Sequence[StageRunner]) -> None:
        flush_seconds = 0.0 if self._is_killed else _CLOSE_SECONDS
        self._context.closing.set()
        if not self._is_killed:
            self._left.set()
            self._endpoint.close()
        self._writer.close(flush_seconds)
        self._link.close(flush_seconds)
        for part in (self._fetcher, self._loader, self._releases, self._snapshots):
            part.close()
        for pool in (self._state_pool, self._background_pool, self._reserve_pool):
            pool.shutdown(wait=False, cancel_futures=True)
        self._driver.close()
        for runner in opened:
            runner.close()
        self._context.store.close()
        _log.info("%s leaves: %s", self._context.node, self._leaving)
