"""The operator under test: counts keys, and tells each change."""

from typing import Any

import numpy as np
import pyarrow as pa

from elastic.operators import Context, KeyedColumns, Operator, State
from tests.chaos.deaths import APPLYING, CAPTURING, COMMITTED, REPLAYING, REPORTING, Deaths, MortalColumns
from tests.chaos.oracle import mixed


class Counting(Operator):
    """Per key the count and the content (see `oracle`); gives both after every batch, with the increment."""

    output_schema = "key long, increment long, count long, content long"

    def __init__(self, deaths: Deaths) -> None:
        self._deaths = deaths

    def initial_state(self) -> KeyedColumns:
        # Columns of the engine's own are captured in another way than a class of a user's: both ways are worth a test.
        kind = MortalColumns if self._deaths.is_planned(CAPTURING) else KeyedColumns
        return kind("key long", {"count": "int64", "content": "int64"})

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> Any:
        self._deaths.at(COMMITTED, context.batch, context.task)
        counts: KeyedColumns = state.value
        places = counts.rows_for(rows["key"])
        touched, increments = np.unique(places, return_counts=True)
        counts.column("count")[touched] += increments
        np.add.at(counts.column("content"), places, mixed(rows["value"].to_numpy()).view(np.int64))
        for moment in (APPLYING, REPLAYING, REPORTING):
            self._deaths.at(moment, context.batch, context.task)
        if isinstance(counts, MortalColumns):
            counts.dies = (self._deaths, context.batch, context.task)
        return [counts.to_table(touched).append_column("increment", pa.array(increments))]
