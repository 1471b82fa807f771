"""A node's one working thread: it hears, takes steps, captures states, and waits when there is nothing to do.

Everything that touches state happens here, so nothing needs a lock. What takes long (reading the log, loading and
saving states, writing results) happens in other threads, and comes back as a call in the inbox.
"""

import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import pyarrow as pa

from elastic.errors import StateUnavailable
from elastic.operators.calls import UnitState
from elastic.operators.execution import StageRunner, StepOutput
from elastic.operators.moment import Moment
from elastic.results import ResultLog
from elastic.runtime.node.busy import BusyClock
from elastic.runtime.node.catching_up import CatchingUp
from elastic.runtime.node.fetching import Fetcher, Rows
from elastic.runtime.node.heavy_keys import HeavyKeys
from elastic.runtime.node.isolation import Isolation
from elastic.runtime.node.loading import Loader
from elastic.runtime.node.offering import Offers
from elastic.runtime.node.outputs import Outputs
from elastic.runtime.node.releasing import Releases
from elastic.runtime.node.reports import Reports
from elastic.runtime.node.saver import Saver
from elastic.runtime.node.saving import Snapshots
from elastic.runtime.node.specification import NodeSpecification
from elastic.runtime.node.staging import Staging
from elastic.runtime.node.stepping import Steps
from elastic.runtime.node.writing import Writer
from elastic.runtime.pipeline import runners
from elastic.runtime.protocol import (
    Adopt,
    Apply,
    Failed,
    Forget,
    Held,
    Host,
    Installed,
    Joined,
    Release,
    Released,
    Snapshot,
    Stored,
    Work,
)
from elastic.runtime.protocol.ordering import InOrder
from elastic.runtime.stopping import finish_within
from elastic.runtime.wire import Endpoint, Peer, PeerUnavailable, Refused
from elastic.runtime.wire.addresses import own_host
from elastic.runtime.wire.failures import failure_to_json
from elastic.runtime.wire.sealing import sealed, unsealed
from storage.state import InputLog, StateManager

_log = logging.getLogger(__name__)
_LOOKUP_SECONDS = 8.0  # a step may be under way; less than callers wait
_CLOSE_SECONDS = 5.0  # for states on their way to a store that does not answer
_GENTLE = 0.5  # of the time between two snapshots: after it, a node saves what is left as fast as it can
_OVERDUE_EXIT_CODE = 75  # any that an operator would not choose
_SILENCE = 6  # node timeouts without an answer after which the controller counts as gone


