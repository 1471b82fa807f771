"""The operator under test: counts keys, depends on the order of their rows, and emits each change."""

import os
import signal
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from elastic.operators import Context, KeyedColumns, Operator, State
from tests.chaos.deaths import APPLYING, CAPTURING, COMMITTED, REPLAYING, REPORTING, Deaths, MortalColumns
from tests.chaos.oracle import extend_content


class MortalOperator(Operator):
    """An operator whose process dies, or hangs, where that was planned."""

    def __init__(self, deaths: Deaths, poison: int = -1) -> None:
        self._deaths = deaths
        self._poison = poison

    def new_columns(self, keys: str, columns: Mapping[str, str]) -> KeyedColumns:
        # Columns of the engine's own are captured in another way than a class of a user's: both ways are worth a test.
        kind = MortalColumns if self._deaths.is_planned(CAPTURING) else KeyedColumns
        return kind(keys, columns)

    def begin(self, context: Context) -> None:
        """Before a task takes its rows."""
        self._deaths.at(COMMITTED, context.batch, context.task)
        self._deaths.hang_at(context.batch, context.task)
        if self._poison == context.batch:
            os.kill(os.getpid(), signal.SIGKILL)

    def end(self, columns: KeyedColumns, context: Context) -> None:
        """After a task has taken its rows."""
        for moment in (APPLYING, REPLAYING, REPORTING):
            self._deaths.at(moment, context.batch, context.task)
        if isinstance(columns, MortalColumns):
            columns.dies = (self._deaths, context.batch, context.task)


class Counting(MortalOperator):
    """Per key the count and the content (see `oracle`); gives both after every batch, with the increment."""

    output_schema = "key long, increment long, count long, content long"

    def initial_state(self) -> KeyedColumns:
        return self.new_columns("key long", {"count": "int64", "content": "int64"})

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> Any:
        self.begin(context)
        counts: KeyedColumns = state.value
        places = counts.rows_for(rows["key"])
        touched, increments = np.unique(places, return_counts=True)
        counts.column("count")[touched] += increments
        extend_content(counts.column("content").view(np.uint64), places, rows["value"].to_numpy())
        self.end(counts, context)
        return [counts.to_table(touched).append_column("increment", pa.array(increments))]
