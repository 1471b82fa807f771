"""Operators for the tests of a node: they show in their output which rows they got, in which order."""

import threading
from typing import Any

import pyarrow as pa

from elastic.operators import Context, Operator, State


class History(Operator):
    """Keeps every value of its task in order, and emits each with the number of values before it."""

    output_schema = "key long, value long, before long"

    def initial_state(self) -> list[int]:
        return []

    def handle_batch(self, rows: pa.Table, state: State, _: Context) -> list[dict[str, int]]:
        emitted = []
        for row in rows.to_pylist():
            emitted.append({**row, "before": len(state.value)})
            state.value.append(row["value"])
        return emitted

    def lookup(self, value: Any, _key: tuple[Any, ...]) -> Any:
        return list(value)


class Blocked(History):
    """Waits at value -1 until `released` is set, and raises at value -2. `entered` is set when a batch begins."""

    entered = threading.Event()
    released = threading.Event()

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> list[dict[str, int]]:
        values = rows["value"].to_pylist()
        Blocked.entered.set()
        if -1 in values:
            assert Blocked.released.wait(20)
        if -2 in values:
            raise ValueError("no such value")
        return super().handle_batch(rows, state, context)