class NodeProcess:
    """One incarnation of a node, from `run` to its end."""

    def __init__(self, spec: NodeSpecification) -> None:
        self._spec = spec
        settings = spec.settings
        # As long as a node may take to start; then it is another one's turn to wait.
        store, secret = spec.store.open_patiently(settings.node_start_seconds), spec.store.secret
        log = InputLog(store, secret, spec.job, compression=settings.compression)
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._leaving: str | None = None
        self._leaving_since: float | None = None
        self._turn = 0
        self._busy = BusyClock()
        self._statistics: dict[str, Any] = {}
        self._catching_up: CatchingUp | None = None
        self._heavy_keys = HeavyKeys.asked_for(spec)
        self._store = store
        self._runners = runners(spec.pipeline, settings.on_error)
        self._isolation = Isolation(spec.node, spec.pipeline, settings.step_timeout_seconds)
        self._host = Host(self._runners, self._isolate)
        self._staging = Staging(settings.staging_bytes)
        self._fetcher = Fetcher(self._staging, log, settings.store_patience_seconds, self._wake)
        self._manager = StateManager(store, secret, spec.job, compression=settings.compression)
        self._controller = Peer(spec.controller, spec.token)
        self._reports = Reports(
            self._controller,
            self._pulse,
            self._leave,
            pulse_seconds=settings.heartbeat_seconds,
            silence_seconds=_SILENCE * settings.node_timeout_seconds,
        )
        names = (spec.node, spec.incarnation)
        self._steps = Steps(names, self._reports.tell, self._reports.send)
        self._unheard: set[int] = set()  # numbers of `Apply` commands in the inbox
        # Somebody waits for a release; a snapshot should be felt as little as possible.
        gentle_seconds = _GENTLE * settings.snapshot_seconds
        saving = Saver(self._manager, spec.routing, self._wake, "save", at_once=1, gentle_seconds=gentle_seconds)
        releasing = Saver(self._manager, spec.routing, self._wake, "release", at_once=4)
        self._savers = (saving, releasing)
        offers = Offers()
        self._snapshots = Snapshots(
            self._host, saving, lambda saved: self._reports.send("saved", saved.to_json()), names
        )
        self._releases = Releases(
            self._host,
            releasing,
            self._manager,
            offers,
            self._released,
            names,
            settings.store_patience_seconds,
            self._wake,
        )
        results = ResultLog(store, secret, spec.job, compression=settings.compression)
        outputs = Outputs(self._runners, spec.routing, log, results, spec.keeps_results)
        self._writer = Writer(outputs, self._reports, names, settings.store_patience_seconds, self._fail_later)
        self._loader = Loader(
            self._manager, spec.token, settings.store_patience_seconds, self._inbox.put, self._fail_later
        )
        self._endpoint = Endpoint(
            spec.host or own_host(spec.controller),
            spec.token,
            {
                "command": self._command,
                "lookup": self._lookup,
            },
            self._staging.upload,
            offers.download,
        )
        self._commands: InOrder[Callable[[], object]] = InOrder()
        self._handlers: dict[str, Callable[[dict[str, Any]], object]] = {
            "adopt": lambda document: self._adopt(Adopt.from_json(document)),
            "apply": lambda document: self._host.apply(Apply.from_json(document)),
            "snapshot": lambda document: self._snapshots.begin(Snapshot.from_json(document)),
            "release": lambda document: self._releases.begin(Release.from_json(document)),
            "forget": lambda document: self._releases.forget(Forget.from_json(document)),
            "stop": lambda _: self._leave("told to stop"),
        }

    def run(self) -> str:
        """Work until told to leave; why it left. Raises what an operator raises in its `open`."""
        spec = self._spec
        opened: list[StageRunner] = []
        try:
            for runner in self._runners:
                runner.open()
                opened.append(runner)
        except BaseException:
            self._close(opened)
            raise
        self._reports.start()
        self._reports.send("joined", Joined(spec.node, spec.incarnation, self._endpoint.address, os.getpid()).to_json())
        try:
            while self._leaving is None:
                self._hear(wait=not self._work())
        except Exception as error:  # noqa: BLE001 - whatever an operator or a damaged object raises, the job must know
            self._report_failure(error)
        finally:
            self._close(opened)
        return str(self._leaving)

    def _hear(self, wait: bool) -> None:
        """Take all that is in the inbox; wait for something first if there is nothing else to do."""
        if wait:
            with self._busy.waiting():
                heard = self._inbox.get()
            heard()
        while not self._inbox.empty():
            self._inbox.get()()

    def _work(self) -> bool:
        """Do one thing; whether there was one."""
        worked = self._take_one(self._host.works())
        if self._catching_up is not None and self._catching_up.is_over(self._host):
            self._steps.relax()
            self._reports.send("caught_up", self._catching_up.report(self._spec, self._host))
            self._catching_up = None
        released = self._releases.go_on()
        return self._snapshots.go_on() or released or worked

    def _take_one(self, works: Sequence[Work]) -> bool:
        """The oldest and the newest step in turns: who repeats old steps must not keep the others waiting."""
        self._turn += 1
        for work in works if self._turn % 2 else reversed(works):
            ready = self._fetcher.ready(work, self._host.steps_after(work.step.position))
            if ready is not None:
                self._take(*ready)
                return True
        return False

    def _take(self, work: Work, rows: Rows) -> None:
        if self._heavy_keys is not None:
            self._heavy_keys.see(rows)
        with self._steps.taking(work):
            taken = self._host.take(work, rows, self._steps.before_unit)
        with self._busy.waiting():  # more nodes would not make the store faster
            self._writer.put(taken)
        done = self._host.done_batch()
        self._staging.forget(done)
        self._fetcher.forget(done)

    def _isolate(
        self, runner: StageRunner, state: UnitState, slices: Sequence[pa.Table], moment: Moment
    ) -> tuple[UnitState, StepOutput]:
        with self._steps.isolating():
            return self._isolation(runner, state, slices, moment)

    def _adopt(self, message: Adopt) -> None:
        self._steps.expect(message)
        held = self._host.adopt(message)
        if held:
            self._catching_up = CatchingUp(message, self._host)
            self._loader.load(held, self._installed)

    def _installed(self, states: dict[Held, Any], direct_bytes: int) -> None:
        slots = tuple(held.slot for held, state in states.items() if self._host.loaded(held, state))
        installed = Installed(self._spec.node, self._spec.incarnation, slots, direct_bytes)
        self._reports.send("installed", installed.to_json())

    def _released(self, report: Released | Stored) -> None:
        self._reports.send("released" if isinstance(report, Released) else "stored", report.to_json())

    def _lookup(self, document: dict[str, Any]) -> Any:
        """In the working thread, between two steps."""
        answer: Future[Any] = Future()
        secret = self._spec.store.secret
        key = unsealed(document["key"], secret)

        def look() -> None:
            try:
                answer.set_result(self._host.lookup(document["slot"], key))
            except StateUnavailable as unavailable:
                answer.set_exception(Refused(str(unavailable)))

        self._inbox.put(look)
        return sealed(answer.result(timeout=_LOOKUP_SECONDS), secret)

    def _pulse(self) -> dict[str, Any]:
        """The step under way, what waits and how long the node worked are as of now, the rest as of the last step."""
        self._end_if_overdue()
        self._inbox.put(self._measure)
        now = {
            "node": self._spec.node,
            "incarnation": self._spec.incarnation,
            "busy_seconds": self._busy.seconds(),
            "waiting_steps": self._host.waiting_steps + len(self._unheard),
            "step": self._steps.to_json(),
        }
        return {**self._statistics, **now}

    def _end_if_overdue(self) -> None:
        """End this process when its step takes too long: nothing else can end a call of the operator."""
        settings = self._spec.settings
        leaves_since = self._leaving_since
        if leaves_since is not None and self._steps.overdue(settings.node_timeout_seconds) is not None:
            if time.monotonic() - leaves_since > settings.node_timeout_seconds:
                _log.error("%s ends in the middle of a step, because %s", self._spec.node, self._leaving)
                os._exit(_OVERDUE_EXIT_CODE)
            return
        found = self._steps.overdue(settings.step_timeout_seconds)
        if found is None:
            return
        step, seconds = found
        _log.error("%s ends, because %s has been running for %.1f s", self._spec.node, step, seconds)
        try:
            self._controller.call("overdue", {**step.to_json(), "seconds": seconds})
        except (PeerUnavailable, Refused) as error:
            _log.error("the driver was not told: %s", error)
        os._exit(_OVERDUE_EXIT_CODE)

    def _measure(self) -> None:
        self._host.measure_changed()
        self._statistics = {
            "epoch": self._host.epoch,
            "loading": self._host.loading,
            "done_batch": self._host.done_batch(),
            "next_timer_ms": self._host.next_timer_ms(),
            "staged_bytes": self._staging.size,
            "replayed_rows": self._host.replayed_rows,
            "units": [[slot, *unit.to_json()] for slot, unit in self._host.statistics().items()],
            "heavy_keys": [] if self._heavy_keys is None else self._heavy_keys.to_json(),
        }

    def _command(self, document: dict[str, Any]) -> str:
        """In the working thread, in the order in which it was sent."""
        number = document["number"]
        if document["kind"] == "apply":
            self._unheard.add(number)

        def hear() -> None:
            self._unheard.discard(number)
            handle = partial(self._handlers[document["kind"]], document["message"])
            for command in self._commands.accept(number, handle):
                command()

        if document["kind"] == "stop":
            self._writer.hurry()  # the working thread may wait for it, and would not hear
        self._inbox.put(hear)
        return "heard"

    def _wake(self) -> None:
        self._inbox.put(_nothing)

    def _leave(self, why: str) -> str:
        self._leaving = self._leaving or why
        self._leaving_since = self._leaving_since or time.monotonic()
        self._wake()
        return "leaving"

    def _fail_later(self, error: BaseException) -> None:
        def fail() -> None:
            raise error

        self._inbox.put(fail)

    def _report_failure(self, error: Exception) -> None:
        _log.error("%s cannot go on: %s", self._spec.node, error, exc_info=error)
        failed = Failed(self._spec.node, self._spec.incarnation, failure_to_json(error))
        self._reports.send("failed", failed.to_json())
        self._leaving = f"failed: {error}"

    def _close(self, opened: Sequence[StageRunner]) -> None:
        self._endpoint.close()
        self._writer.close()
        self._reports.close()
        self._fetcher.close()
        self._loader.close()
        self._releases.close()
        for saver in self._savers:
            saver.close()
        finish_within(_CLOSE_SECONDS, self._manager.close, "closing the state manager")
        self._controller.close()
        for runner in opened:
            runner.close()
        self._store.close()
        _log.info("%s leaves: %s (%d threads)", self._spec.node, self._leaving, threading.active_count())


def _nothing() -> None:
    """Only to end a wait."""
