"""Base of aggregates over tumbling, sliding and session windows: options, columns, late rows."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from elastic.errors import InvalidJob, InvalidSetting
from elastic.operators.aggregates.aggregation import Aggregation
from elastic.operators.aggregates.functions import AggregateFunction
from elastic.operators.columns import load_kernels
from elastic.operators.context import Context
from elastic.operators.destinations import ToNext, ToSink
from elastic.operators.event_clock import Clock, to_delay_ms
from elastic.operators.kernels import Words
from elastic.operators.operator import Operator, Yields
from elastic.operators.windows import parse_duration
from elastic.routing.hashing import hash_key

OutputMode: TypeAlias = Literal["append", "update"]
LateRows: TypeAlias = Literal["drop", "sink", "next"]


class WindowedAggregate(Operator):
    """Aggregates rows by key and window; see `Aggregate.over`."""

    copies_timers = True
    window_column = "window"

    def __init__(
        self,
        functions: Mapping[str, AggregateFunction],
        *,
        time: str | None,
        lateness: str,
        output_mode: OutputMode,
        late: LateRows,
    ) -> None:
        if output_mode not in get_args(OutputMode):
            raise InvalidSetting("output_mode", output_mode, "expected 'append' or 'update'")
        if late not in get_args(LateRows):
            raise InvalidSetting("late", late, "expected 'drop', 'sink' or 'next'")
        if late != "drop" and time is None:
            raise InvalidJob("no row is late in processing time. Name a time column, or omit `late`.")
        self._functions = dict(functions)
        self._time = time
        self._lateness = parse_duration(lateness, "lateness", can_be_zero=True)
        self._output_mode = output_mode
        self.late = late
        self.aggregation = Aggregation({})
        self.clock = Clock(None, pa.timestamp("us", "UTC"))

    def bind(self, key: tuple[str, ...], input_schema: pa.Schema) -> Self:
        bound = super().bind(key, input_schema)
        if self.window_column in key:
            raise InvalidJob(f"a key column cannot be named {self.window_column!r}: windows have that name. Rename it.")
        bound.clock = Clock.of(self._time, input_schema, self._lateness)
        bound.aggregation = Aggregation.bind(self._functions, input_schema, [*key, self.window_column])
        bound.output_schema = bound.result_schema
        if self.late == "next":
            bound.next_schema = input_schema
        elif self.late == "sink":
            bound.output_schema, bound.next_schema = input_schema, bound.result_schema
        bound.output_delay_ms = to_delay_ms(self._lateness + self.window_length)
        return bound

    @property
    def window_length(self) -> int:
        """How long before the end of a window a time may be that its results have, in microseconds."""
        raise NotImplementedError

    def open(self) -> None:
        """Load the compiled kernels before the first rows."""
        load_kernels()

    @property
    def result_schema(self) -> pa.Schema:
        """The key columns, the window as a struct of its start and end, and a column per function."""
        time = self.clock.result_type
        window = pa.struct([("start", time), ("end", time)])
        return pa.schema([*self.key_fields, (self.window_column, window), *self.aggregation.fields])

    def _describe(self, window: object) -> str:
        functions = ", ".join(f"{name}={function!r}" for name, function in self._functions.items())
        time = "" if self._time is None else f", time={self._time!r}"
        return f"Aggregate({functions}).over({window!r}{time})"

    def _to_results(self, keys: list[pa.Array], starts: Words, ends: Words, results: Iterator[pa.Array]) -> pa.Table:
        times = [self.clock.to_results(starts), self.clock.to_results(ends)]
        window = pa.StructArray.from_arrays(times, fields=list(self.result_schema.field(self.window_column).type))
        return pa.Table.from_arrays([*keys, window, *results], schema=self.result_schema)

    def _emit(self, results: pa.Table) -> Yields:
        """Return results for where they go: where late rows do not."""
        return {"drop": results, "next": ToSink(results), "sink": ToNext(results)}[self.late]

    def _emit_late(self, rows: pa.Table) -> Yields:
        return ToNext(rows) if self.late == "next" else ToSink(rows)

    def _drop_untimed(self, rows: pa.Table, context: Context | None = None) -> tuple[pa.Table, Words]:
        """Return the rows that have a time, and their times; as in Spark, others are in no window."""
        times, is_valid = self.clock.times(rows, context)
        if is_valid is None:
            return rows, times
        return rows.filter(pa.array(is_valid)), times[is_valid]

    def _hash(self, key: tuple[Any, ...]) -> np.int64:
        return np.int64(hash_key(*key, types=[field.type for field in self.key_fields]))
