"""Operators that are ready to use."""

from typing import Any, Self

import pyarrow as pa

from elastic.errors import InvalidJob
from elastic.operators.columns import KeyedColumns
from elastic.operators.context import Context
from elastic.operators.operator import Operator, State, Yields


class CountByKey(Operator):
    """How often each key has come: gives the new count of every key in the batch, or with `silent` nothing.

    The state is a row per key in `KeyedColumns`; a batch costs O(rows) without a Python object for any row. Keys may
    be of any type that can be routed. Output: the key columns and the count, keys in order of first appearance.
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

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> Yields:
        counts: KeyedColumns = state.value
        touched = counts.count(self._column, counts.rows_for(rows))
        return None if self._silent else [counts.to_table(touched)]

    def lookup(self, value: KeyedColumns, key: tuple[Any, ...]) -> int:
        """The count of one key, 0 if it never came."""
        found = value.get(key)
        return 0 if found is None else int(found[self._column])
