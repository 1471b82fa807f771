"""Looks at one job again and again, so that any number of clients cost the job no more than one."""

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from elastic.api import outputs, rendering
from elastic.api.clock import now_ms
from elastic.api.port import ServedJob
from elastic.api.responses import LOOK_SECONDS, ApplyLag, ResponseHistory
from elastic.api.seen import SeenMigrations
from elastic.control import Load, Migration, Repeating, ScaleRequest
from elastic.runtime.status import JobStatus
from migration import Ownership, Workload

SNAPSHOT_SECONDS = 0.5
_RATE_SECONDS = 5.0  # rows a second are counted over that long
_LOAD_SECONDS = 10.0
_TAU = ScaleRequest.tau
_MARKS = 20
_STALE_SECONDS = 10.0

_log = logging.getLogger(__name__)


class Watcher:
    """One job, its migrations, its response times, and the newest snapshot of all that.

    From `start` to `stop` it looks in two threads of its own; without them it looks when it is asked.
    """

    def __init__(self, job: ServedJob) -> None:
        self.job = job
        self.seen = SeenMigrations()
        self.history = ResponseHistory()
        self._lag = ApplyLag()
        self._rows: deque[tuple[float, int]] = deque(maxlen=round(_RATE_SECONDS / SNAPSHOT_SECONDS) + 1)
        self._marks: deque[outputs.Mark] = deque(maxlen=_MARKS)
        self._losses = 0
        self._trigger: tuple[Any, int] | None = None  # the newest that was told: of which run and batch
        self._newest: outputs.Snapshot | None = None
        self._made_at = 0.0
        self._lock = threading.Lock()  # one snapshot at a time
        self._repeating = [
            Repeating(f"api-lag-{job.name}", LOOK_SECONDS, self._look_at_batches),
            Repeating(f"api-{job.name}", SNAPSHOT_SECONDS, self.look),
        ]

    def start(self) -> None:
        for repeating in self._repeating:
            repeating.start()

    def stop(self) -> None:
        for repeating in self._repeating:
            repeating.stop()

    @property
    def is_stale(self) -> bool:
        """Whether the job could not be looked at for long."""
        return time.monotonic() - self._made_at > _STALE_SECONDS

    @property
    def newest(self) -> outputs.Snapshot | None:
        """The newest snapshot, None before the first; never waits for the job."""
        return self._newest

    def snapshot(self) -> outputs.Snapshot:
        """The newest one."""
        return self._newest if self._newest is not None else self.look()

    def look(self) -> outputs.Snapshot:
        """Make a snapshot now."""
        with self._lock:
            number = 1 if self._newest is None else self._newest.id + 1
            made = self._made(number)
            self.history.append(made.response)
            self._newest = made
            self._made_at = time.monotonic()
            return made

    def migrations(self) -> list[outputs.Migration]:
        """Newest first."""
        self._note_migration()
        return [rendering.migration(seen) for seen in self.seen.newest()]

    def _made(self, number: int) -> outputs.Snapshot:
        migration = self._note_migration()  # first: where tasks are is then never older than what it says
        status = self.job.status()
        owned = self.job.assignment()
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
            batches_ahead=status.batches_ahead,
            batches_allowed=load.batches_allowed,
            rows=status.rows,
            rows_per_second=self._rate(status.rows),
            losses=status.losses,
            recoveries=len(status.recoveries),
            nodes=_nodes(status, owned, workload, load),
            owners=list(owned.owners),
            work=_rounded(workload.work.tolist()),
            state_bytes=_rounded(workload.state.tolist()),
            cap=_cap(owned, workload, self.job.migration),
            migration=migration,
            marks=list(self._marks),
            response=self._response(number, status),
            autoscaler=self._decision(),
            sink_error=status.sink_error,
            problems=list(status.problems),
        )

    def _look_at_batches(self) -> None:
        self._lag.look(time.monotonic(), *self.job.batches())

    def _response(self, number: int, status: JobStatus) -> outputs.Response:
        at = time.monotonic()
        self._lag.look(at, status.last_batch, status.published_batch)
        lag = self._lag.take(at)
        return outputs.Response(
            id=number,
            at_ms=now_ms(),
            batch=status.last_batch,
            trigger_ms=self._trigger_ms(status),
            apply_lag_ms=None if lag is None else round(lag * 1000, 1),
        )

    def _trigger_ms(self, status: JobStatus) -> float | None:
        """Spark's figure for its newest trigger, None if that is no news. Costs a call into the JVM."""
        if status.state != "running":
            return None
        try:
            progress: Any = self.job.stream.lastProgress
        except Exception as error:  # noqa: BLE001 - Spark may be on its way out, or between two queries
            _log.debug("Spark did not tell how long its trigger took: %s", error)
            return None
        if progress is None or self._trigger == (which := (progress["runId"], progress["batchId"])):
            return None
        self._trigger = which
        took = progress["durationMs"].get("triggerExecution")
        return None if took is None else float(took)

    def _note_migration(self) -> outputs.Migration | None:
        handle = self.job.migration
        return None if handle is None else rendering.migration(self.seen.note(handle))

    def _mark_losses(self, status: JobStatus) -> None:
        if status.losses > self._losses:
            lost = status.losses - self._losses
            text = "a node was lost" if lost == 1 else f"{lost} nodes were lost"
            self._marks.append(outputs.Mark(at_ms=now_ms(), kind="loss", text=text))
        self._losses = status.losses

    def _rate(self, rows: int) -> float:
        self._rows.append((time.monotonic(), rows))
        (began, before), (ended, now) = self._rows[0], self._rows[-1]
        return max(0.0, (now - before) / (ended - began)) if ended > began else 0.0

    def _decision(self) -> outputs.Decision | None:
        autoscaler = self.job.autoscaler
        if autoscaler is None or autoscaler.is_stopped or autoscaler.last_decision is None:
            return None
        decision = autoscaler.last_decision
        return outputs.Decision(policy=autoscaler.autoscaling.name, target=decision.target, reason=decision.reason)


def _nodes(status: JobStatus, owned: Ownership, workload: Workload, load: Load) -> list[outputs.SnapshotNode]:
    """Nodes that own tasks or are there, in the order of their names."""
    said = {node.name: node for node in status.nodes}
    names = sorted({*owned.nodes, *said}, key=rendering.name_order)
    told = []
    for name in names:
        tasks, node = owned.tasks_of(name), said.get(name)
        told.append(
            outputs.SnapshotNode(
                name=name,
                serving=node is not None and node.serving,
                tasks=len(tasks),
                loading=0 if node is None else node.loading,
                waiting_steps=0 if node is None else node.waiting_steps,
                staged_bytes=0 if node is None else node.staged_bytes,
                utilisation=load.utilisation.get(name),
                work=float(workload.work[tasks].sum()),
                state_bytes=float(workload.state[tasks].sum()),
                step=None if node is None else rendering.step(node.step),
            )
        )
    return told


def _cap(owned: Ownership, workload: Workload, migration: Migration | None) -> float:
    """For the work as it is now; while a migration is under way its share of all work is that of the plan."""
    if migration is None or migration.is_over or not sum(migration.plan.loads):
        return (1 + _TAU) * workload.total_work / len(owned.nodes)
    return migration.plan.cap / sum(migration.plan.loads) * workload.total_work


def _rounded(numbers: Sequence[float]) -> list[float]:
    """To what a picture can show."""
    return [float(f"{number:.4g}") for number in numbers]
