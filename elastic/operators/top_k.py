"""The first rows of each key by some column."""

from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastic.errors import InvalidJob, InvalidSetting, UnknownColumn
from elastic.operators.columns import KeyedColumns, KeyedRows, RowStore, load_kernels
from elastic.operators.context import Context
from elastic.operators.expiry import parse_ttl_ms, schedule_sweep
from elastic.operators.kernels import Words
from elastic.operators.operator import Hashes, Operator, State, Yields
from elastic.operators.rows import concat_rows
from elastic.operators.timers import Timer
from elastic.routing.hashing import is_among

_OWNER, _BY = "elastic.owner", "elastic.by"


class TopK(Operator):
    """Keeps the first `k` rows of each key by a column, the greatest first, and emits them when they change.

        TopK(10, by="price")

    Results are the rows, with their rank from 1 in column `rank`. All rows of a key are emitted again if one of them is
    new, so the last results of a key are its first rows: Spark's output mode "update". Of rows with the same value the
    one that came earlier is first, and nulls are last. `ascending=True` begins with the least. With `ttl`, such as
    "1 day", a key whose first rows have not changed for that long is forgotten, as by a window or a day in the key.

    Senders keep the first rows of each key of their part. The state has at most k rows per key.
    """

    copies_timers = True

    def __init__(self, k: int, *, by: str, ascending: bool = False, rank: str = "rank", ttl: str | None = None) -> None:
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise InvalidSetting("k", k, "expected a number of rows, at least 1")
        self._k = k
        self._by = by
        self._order = "ascending" if ascending else "descending"
        self._rank = rank
        self._ttl_ms = parse_ttl_ms(ttl)

    def bind(self, key: tuple[str, ...], input_schema: pa.Schema) -> Self:
        bound = super().bind(key, input_schema)
        if self._by not in input_schema.names:
            raise UnknownColumn(self._by, input_schema.names)
        if self._rank in input_schema.names:
            raise InvalidJob(f"the rows have a column {self._rank!r} already. Name another: TopK(..., rank='place').")
        bound.output_schema = pa.schema([*input_schema, (self._rank, pa.int64())])
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
        return KeyedRows(KeyedColumns(pa.schema(self.key_fields), {"changed": "int64"}), RowStore(self.input_schema))

    def combine(self, rows: pa.Table) -> pa.Table:
        """Return the first rows of each key."""
        owners = KeyedColumns(pa.schema(self.key_fields), {}).rows_for(rows)
        order, ranks = self._rank_rows(owners, rows.column(self._by))
        is_first = ranks < self._k
        return rows if is_first.all() else rows.take(pa.array(np.sort(order[is_first])))

    def merge(self, partials: pa.Table) -> pa.Table:
        return self.combine(partials)

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> Yields:
        held: KeyedRows = state.value
        owners = held.keys.rows_for(rows)
        touched = np.unique(owners)
        if self._ttl_ms is not None:
            self._forget(held, touched, context)
        _, known = held.rows.rows_of(touched)
        known = np.sort(known)
        candidates = concat_rows([held.rows.take(known), rows.select(held.rows.schema.names)]).combine_chunks()
        owners = np.concatenate([held.rows.owners[known], owners])
        order, ranks = self._rank_rows(owners, candidates.column(self._by))
        is_first = ranks < self._k
        order, ranks = order[is_first], ranks[is_first]
        is_changed = np.zeros(len(held.keys), np.bool_)
        is_changed[owners[order[order >= len(known)]]] = True
        order, ranks = order[is_changed[owners[order]]], ranks[is_changed[owners[order]]]
        if not len(order):
            return
        results = candidates.take(pa.array(order))
        held.rows.remove(known[is_changed[owners[: len(known)]]])
        # In the order of arrival, which decides between rows of the same value.
        arrival = np.argsort(order, kind="stable")
        held.rows.append(results.take(pa.array(arrival)), owners[order[arrival]])
        held.rows.compact()
        held.keys.column("changed")[is_changed] = context.timestamp_ms
        if self._ttl_ms is not None:
            schedule_sweep(context, context.timestamp_ms + self._ttl_ms, self._ttl_ms)
        yield results.append_column(self._rank, pa.array(ranks + 1))

    def handle_timer(self, _: Timer, state: State, context: Context) -> Yields:
        held: KeyedRows = state.value
        assert self._ttl_ms is not None  # noqa: S101 - for the type checker; no one else sets timers
        self._forget(held, np.arange(len(held.keys)), context)
        is_used = np.zeros(len(held.keys), np.bool_)
        is_used[held.rows.owners[held.rows.is_live]] = True
        if not is_used.all():
            held.rows = held.rows.select(held.rows.is_live)
            held.keep_keys(is_used)
        if len(held.keys):
            first = int(held.keys.column("changed").min())
            schedule_sweep(context, first + self._ttl_ms, self._ttl_ms)

    def part(self, state: State, hashes: Hashes) -> KeyedRows:
        held: KeyedRows = state.value
        return held.part(is_among(held.keys.hash_keys(self.key), hashes))

    def join(self, state: State, part: KeyedRows) -> None:
        held: KeyedRows = state.value
        keys = part.keys.take_keys()
        numbers = held.keys.rows_for(keys if len(keys) > 1 else keys[0])
        held.keys.column("changed")[numbers] = part.keys.column("changed")
        held.rows.join(part.rows, numbers)

    def state_rows(self, value: KeyedRows) -> pa.Table:
        """Return the first rows of all keys, with their ranks."""
        rows = np.flatnonzero(value.rows.is_live)
        taken = value.rows.take(rows)
        order, ranks = self._rank_rows(value.rows.owners[rows], taken.column(self._by))
        return taken.take(pa.array(order)).append_column(self._rank, pa.array(ranks + 1))

    def lookup(self, value: KeyedRows, key: tuple[Any, ...]) -> list[dict[str, Any]]:
        """Return the first rows of one key, in order."""
        owner = value.keys.find_key(key)
        if owner < 0:
            return []
        _, rows = value.rows.rows_of(np.array([owner]))
        taken = value.rows.take(np.sort(rows))
        order, _ = self._rank_rows(np.zeros(len(rows), np.int64), taken.column(self._by))
        found: list[dict[str, Any]] = taken.take(pa.array(order)).to_pylist()
        return found

    def _rank_rows(self, owners: Words, by: pa.ChunkedArray) -> tuple[Words, Words]:
        """Return the rows in the order of (owner, by, position), and the rank of each within its owner, from 0."""
        table = pa.table({_OWNER: owners, _BY: by})
        order = pc.sort_indices(table, [(_OWNER, "ascending"), (_BY, self._order)]).to_numpy().astype(np.int64)
        in_order = owners[order]
        begins = np.flatnonzero(np.diff(in_order, prepend=-1))
        ranks = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
        return order, ranks

    def _forget(self, held: KeyedRows, owners: Words, context: Context) -> None:
        """Remove the rows of those of these keys that have expired."""
        assert self._ttl_ms is not None  # noqa: S101 - for the type checker
        expired = owners[held.keys.column("changed")[owners] + self._ttl_ms <= context.timestamp_ms]
        _, rows = held.rows.rows_of(expired)
        held.rows.remove(rows)
