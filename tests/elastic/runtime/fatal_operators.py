"""Operators whose rows crash, hang or stop a process from starting."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elastic.operators import Context, KeyedOperator, ValueState

CRASH, HANG = -1, -2


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
