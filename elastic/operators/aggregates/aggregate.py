"""Aggregates per key, over all rows so far or over windows."""

from typing import Any, Self

import numpy as np
import pyarrow as pa

from elastic.errors import InvalidJob
from elastic.operators.aggregates.aggregation import Aggregation
from elastic.operators.aggregates.functions import AggregateFunction
from elastic.operators.aggregates.panes import PaneAggregate
from elastic.operators.aggregates.sessions import SessionAggregate
from elastic.operators.aggregates.windowed import LateRows, OutputMode, WindowedAggregate
from elastic.operators.columns import KeyedColumns, load_kernels
from elastic.operators.context import Context
from elastic.operators.expiry import Expiry, parse_ttl_ms
from elastic.operators.operator import Operator, State, Yields
from elastic.operators.timers import Timer
from elastic.operators.windows import SessionWindow, Window


class Aggregate(Operator):
    """Aggregates the rows of each key, and emits the new results of every key in the batch.

        Aggregate(orders=F.count(), total=F.sum("amount"))

    The key columns are followed by one column per function, in the order given. This is Spark's `groupBy(key).agg(...)`
    in output mode "update"; `over` aggregates windows. Senders aggregate rows before they send them if keys repeat. The
    state has a row per key in `KeyedColumns`; with `ttl`, such as "1 hour", keys without rows for that long are
    forgotten (see `elastic.operators.expiry`). With `silent` nothing is emitted; query the state.
    """

    copies_timers = True

    def __init__(self, *, ttl: str | None = None, silent: bool = False, **functions: AggregateFunction) -> None:
        if not functions:
            raise InvalidJob("an aggregate needs a function. Write, for example, Aggregate(rows=count()).")
        self._functions = functions
        self._silent = silent
        ttl_ms = parse_ttl_ms(ttl)
        self._expiry = None if ttl_ms is None else Expiry(ttl_ms)
        self.aggregation = Aggregation({})

    @property
    def functions(self) -> dict[str, AggregateFunction]:
        return dict(self._functions)

    @property
    def handles_timers(self) -> bool:
        return self._expiry is not None

    @property
    def has_timers(self) -> bool:
        return False  # they only forget what is old

    def over(
        self,
        window: Window | SessionWindow,
        *,
        time: str | None = None,
        lateness: str = "0 seconds",
        output_mode: OutputMode = "append",
        late: LateRows = "drop",
    ) -> WindowedAggregate:
        """Return the same aggregates by key and window.

            Aggregate(clicks=F.count()).over(window("10 minutes", "5 minutes"), time="ts")

        `time` is the column that places a row in windows; without it a row is placed by processing time, the time of
        its batch. The job needs an event time and a watermark delay for `time`. Output has the key columns, the window
        as a struct with `start` and `end`, as in Spark, and the functions.

        - `output_mode="append"` emits each window once, when the watermark has reached its end plus the `lateness`.
        - `output_mode="update"` emits the windows of the rows of each batch as they are now.

        Until then, too, rows are accepted; a row is late if all of its windows are complete. Late rows are dropped, or
        emitted unchanged: with `late="sink"` they are the results of this stage, and the windows go to the next stage,
        with `late="next"` the other way round; see `with_late_rows`.
        """
        if self._expiry is not None or self._silent:
            raise InvalidJob("windows end by themselves, and are emitted. Omit ttl and silent.")
        kind: Any = SessionAggregate if isinstance(window, SessionWindow) else PaneAggregate
        aggregate: WindowedAggregate = kind(
            self._functions, window, time=time, lateness=lateness, output_mode=output_mode, late=late
        )
        return aggregate

    def bind(self, key: tuple[str, ...], input_schema: pa.Schema) -> Self:
        bound = super().bind(key, input_schema)
        bound.aggregation = Aggregation.bind(self._functions, input_schema, key)
        if not self._silent:
            bound.output_schema = pa.schema([*bound.key_fields, *bound.aggregation.fields])
        return bound

    def open(self) -> None:
        """Load the compiled kernels before the first rows."""
        load_kernels()

    def initial_state(self) -> KeyedColumns:
        others = {} if self._expiry is None else {Expiry.COLUMN: "int64"}
        return self.aggregation.new_state(pa.schema(self.key_fields), others)

    def combine(self, rows: pa.Table) -> pa.Table:
        lifted = self.aggregation.lift(rows, {name: rows.column(name) for name in self.key})
        return self.aggregation.reduce(lifted, pa.schema(self.key_fields))

    def merge(self, partials: pa.Table) -> pa.Table:
        return self.aggregation.reduce(partials, pa.schema(self.key_fields))

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> Yields:
        groups: KeyedColumns = state.value
        numbers = groups.rows_for(rows)
        if self._expiry is not None:
            touched = np.unique(numbers)
            self.aggregation.reset(groups, touched[self._expiry.is_expired(groups, touched, context)])
            self._expiry.renew(groups, touched, context)
        self.aggregation.add(groups, numbers, rows)
        if self._silent:
            return None
        return [self._results(groups, np.unique(numbers))]

    def handle_timer(self, _: Timer, state: State, context: Context) -> Yields:
        assert self._expiry is not None  # noqa: S101 - for the type checker; no one else sets timers
        self._expiry.sweep(state.value, context)

    def part(self, state: State, hashes: Any) -> Any:
        return super().part(state, hashes)

    def join(self, state: State, part: Any) -> None:
        super().join(state, part)

    def state_rows(self, value: KeyedColumns) -> pa.Table:
        return self._results(value, np.arange(len(value)))

    def lookup(self, value: KeyedColumns, key: tuple[Any, ...]) -> dict[str, Any] | None:
        """Return the results of one key by name; None for an unknown key."""
        row = value.find_key(key)
        if row < 0:
            return None
        found = self._results(value, np.array([row])).drop_columns(list(self.key)).to_pylist()
        return dict(found[0])

    def _results(self, groups: KeyedColumns, rows: Any) -> pa.Table:
        arrays = [*groups.take_keys(rows), *self.aggregation.finish_rows(groups, rows)]
        return pa.Table.from_arrays(arrays, schema=pa.schema([*self.key_fields, *self.aggregation.fields]))
