"""Several aggregate functions over the same groups, as columns of one table."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa

from elastic.errors import InvalidJob
from elastic.operators.aggregates.functions import Accumulator, AggregateFunction, Column
from elastic.operators.columns import KeyedColumns
from elastic.operators.kernels import Words

Columns = Mapping[str, Column]

_SAMPLE_ROWS = 65_536  # enough to tell whether groups repeat
_MAX_RATIO = 0.8  # of distinct groups in the sample; above it, grouping the rest costs more than it saves


class Aggregation:
    """Named aggregate functions, bound to the rows of a stage.

    Rows are *lifted* to a table of group columns and accumulators, `reduce` merges lifted rows of the same group, and
    `add` merges them into a state: `KeyedColumns` with the accumulators as its columns.
    """

    def __init__(self, functions: Mapping[str, AggregateFunction]) -> None:
        self._functions = dict(functions)
        self._accumulators: dict[str, Accumulator] = {
            f"{name}.{number}": accumulator
            for name, function in self._functions.items()
            for number, accumulator in enumerate(function.accumulators)
        }

    @classmethod
    def bind(cls, functions: Mapping[str, AggregateFunction], schema: pa.Schema, taken: Sequence[str]) -> Self:
        """Return the functions for rows of a schema; `taken` are the other columns of the results."""
        for name, function in functions.items():
            if not isinstance(function, AggregateFunction):
                raise InvalidJob(
                    f"the aggregate {name!r} is a {type(function).__name__}, not an aggregate function. "
                    "Use those of elastic.operators.functions, such as count() or sum('amount')."
                )
            if name in taken:
                raise InvalidJob(f"an aggregate cannot be named {name!r}: that is a column of its groups. Rename it.")
        return cls({name: function.bind(schema) for name, function in functions.items()})

    @property
    def fields(self) -> list[pa.Field]:
        """The columns of the results."""
        return [pa.field(name, function.result) for name, function in self._functions.items()]

    @property
    def columns(self) -> list[str]:
        """The input columns that the functions read, each once."""
        return list(dict.fromkeys(column for function in self._functions.values() for column in function.columns))

    def new_state(self, groups: pa.Schema, others: Mapping[str, Any] | None = None) -> KeyedColumns:
        """Return a state without groups; `others` are the types of further columns."""
        types = {name: accumulator.dtype for name, accumulator in self._accumulators.items()}
        initial = {name: accumulator.initial for name, accumulator in self._accumulators.items()}
        return KeyedColumns(groups, {**types, **(others or {})}, initial)

    def lift(self, rows: pa.Table, groups: Mapping[str, Any]) -> pa.Table:
        """Return every row as a group of its own: the group columns, then its accumulators."""
        lifted = [column for function in self._functions.values() for column in function.lift(rows)]
        return pa.table({**groups, **dict(zip(self._accumulators, lifted, strict=True))})

    def reduce(self, lifted: pa.Table, groups: pa.Schema) -> pa.Table:
        """Merge lifted rows of the same group, if a sample shows that groups repeat."""
        # Codes of sketches cannot be merged with others, so they are part of what must be equal.
        keys = [*groups, *(pa.field(name, each.lifted) for name, each in self._equal)]
        reduced = KeyedColumns(
            pa.schema(keys),
            {name: each.dtype for name, each in self._mergeable},
            {name: each.initial for name, each in self._mergeable},
        )
        self._reduce_into(reduced, lifted.slice(0, _SAMPLE_ROWS))
        if lifted.num_rows > _SAMPLE_ROWS:
            if len(reduced) > _MAX_RATIO * _SAMPLE_ROWS:
                return lifted
            self._reduce_into(reduced, lifted.slice(_SAMPLE_ROWS))
        return reduced.to_table().select(lifted.schema.names)

    def add(self, state: KeyedColumns, numbers: Words, lifted: pa.Table) -> None:
        """Merge lifted rows into the groups with these row numbers of a state."""
        for name, accumulator in self._accumulators.items():
            accumulator.add(state.column(name), numbers, to_numpy(lifted.column(name)))

    def merge(self, state: KeyedColumns, numbers: Words, source: KeyedColumns, rows: Words) -> None:
        """Merge groups of another state, given by their rows, into the groups with these numbers."""
        for name, accumulator in self._accumulators.items():
            accumulator.merge(state.column(name), numbers, source.column(name)[rows])

    def reset(self, state: KeyedColumns, numbers: Words) -> None:
        """Make groups of a state as if they had no rows."""
        for name, accumulator in self._accumulators.items():
            state.column(name)[numbers] = (
                np.zeros(1, accumulator.dtype) if _is_sketch(accumulator) else accumulator.initial
            )

    def finish(self, columns: Columns) -> Iterator[pa.Array]:
        """Yield the result of every function, given the accumulators of the groups."""
        names = iter(self._accumulators)
        for function in self._functions.values():
            yield function.finish([columns[next(names)] for _ in function.accumulators])

    def finish_rows(self, state: KeyedColumns, rows: Words) -> Iterator[pa.Array]:
        """Yield the results of some groups of a state."""
        yield from self.finish({name: state.column(name)[rows] for name in self._accumulators})

    @property
    def accumulators(self) -> Mapping[str, Accumulator]:
        return self._accumulators

    @property
    def _equal(self) -> list[tuple[str, Accumulator]]:
        return [(name, each) for name, each in self._accumulators.items() if each.merges_equal_only]

    @property
    def _mergeable(self) -> list[tuple[str, Accumulator]]:
        return [(name, each) for name, each in self._accumulators.items() if not each.merges_equal_only]

    def _reduce_into(self, reduced: KeyedColumns, lifted: pa.Table) -> None:
        numbers = reduced.rows_for(lifted)
        for name, accumulator in self._mergeable:
            accumulator.add(reduced.column(name), numbers, to_numpy(lifted.column(name)))


def to_numpy(column: pa.ChunkedArray | pa.Array) -> Column:
    """Return a column without nulls as an array, without copying if it is in one piece."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    values: Column = array.to_numpy(zero_copy_only=False)
    return values


def _is_sketch(accumulator: Accumulator) -> bool:
    return np.dtype(accumulator.dtype).kind == "V"
