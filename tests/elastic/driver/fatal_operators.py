"""Operators whose rows crash, hang or stop a process from starting."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elastic.operators import Context, KeyedOperator, Operator, State, Timer, ValueState

CRASH, HANG, RAISE = -1, -2, -3


class FatalSums(KeyedOperator):
    """The sum of each key; a value of -1 kills the process as a segmentation fault does, one of -2 never returns."""

    output_schema = "key string, sum bigint"

    def initial_state(self) -> int:
        return 0

    def handle_key(self, key: Any, rows: Any, state: ValueState, context: Context) -> Iterator[Any]:  # noqa: ARG002
        values = [row["value"] for row in rows]
        if CRASH in values:
            os.kill(os.getpid(), signal.SIGSEGV)
        if HANG in values:
            time.sleep(3600)
        state.update(state.get() + sum(values))
        yield {"key": key, "sum": state.get()}


class ClosedDoor(FatalSums):
    """Cannot be opened, and counts how often that was tried."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self) -> None:
        (self._folder / f"tried-{os.getpid()}").touch()
        raise OSError("there is no licence at /etc/licence")


class FatalHistory(Operator):
    """All values of a task in their order; a value above 0 sets a timer of so many ms, and the timer 13 is fatal."""

    output_schema = "value bigint"

    def initial_state(self) -> list[int]:
        return []

    def handle_batch(self, rows: Any, state: State, context: Context) -> Iterator[Any]:
        for value in rows["value"].to_pylist():
            print("a line on standard output")
            if value == CRASH:
                os._exit(0)  # looks like a good end
            if value == RAISE:
                raise ValueError("no such value")
            state.value.append(value)
            context.set_timer(value, "processing", key=value)
            yield {"value": value}

    def handle_timer(self, timer: Timer, state: State, _context: Context) -> Iterator[Any]:
        if timer.key == 13:
            os.abort()
        state.value.append(-timer.key)
        yield {"value": -timer.key}
