"""How an operator is called when its rows may kill the process: every call is tried in a process of its own."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from elastic.operators.calls import Calls, Step, UnitState, described
from elastic.operators.failures import Quarantine
from elastic.operators.grouping import grouped
from elastic.operators.outputs import Outputs
from elastic.operators.timers import Timer

Result = TypeVar("Result")


class ProcessDied(Exception):
    """The process that tried a call did not survive it."""


class Trial(Protocol):
    """Runs a call in a copy of this process and returns what it returns; raises `ProcessDied`."""

    def __call__(self, call: Callable[[], Result]) -> Result: ...


class GuardedCalls:
    """Calls that are tried in another process; what that process made of the state becomes the state.

    If the process dies, the rows are tried in halves until those that kill it are alone; they are set aside, and all
    others count. With key columns, rows of one key stay together, as when a keyed operator raises. O(log rows) deaths
    for each row that kills. Deterministic as far as the operator dies of the same rows again.
    """

    def __init__(
        self,
        calls: Calls,
        trial: Trial,
        key: tuple[str, ...] | None,
        capture: Callable[[UnitState], Any],
        restore: Callable[[Any], UnitState],
    ) -> None:
        self._calls = calls
        self._trial = trial
        self._key = key
        self._capture = capture
        self._restore = restore

    def rows(self, step: Step, rows: pa.Table) -> None:
        bounds: Sequence[int] = range(rows.num_rows + 1)
        if self._key is not None:
            _, rows, bounds = grouped(rows, self._key)

        def part(first: int, end: int) -> pa.Table:
            return rows.slice(bounds[first], bounds[end] - bounds[first])

        self._halve(
            step,
            (0, len(bounds) - 1),
            lambda tried, first, end: self._calls.rows(tried, part(first, end)),
            lambda first, end: part(first, end).to_pylist(),
        )

    def timers(self, step: Step, due: list[Timer]) -> None:
        self._halve(
            step,
            (0, len(due)),
            lambda tried, first, end: self._calls.timers(tried, due[first:end]),
            lambda first, end: list(map(described, due[first:end])),
        )

    def _halve(
        self,
        step: Step,
        span: tuple[int, int],
        call: Callable[[Step, int, int], None],
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

    def _attempt(self, step: Step, call: Callable[[Step], None]) -> tuple[Any, Outputs, Quarantine]:
        """In the other process: what the call did."""
        tried = Step(step.state, step.moment, step.outputs.fresh())
        call(tried)
        tried.outputs.settle()
        return self._capture(tried.state), tried.outputs, tried.quarantine
