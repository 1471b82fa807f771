"""The statistics of a node in its heartbeats: its busy time, its units, its keys."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa

from elastic import threads
from elastic.core.ids import UnitId
from elastic.core.messages import Heartbeat
from elastic.core.unit_host import UnitHost
from elastic.node.cost_sketches import CostSketches
from elastic.node.key_statistics import NodeKeyStatistics
from elastic.node.rows import StagedRows
from elastic.node.running_step import StepMonitor
from elastic.node.spec import NodeSpec
from elastic.operators.stage_runner import StageRunner, StepOutput


class BusyClock:
    """Runs except while its one thread waits. Any thread may read it, also in the middle of a long step."""

    def __init__(self, clock: Callable[[], float] = threads.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        # In one value, so that no reader sees half of a change: seconds of waits that are over, and the one under way.
        self._waits: tuple[float, float | None] = (0.0, None)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Stop the clock while the block waits."""
        waited, _ = self._waits
        since = self._clock()
        self._waits = (waited, since)
        try:
            yield
        finally:
            self._waits = (waited + self._clock() - since, None)

    def seconds(self) -> float:
        waited, since = self._waits
        now = self._clock() if since is None else since
        return max(0.0, now - self._began - waited)


class NodeStatistics:
    """Measured by the working thread between two steps, read by the thread that sends heartbeats."""

    def __init__(
        self,
        spec: NodeSpec,
        runners: Sequence[StageRunner],
        host: UnitHost,
        staged: StagedRows,
        monitor: StepMonitor,
    ) -> None:
        self.busy = BusyClock()
        self._keys = NodeKeyStatistics(spec.settings, spec.pipeline, runners)
        self._costs = CostSketches(runners, spec.settings.key_interval_seconds)
        host.observe_step = self._observe_step
        self._host = host
        self._staged = staged
        self._monitor = monitor
        self._measured = Heartbeat(spec.node, spec.incarnation)

    def measure(self) -> None:
        """Bring everything up to date that only the working thread may read."""
        self._host.measure_states()
        self._keys.measure(self._host)
        self._costs.measure()
        self._measured = replace(
            self._measured,
            epoch=self._host.epoch,
            loading=self._host.loading,
            done_batch=self._host.done_batch(),
            next_timer_ms=self._host.next_timer_ms(),
            next_event_timers=self._host.next_event_timers(),
            staged_bytes=self._staged.size,
            replayed_rows=self._host.replayed_rows,
            units=self._host.statistics(),
            keys=self._keys.report,
            costs=self._costs.report,
            standbys=self._host.statistics(standby=True),
            followed_batch=self._host.followed_batch(),
        )

    def heartbeat(self, waiting_steps: int) -> Heartbeat:
        """Return a heartbeat as of now; `waiting_steps` have arrived and the working thread has not seen them."""
        return replace(
            self._measured,
            busy_seconds=self.busy.seconds(),
            pending_steps=self._host.pending_steps + waiting_steps,
            running=self._monitor.running(),
        )

    def _observe_step(self, unit: UnitId, slices: Sequence[pa.Table], output: StepOutput, seconds: float) -> None:
        self._keys.observe_step(unit, slices, output, seconds)
        if output.cost_times is not None:
            self._costs.add(unit.stage, output.cost_times)
