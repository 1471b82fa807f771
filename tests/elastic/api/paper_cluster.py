"""A fake cluster that carries out migrations command by command, when a test lets it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from elastic.control import NodeCounters, TaskCounters, Vitals
from elastic.control.key_loads import StageKeyLoads
from elastic.core import commands
from elastic.core.events import MigrationRequested, RekeyRequested
from elastic.core.ids import Batch
from elastic.routing import HASH, Grouping, Groupings
from tests.elastic.api.paper_keys import TABLE, measure_keys
from tests.elastic.paper_nodes import PaperNodes

_WAIT_SECONDS = 0.005


class PaperCluster(PaperNodes):
    """Implements `elastic.control.Cluster`. Task j has work `1 + j % 5` and `10 kB * (1 + j % 7)` of state.

    Its stage is grouped by table, or by hash. While `go` is not set nothing moves; each command and each portion of
    keys takes `step_seconds`.
    """

    state_bytes = 1000

    def __init__(
        self, tasks: int, nodes: int, room_for: int = 16, step_seconds: float = 0.0, grouping: str = "table"
    ) -> None:
        super().__init__(tasks, nodes, room_for)
        self.step_seconds = step_seconds
        self._groupings = Groupings(tasks, (TABLE if grouping == "table" else HASH,))
        self._began = time.monotonic() - 10.0  # long enough for measurements that are not negligible

    def counters(self) -> dict[int, TaskCounters]:
        seconds = time.monotonic() - self._began
        return {
            task: TaskCounters(1000, seconds * (1 + task % 5) / 100, 10_000 * (1 + task % 7), "paper")
            for task in range(self.current.tasks)
        }

    def vitals(self) -> Vitals:
        busy = (time.monotonic() - self._began) / 2
        return Vitals({node: NodeCounters(node, busy, 0) for node in sorted(self.nodes)}, 1, 4)

    def groupings(self) -> Groupings:
        return self._groupings

    def measure_keys(self, stage: str | None) -> StageKeyLoads:
        if self._groupings[0] == HASH:
            return super().measure_keys(stage)
        return measure_keys(self.current, self._groupings)

    def regroup(self, by_stage: tuple[Grouping, ...]) -> None:
        self._groupings = Groupings(self.current.tasks, by_stage, self._groupings.epoch + 1)

    def begin(self, request: MigrationRequested | RekeyRequested) -> None:
        super().begin(request)
        self._open_lease()

    def resume(self, migration: str) -> None:
        super().resume(migration)
        self._open_lease()

    def wait(self, migration: str, seconds: float) -> bool:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends and not self.has_settled(migration) and self.go.wait(_WAIT_SECONDS):
            is_due = self.waiting or self.coordinator.rekeyings.is_due
            threading.Event().wait(self.step_seconds if is_due else _WAIT_SECONDS)
            self.carry_out(1)
            self._move_keys()
        return self.has_settled(migration)

    def has_settled(self, migration: str) -> bool:
        found = self.rekeying(migration)
        if found is None:
            return super().has_settled(migration)
        return found.is_over or (found.is_paused and found.is_idle)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        yield

    def _move_keys(self) -> None:
        """Take a whole portion of keys, if one is due, with a batch of its own."""
        with self._turn:
            rekeyings, batch = self.coordinator.rekeyings, Batch(self._groupings.epoch)
            regrouping = rekeyings.start_portion(batch, self._groupings)
            if regrouping is not None:
                self.regroup(regrouping.groupings)
                rekeyings.round_committed(batch, is_regrouped=True, log_bytes=0)
                rekeyings.round_committed(batch, is_regrouped=False, log_bytes=self.state_bytes)
                rekeyings.batch_applied(batch)

    def _open_lease(self) -> None:
        """Open the lease of the next mini-migration, so that its moves are in flight before the first step."""
        while any(isinstance(command, commands.OpenMigrationLease) for command in self.waiting):
            self.carry_out(1)
