"""What a node tells about itself in heartbeats: how long it worked, its units, its heaviest keys."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Self

from elastic import threads
from elastic.core.ids import UnitId
from elastic.core.messages import Heartbeat
from elastic.core.statistics import HeavyKey
from elastic.core.unit_host import UnitHost
from elastic.node.rows import Rows, StagedRows
from elastic.node.running_step import StepMonitor
from elastic.node.spec import NodeSpec
from elastic.routing import HeavyHitters


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


class HeavyKeyCounter:
    """A sketch of the keys of the first stage, since the node started; made only where it is asked for."""

    def __init__(self, size: int, key: tuple[str, ...]) -> None:
        self._size = size
        self._key = key
        self._sketch = HeavyHitters(size)

    @classmethod
    def from_spec(cls, spec: NodeSpec) -> Self | None:
        """Return a counter if the settings ask for one."""
        size = spec.settings.heavy_hitters
        return cls(size, spec.pipeline.stages[0].key) if size else None

    def count(self, rows: Rows) -> None:
        for number, tables in rows.items():
            if UnitId.from_number(number).stage == 0:
                for table in tables:
                    self._sketch.update([table[name] for name in self._key])

    def heaviest(self) -> tuple[HeavyKey, ...]:
        """Return the keys as text, heaviest first."""
        return tuple(
            HeavyKey(", ".join(map(str, heavy.key)), heavy.estimate, heavy.lower_bound)
            for heavy in self._sketch.top(self._size)
        )


class NodeStatistics:
    """Measured by the working thread between two steps, read by the thread that sends heartbeats."""

    def __init__(self, spec: NodeSpec, host: UnitHost, staged: StagedRows, monitor: StepMonitor) -> None:
        self.busy = BusyClock()
        self.heavy_keys = HeavyKeyCounter.from_spec(spec)
        self._host = host
        self._staged = staged
        self._monitor = monitor
        self._measured = Heartbeat(spec.node, spec.incarnation)

    def measure(self) -> None:
        """Bring everything up to date that only the working thread may read."""
        self._host.measure_states()
        self._measured = replace(
            self._measured,
            epoch=self._host.epoch,
            loading=self._host.loading,
            done_batch=self._host.done_batch(),
            next_timer_ms=self._host.next_timer_ms(),
            staged_bytes=self._staged.size,
            replayed_rows=self._host.replayed_rows,
            units=self._host.statistics(),
            heavy_keys=() if self.heavy_keys is None else self.heavy_keys.heaviest(),
        )

    def heartbeat(self, waiting_steps: int) -> Heartbeat:
        """Return a heartbeat as of now; `waiting_steps` have arrived and the working thread has not seen them."""
        return replace(
            self._measured,
            busy_seconds=self.busy.seconds(),
            pending_steps=self._host.pending_steps + waiting_steps,
            running=self._monitor.running(),
        )
