"""Ready-made operators."""

from typing import Any, Self

import pyarrow as pa

from elastic.errors import InvalidJob
from elastic.operators.columns import KeyedColumns
from elastic.operators.context import Context
from elastic.operators.operator import Operator, State, Yields

_SAMPLE_ROWS = 65_536  # enough to tell whether keys repeat
_MAX_RATIO = 0.8  # of distinct keys in the sample; above it, counting the rest costs more than it saves


class CountByKey(Operator):
    """Counts the rows of each key: emits the new count of every key in the batch, or with `silent` nothing.

    Senders count rows before they send them if keys repeat, so that only keys with counts travel. The state has a row
    per key in `KeyedColumns`; a batch costs O(rows) and creates no Python objects. Keys may be of any type that can be
    routed. Output: the key columns and the count, keys in order of first appearance.
    """

    def __init__(self, column: str = "count", *, silent: bool = False) -> None:
        self._column = column
        self._silent = silent

    def bind(self, key: tuple[str, ...], input_schema: pa.Schema) -> Self:
        bound = super().bind(key, input_schema)
        if self._column in key:
            raise InvalidJob(f"the count cannot be named {self._column!r}: that is a key column. Choose another name.")
        if not self._silent:
            fields = [input_schema.field(name) for name in key]
            bound.output_schema = pa.schema([*fields, (self._column, pa.int64())])
        return bound

    def initial_state(self) -> KeyedColumns:
        if self.input_schema is None:
            raise InvalidJob("CountByKey gets its keys when it is bound. Run it in a job or in an OperatorTester.")
        return KeyedColumns(pa.schema([self.input_schema.field(name) for name in self.key]), {self._column: "int64"})

    def open(self) -> None:
        """Load the compiled kernels before the first rows."""
        counts = self.initial_state()
        counts.count(self._column, counts.rows_for(counts.to_table()))

    def combine(self, rows: pa.Table) -> pa.Table:
        """Return keys with counts; each key once if a sample of the rows shows enough repetition."""
        keys = rows.select(self.key)
        sample, rest = keys.slice(0, _SAMPLE_ROWS), keys.slice(_SAMPLE_ROWS)
        counts = self.initial_state()
        counts.count(self._column, counts.rows_for(sample))
        if rest.num_rows and len(counts) > _MAX_RATIO * sample.num_rows:
            return keys.append_column(self._column, pa.repeat(pa.scalar(1, pa.int64()), keys.num_rows))
        counts.count(self._column, counts.rows_for(rest))
        return counts.to_table()

    def merge(self, partials: pa.Table) -> pa.Table:
        """Return each key once, with the sum of its counts."""
        counts = self.initial_state()
        counts.count(self._column, counts.rows_for(partials), partials[self._column].to_numpy())
        return counts.to_table()

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> Yields:
        counts: KeyedColumns = state.value
        touched = counts.count(self._column, counts.rows_for(rows), rows[self._column].to_numpy())
        return None if self._silent else [counts.to_table(touched)]

    def lookup(self, value: KeyedColumns, key: tuple[Any, ...]) -> int:
        """Return the count of one key, 0 for unknown keys."""
        found = value.get(key)
        return 0 if found is None else int(found[self._column])
