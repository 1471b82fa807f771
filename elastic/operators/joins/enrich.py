"""Enrichment of a stream by a table that changes."""

from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa

from elastic.errors import InvalidSetting
from elastic.operators.columns import KeyedColumns, KeyedRows, RowStore, load_kernels
from elastic.operators.context import Context
from elastic.operators.expiry import parse_ttl_ms, schedule_sweep
from elastic.operators.joins.sides import INPUT, Side, check_sides, split_sides, stored_schema
from elastic.operators.operator import Hashes, Operator, State, Yields
from elastic.operators.timers import Timer
from elastic.routing.hashing import is_among

_FOREVER = 1 << 62


class Enrich(Operator):
    """Adds to every row of a stream the newest row of its key in a table.

        Enrich(Side("orders", columns=["amount"]), table=Side("customers", columns=["city"]))

    Rows of the table and of the stream come as one stream, and column `tag` names the input of each. A row of the table
    replaces the one before it of its key. Within a batch rows of the table come first, so a stream row sees the changes
    of its own batch. `how="left"` emits stream rows without a table row, with nulls; "inner" drops them. Results are
    emitted at once: with the key columns and the columns of both sides. With `ttl`, such as "1 day", a table row that
    has not been replaced for that long is forgotten (see `elastic.operators.expiry`).

    This is a join by processing time: a stream row that arrives before its table row stays without it. Use
    `IntervalJoin` where it has to wait.
    """

    copies_timers = True

    def __init__(
        self,
        stream: Side,
        *,
        table: Side,
        how: Literal["inner", "left"] = "left",
        tag: str = INPUT,
        ttl: str | None = None,
    ) -> None:
        if how not in ("inner", "left"):
            raise InvalidSetting("how", how, "expected 'inner' or 'left'")
        self._stream, self._table = stream, table
        self._how = how
        self._tag = tag
        self._ttl_ms = parse_ttl_ms(ttl)

    def bind(self, key: tuple[str, ...], input_schema: pa.Schema) -> Self:
        bound = super().bind(key, input_schema)
        check_sides(self._stream, self._table, input_schema, self._tag, key)
        of_sides = [*self._stream.schema(input_schema), *self._table.schema(input_schema)]
        bound.output_schema = pa.schema([*bound.key_fields, *of_sides])
        return bound

    @property
    def handles_timers(self) -> bool:
        return self._ttl_ms is not None

    @property
    def has_timers(self) -> bool:
        return False  # they only forget what is old

    def open(self) -> None:
        """Load the compiled kernels before the first rows."""
        load_kernels()

    def initial_state(self) -> KeyedRows:
        assert self.input_schema is not None  # noqa: S101 - for the type checker; states are those of bound operators
        return KeyedRows(
            KeyedColumns(pa.schema(self.key_fields), {}), RowStore(stored_schema(self._table, self.input_schema))
        )

    def combine(self, rows: pa.Table) -> pa.Table:
        """Return the columns that are needed."""
        columns = [*self.key, self._tag, *self._stream.columns.values(), *self._table.columns.values()]
        return rows.select(list(dict.fromkeys(columns)))

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> Yields:
        held: KeyedRows = state.value
        is_stream, is_table = split_sides(rows, self._tag, self._stream, self._table)
        if is_table.any():
            self._replace(held, rows.filter(pa.array(is_table)), context)
        if is_stream.any():
            yield self._enrich(held, rows.filter(pa.array(is_stream)), context)

    def handle_timer(self, _: Timer, state: State, context: Context) -> Yields:
        held: KeyedRows = state.value
        assert self._ttl_ms is not None  # noqa: S101 - for the type checker; no one else sets timers
        held.rows.remove(held.rows.expired(context.timestamp_ms))
        if held.rows.compact():
            is_used = np.zeros(len(held.keys), np.bool_)
            is_used[held.rows.owners] = True
            held.keep_keys(is_used)
        first = held.rows.next_expiry()
        if first is not None:
            schedule_sweep(context, first, self._ttl_ms)

    def part(self, state: State, hashes: Hashes) -> KeyedRows:
        held: KeyedRows = state.value
        return held.part(is_among(held.keys.hash_keys(self.key), hashes))

    def join(self, state: State, part: KeyedRows) -> None:
        keys = part.keys.take_keys()
        numbers = state.value.keys.rows_for(keys if len(keys) > 1 else keys[0])
        state.value.rows.join(part.rows, numbers)

    def state_rows(self, value: KeyedRows) -> pa.Table:
        """Return the table: the key columns, and its columns."""
        rows = np.flatnonzero(value.rows.is_live)
        taken = value.rows.take(rows)
        arrays = [*value.keys.take_keys(value.rows.owners[rows]), *(taken.column(name) for name in self._table.columns)]
        return pa.Table.from_arrays(arrays, [*self.key, *self._table.columns])

    def lookup(self, value: KeyedRows, key: tuple[Any, ...]) -> dict[str, Any] | None:
        """Return the columns of the table for one key; None for an unknown key."""
        owner = value.keys.find_key(key)
        row = value.rows.newest(np.array([owner])) if owner >= 0 else np.array([-1])
        return None if row[0] < 0 else dict(value.rows.take(row).select(list(self._table.columns)).to_pylist()[0])

    def _replace(self, held: KeyedRows, rows: pa.Table, context: Context) -> None:
        owners = held.keys.rows_for(rows)
        last = np.full(len(held.keys), -1, np.int64)
        last[owners] = np.arange(len(owners))  # of several rows of a key, the last one stays
        rows = rows.take(pa.array(last[last >= 0]))
        owners = np.flatnonzero(last >= 0)
        replaced = held.rows.newest(owners)
        held.rows.remove(replaced[replaced >= 0])
        expires = _FOREVER if self._ttl_ms is None else context.timestamp_ms + self._ttl_ms
        held.rows.append(self._table.select(rows), owners, expires=expires)
        held.rows.compact()
        if self._ttl_ms is not None:
            schedule_sweep(context, expires, self._ttl_ms)

    def _enrich(self, held: KeyedRows, rows: pa.Table, context: Context) -> pa.Table:
        owners = held.keys.find(rows)
        known = np.flatnonzero(owners >= 0)
        found = np.full(len(owners), -1, np.int64)
        found[known] = held.rows.newest(owners[known])
        if self._ttl_ms is not None:
            found[known] = held.rows.unexpired(found[known], context.timestamp_ms)
        if self._how == "inner" and (found < 0).any():
            rows, found = rows.filter(pa.array(found >= 0)), found[found >= 0]
        of_table = held.rows.take(found)
        arrays = [
            *(rows.column(name) for name in self.key),
            *(rows.column(column) for column in self._stream.columns.values()),
            *(of_table.column(name) for name in self._table.columns),
        ]
        return pa.Table.from_arrays(arrays, schema=self.output_schema)
