"""Rows of a table by owner: a multimap from keys, given by their numbers, to rows that wait for something."""

from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastic.operators import kernels
from elastic.operators.columns.indexes import grow, read_only
from elastic.operators.kernels import Words
from elastic.operators.rows import concat_rows

NEVER = -(1 << 62)  # the time of a removed row: before all others

_MIN_ROWS = 64
_MIN_MATCHES = 1_024


class RowStore:
    """Arrow rows, each with an owner, a time, the time at which it expires and a flag.

    Appending is O(1) amortised, finding the rows of an owner O(its rows), expiring O(rows) with a factor of a
    nanosecond. Rows are kept in a few tables, each at least twice as large as the next, so that each row is copied
    O(log rows) times. Removed rows stay until they are the majority, so the store takes at most twice the memory of its
    live rows. Row numbers are stable until `compact`.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.count = 0  # with removed rows
        self._removed = 0
        self._chunks: list[pa.Table] = []
        self._owners = np.zeros(0, np.int64)
        self._times = np.zeros(0, np.int64)
        self._expires = np.zeros(0, np.int64)
        self._flags = np.zeros(0, np.uint8)
        # Chains of the rows of each owner, newest first; built again where they are missing.
        self._heads = np.zeros(0, np.int64)
        self._following = np.zeros(0, np.int64)
        self._linked = 0

    def __len__(self) -> int:
        return self.count - self._removed

    @property
    def nbytes(self) -> int:
        per_row = sum(array.itemsize for array in (self._owners, self._times, self._expires, self._flags))
        return int(sum(chunk.nbytes for chunk in self._chunks) + per_row * self.count)

    @property
    def owners(self) -> Words:
        return self._owners[: self.count]

    @property
    def flags(self) -> NDArray[np.uint8]:
        """A flag of every row, writable."""
        return self._flags[: self.count]

    @property
    def is_live(self) -> NDArray[np.bool_]:
        """A mask of the rows that have not been removed."""
        return np.asarray(self._times[: self.count] != NEVER, np.bool_)

    def append(self, rows: pa.Table, owners: Words, times: Words | int = 0, expires: Words | int = 0) -> Words:
        """Add rows, without flags; return their numbers."""
        first, self.count = self.count, self.count + rows.num_rows
        if self.count > len(self._owners):
            self._owners, self._times, self._expires, self._flags, self._following = (
                grow(array, first, self.count)
                for array in (self._owners, self._times, self._expires, self._flags, self._following)
            )
        new = slice(first, self.count)
        self._owners[new], self._times[new], self._expires[new], self._flags[new] = owners, times, expires, 0
        if rows.num_rows:
            self._chunks.append(rows)
            self._merge_chunks()
        return np.arange(first, self.count)

    def match(self, owners: Words, lows: Words, highs: Words, below: int | None = None) -> tuple[Words, Words]:
        """Return pairs of a probe and a live row of its owner, with a time within its bounds, both inclusive.

        `below` leaves out rows from that number on. Pairs are in order of probes, then the newest row first.
        """
        self._link(int(owners.max()) + 1 if len(owners) else 0)
        below = self.count if below is None else below
        room = max(_MIN_MATCHES, 2 * len(owners))
        while True:
            probes, rows = np.empty(room, np.int64), np.empty(room, np.int64)
            found = kernels.match_rows(
                read_only(owners),
                read_only(lows),
                read_only(highs),
                below,
                self._heads,
                self._following,
                self._times,
                probes,
                rows,
            )
            if found <= room:
                return probes[:found], rows[:found]
            room = found

    def rows_of(self, owners: Words) -> tuple[Words, Words]:
        """Return pairs of a probe and a live row of its owner, the newest row first."""
        return self.match(owners, np.full(len(owners), NEVER + 1), np.full(len(owners), -NEVER))

    def newest(self, owners: Words) -> Words:
        """Return the newest row of each owner, -1 for none, if older rows are removed when a row is added."""
        if not self.count or not len(owners):
            return np.full(len(owners), -1, np.int64)
        self._link(int(owners.max()) + 1)
        rows = self._heads[owners]
        return np.where((rows >= 0) & (self._times[rows] != NEVER), rows, -1)

    def take(self, rows: Words) -> pa.Table:
        """Return some rows, as a row of nulls for -1. O(rows taken)."""
        places = np.where(rows < 0, 0, rows)
        if len(self._chunks) == 1:
            table = self._chunks[0]
        else:
            table, places = self._take_from_chunks(places)
        if (rows < 0).any():
            return table.take(pa.array(places, mask=rows < 0)) if self._chunks else _nulls(self.schema, len(rows))
        return table.take(pa.array(places))

    def expired(self, now: int) -> Words:
        """Return the live rows that expire at this time or before."""
        return np.flatnonzero((self._expires[: self.count] <= now) & self.is_live)

    def unexpired(self, rows: Words, now: int) -> Words:
        """Return these rows, -1 for those that expire at this time or before, and for -1."""
        if not self.count:
            return rows
        return np.where((rows >= 0) & (self._expires[rows] > now), rows, -1)

    def next_expiry(self) -> int | None:
        """Return the time at which the first live row expires."""
        expires = self._expires[: self.count][self.is_live]
        return int(expires.min()) if len(expires) else None

    def remove(self, rows: Words) -> None:
        """Remove live rows, each given once."""
        self._times[rows] = NEVER
        self._removed += len(rows)

    def compact(self) -> bool:
        """Drop removed rows if they are the majority; return whether row numbers have changed."""
        if self._removed <= max(len(self), _MIN_ROWS):
            return False
        self._replace(self.select(self.is_live))
        return True

    def renumber(self, numbers: Words) -> None:
        """Give owner i the number `numbers[i]`."""
        self._owners = numbers[self.owners]
        self._times, self._expires = self._times[: self.count], self._expires[: self.count]
        self._flags = self._flags[: self.count]
        self._following = np.empty(self.count, np.int64)
        self._heads, self._linked = np.zeros(0, np.int64), 0

    def select(self, mask: NDArray[np.bool_]) -> Self:
        """Return a copy of some rows."""
        selected = type(self)(self.schema)
        rows = np.flatnonzero(mask)
        if len(rows):
            numbers = selected.append(self.take(rows), self._owners[rows], self._times[rows], self._expires[rows])
            selected._flags[numbers] = self._flags[rows]  # noqa: SLF001 - its own
            selected._removed = int(np.count_nonzero(selected._times[: selected.count] == NEVER))  # noqa: SLF001 - its own
        return selected

    def join(self, other: Self, numbers: Words) -> None:
        """Add the live rows of another store, whose owner i is `numbers[i]` here."""
        live = other.select(other.is_live)
        rows = self.append(
            live.take(np.arange(live.count)),
            numbers[live.owners],
            live._times[: live.count],  # noqa: SLF001 - its own
            live._expires[: live.count],  # noqa: SLF001 - its own
        )
        self._flags[rows] = live.flags

    def to_table(self) -> pa.Table:
        """Return the live rows."""
        return self.take(np.flatnonzero(self.is_live)) if self._chunks else self.schema.empty_table()

    def __getstate__(self) -> dict[str, Any]:
        """Return what is stored: everything but the chains."""
        live = self.select(self.is_live) if self._removed else self
        columns = {
            name: getattr(live, name)[: live.count].copy() for name in ("_owners", "_times", "_expires", "_flags")
        }
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, live.schema) as writer:
            for chunk in live._chunks:  # noqa: SLF001 - its own
                writer.write_table(chunk)
        return {"rows": sink.getvalue().to_pybytes(), "count": live.count, **columns}

    def __setstate__(self, state: dict[str, Any]) -> None:
        with pa.ipc.open_stream(state["rows"]) as reader:
            rows = reader.read_all()
        type(self).__init__(self, rows.schema)
        for name in ("_owners", "_times", "_expires", "_flags"):
            setattr(self, name, state[name])
        self.count = state["count"]
        self._following = np.empty(self.count, np.int64)
        self._chunks = [rows] if self.count else []

    def _replace(self, other: Self) -> None:
        self.__dict__.update(other.__dict__)

    def _merge_chunks(self) -> None:
        """Merge the last tables until each is at least twice as large as the next."""
        merged = [self._chunks.pop()]
        rows = merged[0].num_rows
        while self._chunks and self._chunks[-1].num_rows < 2 * rows:
            merged.insert(0, self._chunks.pop())
            rows += merged[0].num_rows
        self._chunks.append(concat_rows(merged).combine_chunks())

    def _take_from_chunks(self, rows: Words) -> tuple[pa.Table, Words]:
        """Return a table that has these rows, in another order, and where each is in it."""
        if not self._chunks:
            return self.schema.empty_table(), rows
        offsets = np.cumsum([0, *(chunk.num_rows for chunk in self._chunks)])
        chunks = np.searchsorted(offsets, rows, "right") - 1
        parts, places, done = [], np.empty(len(rows), np.int64), 0
        for number, chunk in enumerate(self._chunks):
            of_chunk = np.flatnonzero(chunks == number)
            if len(of_chunk):
                parts.append(chunk.take(pa.array(rows[of_chunk] - offsets[number])))
                places[of_chunk] = np.arange(done, done + len(of_chunk))
                done += len(of_chunk)
        return (concat_rows(parts).combine_chunks() if parts else self.schema.empty_table()), places

    def _link(self, owners: int) -> None:
        """Bring the chains up to date, for at least this many owners."""
        if self._linked == self.count and len(self._heads) >= owners:
            return
        needed = max(owners, int(self.owners[self._linked :].max(initial=-1)) + 1)
        if len(self._heads) < needed:
            self._heads = grow(self._heads, len(self._heads), needed, fill=-1)
        kernels.link_rows(self.owners, self._linked, self._heads, self._following)
        self._linked = self.count


def _nulls(schema: pa.Schema, rows: int) -> pa.Table:
    return pa.Table.from_arrays([pa.nulls(rows, field.type) for field in schema], schema=schema)
