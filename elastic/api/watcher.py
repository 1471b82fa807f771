"""Polls one job, so that any number of clients costs the job no more than one."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from elastic.api import outputs
from elastic.api.heaviest_keys import HeaviestKeys
from elastic.api.migrations import MigrationTracker, now_ms
from elastic.api.rendering import node_sort_key, render_key_table, render_migration, render_step
from elastic.api.responses import BATCH_POLL_SECONDS, ApplyLagTracker, ResponseHistory
from elastic.api.served_job import ServedJob
from elastic.control import Load, Migration, PeriodicThread, ScaleRequest
from elastic.job.status import JobStatus
from migration import Ownership, Workload

SNAPSHOT_SECONDS = 0.5
_RATE_SECONDS = 5.0  # window of the row rate
_LOAD_SECONDS = 10.0  # window of the utilisation
_MAX_MARKS = 20
_STALE_SECONDS = 10.0

_log = logging.getLogger(__name__)


class Watcher:
    """One job, its migrations, its response times, and the newest snapshot of all of them.

    From `start` to `stop` it polls in two threads; without them it polls when a snapshot is needed. `observe_response`
    is called with the apply lag of every published batch, in seconds.
    """

    def __init__(self, job: ServedJob, observe_response: Callable[[float], object] = lambda _: None) -> None:
        self.job = job
        self.tracker = MigrationTracker()
        self.history = ResponseHistory()
        self._keys = HeaviestKeys(job)
        self._lag = ApplyLagTracker(observe_response)
        self._rows: deque[tuple[float, int]] = deque(maxlen=round(_RATE_SECONDS / SNAPSHOT_SECONDS) + 1)
        self._marks: deque[outputs.Mark] = deque(maxlen=_MAX_MARKS)
        self._losses = 0
        self._last_trigger: tuple[Any, int] | None = None  # run and batch of the newest trigger that was reported
        self._newest: outputs.Snapshot | None = None
        self._polled_at = 0.0
        self._lock = threading.Lock()  # one snapshot at a time
        self._threads = [
            PeriodicThread(f"api-lag-{job.name}", BATCH_POLL_SECONDS, self._poll_batches),
            PeriodicThread(f"api-{job.name}", SNAPSHOT_SECONDS, self.poll),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        for thread in self._threads:
            thread.stop()

    @property
    def is_stale(self) -> bool:
        """Whether the last snapshot is so old that the job must be stuck."""
        return time.monotonic() - self._polled_at > _STALE_SECONDS

    @property
    def newest(self) -> outputs.Snapshot | None:
        """The newest snapshot, None before the first; never waits for the job."""
        return self._newest

    def snapshot(self) -> outputs.Snapshot:
        """Return the newest snapshot, taking the first one if there is none."""
        return self._newest if self._newest is not None else self.poll()

    def poll(self) -> outputs.Snapshot:
        """Take a snapshot now."""
        with self._lock:
            number = 1 if self._newest is None else self._newest.id + 1
            snapshot = self._take_snapshot(number)
            self.history.append(snapshot.response)
            self._newest = snapshot
            self._polled_at = time.monotonic()
            return snapshot

    def list_migrations(self) -> list[outputs.Migration]:
        """Return the migrations since the start of the server, newest first."""
        self._track_migration()
        return [render_migration(tracked) for tracked in self.tracker.newest_first()]

    def _take_snapshot(self, number: int) -> outputs.Snapshot:
        migration = self._track_migration()  # first, so that the assignment is never older than the migration
        status = self.job.status()
        assignment = self.job.assignment()
        workload = self.job.workload()
        load = self.job.load(_LOAD_SECONDS)
        self._mark_losses(status)
        return outputs.Snapshot(
            id=number,
            at_ms=now_ms(),
            job=status.name,
            state=status.state,
            epoch=status.epoch,
            last_batch=status.last_batch,
            published_batch=status.published_batch,
            saved_batch=status.saved_batch,
            pending_batches=status.pending_batches,
            max_pending_batches=load.max_pending_batches,
            rows=status.rows,
            rows_per_second=self._measure_rate(status.rows),
            losses=status.losses,
            recoveries=len(status.recoveries),
            nodes=_render_nodes(status, assignment, workload, load),
            spares=status.spares,
            owners=list(assignment.owners),
            work=_round(workload.work.tolist()),
            state_bytes=_round(workload.state.tolist()),
            cap=_compute_cap(assignment, workload, self.job.migration),
            imbalance=_compute_imbalance(load),
            tables=[render_key_table(table) for table in self.job.key_tables()],
            keys=self._keys.read(status.epoch),
            migration=migration,
            marks=list(self._marks),
            response=self._measure_response(number, status),
            autoscaler=self._read_decision(),
            sink_error=status.sink_error,
            problems=list(status.problems),
        )

    def _poll_batches(self) -> None:
        self._lag.update(time.monotonic(), *self.job.batches())

    def _measure_response(self, number: int, status: JobStatus) -> outputs.Response:
        now = time.monotonic()
        self._lag.update(now, status.last_batch, status.published_batch)
        lag = self._lag.take_longest(now)
        return outputs.Response(
            id=number,
            at_ms=now_ms(),
            batch=status.last_batch,
            trigger_ms=self._read_trigger_ms(status),
            apply_lag_ms=None if lag is None else round(lag * 1000, 1),
        )

    def _read_trigger_ms(self, status: JobStatus) -> float | None:
        """Return the duration of Spark's newest trigger, None if it was reported before. Costs a call into the JVM."""
        if status.state != "running":
            return None
        try:
            stream: Any = getattr(self.job, "stream", None)  # only a job on Spark has one
            progress = None if stream is None else stream.lastProgress
        except Exception as error:  # noqa: BLE001 - Spark may be stopping, or between two queries
            _log.debug("Spark did not report its newest trigger: %s", error)
            return None
        if progress is None or self._last_trigger == (trigger := (progress["runId"], progress["batchId"])):
            return None
        self._last_trigger = trigger
        duration = progress["durationMs"].get("triggerExecution")
        return None if duration is None else float(duration)

    def _track_migration(self) -> outputs.Migration | None:
        migration = self.job.migration
        return None if migration is None else render_migration(self.tracker.track(migration))

    def _mark_losses(self, status: JobStatus) -> None:
        if status.losses > self._losses:
            lost = status.losses - self._losses
            text = "a node was lost" if lost == 1 else f"{lost} nodes were lost"
            self._marks.append(outputs.Mark(at_ms=now_ms(), kind="loss", text=text))
        self._losses = status.losses

    def _measure_rate(self, rows: int) -> float:
        self._rows.append((time.monotonic(), rows))
        (began, before), (ended, after) = self._rows[0], self._rows[-1]
        return max(0.0, (after - before) / (ended - began)) if ended > began else 0.0

    def _read_decision(self) -> outputs.Decision | None:
        autoscaler = self.job.autoscaler
        if autoscaler is None or autoscaler.is_stopped or autoscaler.last_decision is None:
            return None
        decision = autoscaler.last_decision
        return outputs.Decision(policy=autoscaler.settings.name, target=decision.target, reason=decision.reason)


