"""The reporter: the current maximal patterns, and their changes."""

import numpy as np
import pyarrow as pa

from elastic.operators import Context, KeyedColumns, Operator, State
from examples.frequent_patterns.mining import Mining

APPEARED, CHANGED, VANISHED = "appeared", "changed", "vanished"


class Reporter(Operator):
    """Keeps the maximal patterns with their counts, and emits each change once.

    Input: patterns, each with its count if it is maximal, else with 0. The state of all tasks together is the current
    set. Output: the changes, with the current count; 0 for a pattern that vanished.
    """

    output_schema = "pattern string, change string, texts int"

    def __init__(self, mining: Mining) -> None:
        self.version = mining.version  # type: ignore[misc]

    def initial_state(self) -> KeyedColumns:
        return KeyedColumns("pattern string", {"texts": "int64"})

    def handle_batch(self, rows: pa.Table, state: State, _: Context) -> pa.Table:
        current: KeyedColumns = state.value
        numbers = current.rows_for(rows)
        before, now = current.column("texts")[numbers], rows["texts"].to_numpy()
        current.column("texts")[numbers] = now
        changed = np.flatnonzero(before != now)
        kinds = np.select([before == 0, now == 0], [APPEARED, VANISHED], CHANGED)
        changes = {"pattern": rows["pattern"].take(pa.array(changed)), "change": kinds[changed], "texts": now[changed]}
        if (now == 0).any():
            current.keep(current.column("texts") != 0)
        return pa.table(changes)
