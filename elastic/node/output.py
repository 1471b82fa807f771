"""The output of steps: made durable in the background, in order, and then reported to the driver."""

from collections import deque
from collections.abc import Mapping, Sequence

import pyarrow as pa

from elastic import threads
from elastic.core.messages import StepApplied
from elastic.core.unit_host import StepResult
from elastic.node.context import NodeContext
from elastic.node.known_costs import KnownCosts
from elastic.operators.key_records import log_parts, without_kind
from elastic.operators.measured import mark_group_rows
from elastic.operators.stage_runner import StageRunner
from elastic.results import ResultLog
from elastic.retry import retry_while_unavailable
from elastic.routing import Routing, UnitChooser, split
from elastic.routing.shuffle import Forecast
from storage.state import InputLog, LogRef

_CLOSE_SECONDS = 5.0  # for a store that does not answer: less than the driver waits before it cancels the node
_MAX_PENDING = 4  # steps whose output waits for the store; without a limit they would fill the memory


class OutputStore:
    """Makes output durable: results for readers, emitted records as the log of the next round.

    Every call writes new objects; only those that are reported become part of the batch.
    """

    def __init__(
        self,
        runners: Sequence[StageRunner],
        log: InputLog,
        results: ResultLog,
        keeps_results: bool,
        chooser: UnitChooser,
        costs: KnownCosts,
    ) -> None:
        self._runners = runners
        self._log = log
        self._results = results
        self._keeps_results = keeps_results
        self._chooser = chooser
        self._costs = costs

    def store(self, result: StepResult, node: str, incarnation: str) -> StepApplied:
        """Write the output of a step and return the report to send; safe to repeat."""
        emitted = self._store_emitted(result, node) if result.emitted or result.parts else None
        results = None
        if self._keeps_results and (result.results or result.quarantined):
            tables = {self._runners[stage].name: pa.concat_tables(rows) for stage, rows in result.results.items()}
            quarantined = pa.concat_tables(result.quarantined) if result.quarantined else None
            numbers = [unit.number for unit in result.units]
            results = self._results.write(*result.position, numbers, tables, quarantined)
        return StepApplied(
            node,
            incarnation,
            result.position,
            result.units,
            emitted=emitted,
            emitted_stages=tuple(sorted(result.emitted)),
            results=results,
            rows=result.rows,
            cause=result.cause,
        )

    def _store_emitted(self, result: StepResult, node: str) -> LogRef:
        slices: dict[int, pa.Table | bytes] = dict(log_parts(result.parts)) if result.parts else {}
        assert result.routing is not None  # noqa: S101 - for the type checker; every step comes with one
        for stage, tables in result.emitted.items():
            forecast = self._costs.forecast(stage, result.position, result.routing, node)
            slices.update(self._group(stage, tables, result.routing, forecast))
        batch, round_ = result.position
        return self._log.append(batch, min(result.units).number, slices, round=round_ + 1)

    def _group(
        self, stage: int, tables: Sequence[pa.Table], routing: Routing, forecast: Forecast
    ) -> Mapping[int, pa.Table]:
        """Return the records by the number of the unit of that stage that they are for."""
        runner = self._runners[stage]
        rows = without_kind(runner.combine(pa.concat_tables(tables)))
        placer = self._chooser.place(routing, stage, forecast)
        numbers = placer.unit_numbers(runner.hash_rows(rows))
        return split(mark_group_rows(rows, placer.group_rows), numbers).slices()


class OutputWriter:
    """Writes and reports output in a thread of its own, so that the next step need not wait for the store.

    Steps are written in order. When one fails, the writer drops those after it and fails the node.
    """

    def __init__(self, context: NodeContext, outputs: OutputStore) -> None:
        self._context = context
        self._outputs = outputs
        self._give_up = threads.Event()
        self._changed = threads.Condition()
        self._pending: deque[StepResult] = deque()
        self._is_closing = False
        self._thread = threads.Thread(target=self._write_all, name="outputs")
        self._thread.start()

    def put(self, result: StepResult) -> None:
        """Queue the output of a step, unless it was reported before; waits while too much is pending."""
        if not result.units:
            return
        with self._changed:
            self._changed.wait_for(lambda: len(self._pending) < _MAX_PENDING or self._is_closing)
            if not self._is_closing:
                self._pending.append(result)
                self._changed.notify_all()

    def stop_retrying(self) -> None:
        """Do not wait for an unavailable store from now on: the node is about to leave."""
        self._give_up.set()

    def close(self, seconds: float = _CLOSE_SECONDS) -> bool:
        """Write what is pending, unless the store is unavailable, and return whether that was done in time."""
        self.stop_retrying()
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def discard(self) -> None:
        """Write nothing more; returns at once."""
        self.stop_retrying()
        with self._changed:
            self._is_closing = True
            self._pending.clear()
            self._changed.notify_all()

    def _write_all(self) -> None:
        while (result := self._next()) is not None:
            try:
                self._write(result)
            except Exception as error:  # noqa: BLE001 - passed to the working thread, which ends the node with it
                self.discard()
                self._context.fail(error, result.cause)

    def _next(self) -> StepResult | None:
        """Wait for the next output and return it; None when the writer is closing and none is left."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._pending) or self._is_closing)
            result = self._pending.popleft() if self._pending else None
            self._changed.notify_all()
            return result

    def _write(self, result: StepResult) -> None:
        context = self._context
        report = retry_while_unavailable(
            lambda: self._outputs.store(result, context.node, context.incarnation),
            context.settings.store_retry_seconds,
            self._give_up,
        )
        context.report(report)
