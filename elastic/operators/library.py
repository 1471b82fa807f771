"""Operators that are ready to use."""

from typing import Any, Self

import pyarrow as pa

from elastic.errors import InvalidJob
from elastic.operators.columns import KeyedColumns
from elastic.operators.context import Context
from elastic.operators.operator import Operator, State, Yields

_SAMPLE_ROWS = 65_536  # few of a batch, and enough to tell whether keys repeat
_WORTH = 0.8  # rows left of the sample, above which adding the others up would cost more than it saves


class CountByKey(Operator):
    """How often each key has come: gives the new count of every key in the batch, or with `silent` nothing.

    Rows are counted where they come in, as far as keys repeat there, so what travels is keys with counts. The state is
    a row per key in `KeyedColumns`; a batch costs O(rows) without a Python object for any row. Keys may be of any type
    that can be routed. Output: the key columns and the count, keys in order of first appearance.
    """

    def __init__(self, column: str = "count", *, silent: bool = False) -> None:
        self._column = column
        self._silent = silent

    def bind(self, key: tuple[str, ...], input_schema: pa.Schema) -> Self:
        bound = super().bind(key, input_schema)
        if self._column in key:
            raise InvalidJob(f"the count cannot be named {self._column!r} like a key column. Name it otherwise.")
        if not self._silent:
            fields = [input_schema.field(name) for name in key]
            bound.output_schema = pa.schema([*fields, (self._column, pa.int64())])
        return bound

    def initial_state(self) -> KeyedColumns:
        if self.input_schema is None:
            raise InvalidJob("CountByKey learns its keys when it is bound. Run it through a job or a tester.")
        return KeyedColumns(pa.schema([self.input_schema.field(name) for name in self.key]), {self._column: "int64"})

    def open(self) -> None:
        """Load the compiled loops before there are rows to wait for them."""
        counts = self.initial_state()
        counts.count(self._column, counts.rows_for(counts.to_table()))

    def combine(self, rows: pa.Table) -> pa.Table:
        """Keys with their counts, each key once if a sample of the rows says that it pays."""
        keys = rows.select(self.key)
        sample, rest = keys.slice(0, _SAMPLE_ROWS), keys.slice(_SAMPLE_ROWS)
        counts = self.initial_state()
        counts.count(self._column, counts.rows_for(sample))
        if rest.num_rows and len(counts) > _WORTH * sample.num_rows:
            return keys.append_column(self._column, pa.repeat(pa.scalar(1, pa.int64()), keys.num_rows))
        counts.count(self._column, counts.rows_for(rest))
        return counts.to_table()

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> Yields:
        counts: KeyedColumns = state.value
        touched = counts.count(self._column, counts.rows_for(rows), rows[self._column].to_numpy())
        return None if self._silent else [counts.to_table(touched)]

    def lookup(self, value: KeyedColumns, key: tuple[Any, ...]) -> int:
        """The count of one key, 0 if it never came."""
        found = value.get(key)
        return 0 if found is None else int(found[self._column])