def _render_nodes(
    status: JobStatus, assignment: Ownership, workload: Workload, load: Load
) -> list[outputs.SnapshotNode]:
    """Return the nodes that own tasks or are alive, in the order of their names."""
    alive = {node.name: node for node in status.nodes}
    nodes = []
    for name in sorted({*assignment.nodes, *alive}, key=node_sort_key):
        tasks, node = assignment.tasks_of(name), alive.get(name)
        nodes.append(
            outputs.SnapshotNode(
                name=name,
                serving=node is not None and node.serving,
                tasks=len(tasks),
                loading=0 if node is None else node.loading,
                pending_steps=0 if node is None else node.pending_steps,
                staged_bytes=0 if node is None else node.staged_bytes,
                utilisation=load.utilisation.get(name),
                work=float(workload.work[tasks].sum()),
                state_bytes=float(workload.state[tasks].sum()),
                step=None if node is None else render_step(node.step),
                standbys=0 if node is None else len(node.standbys),
                lag=0 if node is None else node.lag,
            )
        )
    return nodes


def _compute_cap(assignment: Ownership, workload: Workload, migration: Migration | None) -> float:
    """Return the cap for the current work; during a migration it is the same fraction of all work as in its plan."""
    share = None if migration is None or migration.is_over else migration.cap_share
    if share is None:
        return (1 + ScaleRequest.tau) * workload.total_work / len(assignment.nodes)
    return share * workload.total_work


def _compute_imbalance(load: Load) -> float | None:
    mean = load.mean_utilisation
    return max(load.utilisation.values()) / mean - 1 if mean else None


def _round(numbers: Sequence[float]) -> list[float]:
    """Return the numbers with four significant digits, enough for a chart."""
    return [float(f"{number:.4g}") for number in numbers]
