"""Calls of an operator whose rows may kill the process: every call is tried in a process of its own."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from elastic.operators.calls import OperatorCaller, UnitState, UnitStep, describe_timer
from elastic.operators.grouping import group_rows
from elastic.operators.outputs import OutputBuffer
from elastic.operators.quarantine import Quarantine
from elastic.operators.timers import Timer

Result = TypeVar("Result")


class ProcessDied(Exception):
    """The process that ran a call died."""


class Trial(Protocol):
    """Runs a call in a fork of this process and returns its result; raises `ProcessDied` if the fork dies."""

    def __call__(self, call: Callable[[], Result]) -> Result: ...


class GuardedCaller:
    """Runs each call in another process, and adopts the state that the call leaves there.

    If the process dies, the rows are retried in halves until those that kill it are alone; they are quarantined, and
    all others take effect. With key columns, rows of one key stay together, as when a keyed operator raises. O(log
    rows) deaths for each fatal row. Deterministic if the same rows kill the operator again.
    """

    def __init__(
        self,
        caller: OperatorCaller,
        trial: Trial,
        key: tuple[str, ...] | None,
        capture: Callable[[UnitState], Any],
        restore: Callable[[Any], UnitState],
    ) -> None:
        self._caller = caller
        self._trial = trial
        self._key = key
        self._capture = capture
        self._restore = restore

    def rows(self, step: UnitStep, rows: pa.Table) -> None:
        bounds: Sequence[int] = range(rows.num_rows + 1)
        if self._key is not None:
            _, rows, bounds = group_rows(rows, self._key)

        def part(first: int, end: int) -> pa.Table:
            return rows.slice(bounds[first], bounds[end] - bounds[first])

        self._halve(
            step,
            (0, len(bounds) - 1),
            lambda tried, first, end: self._caller.rows(tried, part(first, end)),
            lambda first, end: part(first, end).to_pylist(),
        )

    def timers(self, step: UnitStep, due: list[Timer]) -> None:
        self._halve(
            step,
            (0, len(due)),
            lambda tried, first, end: self._caller.timers(tried, due[first:end]),
            lambda first, end: list(map(describe_timer, due[first:end])),
        )

    def _halve(
        self,
        step: UnitStep,
        span: tuple[int, int],
        call: Callable[[UnitStep, int, int], None],
        rows_of: Callable[[int, int], list[dict[str, Any]]],
    ) -> None:
        first, end = span
        try:
            saved, outputs, quarantine = self._trial(lambda: self._attempt(step, lambda tried: call(tried, first, end)))
        except ProcessDied as died:
            if end - first == 1:
                step.quarantine.add(rows_of(first, end), died)
                return
            middle = (first + end) // 2
            self._halve(step, (first, middle), call, rows_of)
            self._halve(step, (middle, end), call, rows_of)
            return
        restored = self._restore(saved)
        step.state.value, step.state.timers = restored.value, restored.timers
        step.outputs.extend(outputs)
        step.quarantine.extend(quarantine)

    def _attempt(self, step: UnitStep, call: Callable[[UnitStep], None]) -> tuple[Any, OutputBuffer, Quarantine]:
        """Run the call, in the other process; return its effects."""
        tried = UnitStep(step.state, step.moment, step.outputs.new_empty(), call=step.call)
        call(tried)
        tried.outputs.settle()
        return self._capture(tried.state), tried.outputs, tried.quarantine
