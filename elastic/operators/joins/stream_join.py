"""Joins of two streams, by the distance of their times or by windows.

Rows of both inputs come in one stream, and a column names the input of each, as it does in a stage with several
inputs. A row waits for rows of the other input until the watermark says that no more of them can match. The watermark
of a stage is at most that of each of its inputs, so a join loses nothing when one input runs ahead of the other; and
rows of a key from both inputs are in the same task.

An inner join then has exactly the pairs of a batch join over all rows that are not late; an outer join also has every
such row without a match, once, when it has become certain that none will come. Rows without a time are dropped.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elastic.durations import parse_duration_ms
from elastic.errors import InvalidJob, InvalidOutput, InvalidSetting
from elastic.operators.columns import KeyedColumns, RowStore, load_kernels
from elastic.operators.context import Context
from elastic.operators.event_clock import FOREVER, Clock, to_delay_ms
from elastic.operators.joins.sides import INPUT, How, Side, check_how, check_sides, split_sides, stored_schema
from elastic.operators.kernels import Words
from elastic.operators.operator import Hashes, Operator, State, Yields
from elastic.operators.timers import Timer
from elastic.operators.windows import Window, parse_duration
from elastic.routing.hashing import is_among

_TIMER = "elastic.join"
_END = "elastic.end"
_MIN_KEYS = 64
LEFT, RIGHT = 0, 1
UNMATCHABLE = 1 << 61  # the time of a row that matches nothing: within no bounds

Condition: TypeAlias = Callable[[pa.Table], Any]  # from pairs, as results, to a mask as an Arrow or NumPy array


@dataclass
class JoinState:
    """The waiting rows of both inputs, which share their keys, and when the first of them expires."""

    keys: KeyedColumns
    stores: list[RowStore]
    due: int = FOREVER

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + sum(store.nbytes for store in self.stores)

    def drop_unused_keys(self) -> None:
        """Drop keys without rows if they are the majority: O(1) amortised per key."""
        is_used = np.zeros(len(self.keys), np.bool_)
        for store in self.stores:
            store.compact()
            is_used[store.owners] = True
        if len(is_used) > 2 * np.count_nonzero(is_used) + _MIN_KEYS:
            self.keep_keys(is_used)

    def keep_keys(self, is_kept: NDArray[np.bool_]) -> None:
        """Keep only these keys, which are those of all rows."""
        self.keys = self.keys.select(is_kept)
        for store in self.stores:
            store.renumber(np.cumsum(is_kept) - 1)


class Arrivals(NamedTuple):
    """Rows of one input in a batch: what is kept of them, their keys as numbers, their times, when they expire."""

    rows: pa.Table
    owners: Words
    times: Words
    expires: Words


class Placed(NamedTuple):
    """Rows of a batch, possibly several times, with what they are found by: times, and keys beside the key columns."""

    rows: Words
    times: Words
    expires: Words
    keys: list[pa.Array]


class StreamJoin(Operator):
    """Joins two inputs; see `IntervalJoin` and `WindowJoin`, which say which rows of a key match."""

    copies_timers = True

    def __init__(self, left: Side, right: Side, *, how: How, where: Condition | None, tag: str, lateness: str) -> None:
        check_how(how)
        if where is not None and not callable(where):
            raise InvalidSetting("where", where, "expected a function from a table of pairs to a mask")
        for side in (left, right):
            if side.time is None:
                raise InvalidJob(f"input {side.name!r} has no time. Write Side({side.name!r}, time='its time column').")
        self._sides = (left, right)
        self._keeps = (how in ("left", "full"), how in ("right", "full"))  # rows without a match
        self._where = where
        self._tag = tag
        self._lateness = parse_duration(lateness, "lateness", can_be_zero=True)
        self.clocks: tuple[Clock, ...] = ()

    def bind(self, key: tuple[str, ...], input_schema: pa.Schema) -> Self:
        bound = super().bind(key, input_schema)
        check_sides(*self._sides, input_schema, self._tag, [*key, *(each.name for each in self._window_fields(None))])
        bound.clocks = tuple(Clock.of(side.time, input_schema, self._lateness) for side in self._sides)
        of_sides = [field for side in self._sides for field in side.schema(input_schema)]
        bound.output_schema = pa.schema([*bound.key_fields, *self._window_fields(bound.clocks[0]), *of_sides])
        bound.output_delay_ms = to_delay_ms(self._lateness + self._reach)
        return bound

    def open(self) -> None:
        """Load the compiled kernels before the first rows."""
        load_kernels()

    def initial_state(self) -> JoinState:
        assert self.input_schema is not None  # noqa: S101 - for the type checker; states are those of bound operators
        stores = [RowStore(stored_schema(side, self.input_schema)) for side in self._sides]
        return JoinState(KeyedColumns(self._key_schema, {}), stores)

    def combine(self, rows: pa.Table) -> pa.Table:
        """Return the columns that are needed."""
        columns = [*self.key, self._tag]
        for side in self._sides:
            columns += [*side.columns.values(), *([side.time] if side.time else [])]
        return rows.select(list(dict.fromkeys(columns)))

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> Yields:
        held: JoinState = state.value
        masks = split_sides(rows, self._tag, *self._sides)
        arrived = [
            self._arrive(held, side, rows if mask.all() else rows.filter(pa.array(mask)), context)
            for side, mask in enumerate(masks)
        ]
        known = held.stores[LEFT].count
        numbers = [
            store.append(new.rows, new.owners, new.times, new.expires)
            for store, new in zip(held.stores, arrived, strict=True)
        ]
        # New rows of the left meet all rows of the right, new ones of the right only the known ones of the left.
        yield from self._join(held, LEFT, arrived[LEFT], numbers[LEFT], None)
        yield from self._join(held, RIGHT, arrived[RIGHT], numbers[RIGHT], known)
        self._schedule(held, context, min(int(new.expires.min(initial=FOREVER)) for new in arrived))

    def handle_timer(self, _: Timer, state: State, context: Context) -> Yields:
        held: JoinState = state.value
        now = self.clocks[LEFT].now(context)
        due = held.due
        if now >= held.due:
            for number, store in enumerate(held.stores):
                rows = store.expired(now)
                if self._keeps[number]:
                    lonely = rows[store.flags[rows] == 0]
                    yield self._join_with_nulls(number, held.keys.take_keys(store.owners[lonely]), store.take(lonely))
                store.remove(rows)
            held.drop_unused_keys()
            following = [store.next_expiry() for store in held.stores]
            due, held.due = min((each for each in following if each is not None), default=FOREVER), FOREVER
        if due < FOREVER:
            held.due = FOREVER
            self._schedule(held, context, due)

    def part(self, state: State, hashes: Hashes) -> JoinState:
        held: JoinState = state.value
        is_parted = is_among(held.keys.hash_keys(self.key), hashes)
        part = JoinState(held.keys, [_of_owners(store, is_parted) for store in held.stores], held.due)
        part.keep_keys(is_parted)
        if len(part.keys):
            held.stores = [_of_owners(store, ~is_parted) for store in held.stores]
            held.keep_keys(~is_parted)
        return part

    def join(self, state: State, part: JoinState) -> None:
        held: JoinState = state.value
        numbers = _insert(held.keys, part.keys.take_keys())
        for store, other in zip(held.stores, part.stores, strict=True):
            store.join(other, numbers)
        held.due = min(held.due, part.due)

    def state_rows(self, value: JoinState) -> pa.Table:
        """Return the waiting rows: the keys, and the columns of either input."""
        tables = []
        for number, store in enumerate(value.stores):
            rows = np.flatnonzero(store.is_live)
            tables.append(self._join_with_nulls(number, value.keys.take_keys(store.owners[rows]), store.take(rows)))
        return pa.concat_tables(tables)

    def lookup(self, value: JoinState, key: tuple[Any, ...]) -> list[dict[str, Any]]:
        """Return the waiting rows of one key."""
        rows = self.state_rows(value)
        wanted = self._find_keys(rows, key)
        found: list[dict[str, Any]] = rows.filter(pa.array(wanted)).drop_columns(list(self.key)).to_pylist()
        return found

    # What a kind of join decides.

    @property
    def _reach(self) -> int:
        """Maximum distance between the times of a result, in microseconds."""
        raise NotImplementedError

    @property
    def _key_schema(self) -> pa.Schema:
        """What rows must have in common to match."""
        return pa.schema(self.key_fields)

    def _window_fields(self, _clock: Clock | None) -> list[pa.Field]:
        return []

    def _place(self, side: int, times: Words, now: int) -> Placed:
        """Return where rows are to be kept that have these times, without those that are late."""
        raise NotImplementedError

    def _bounds(self, side: int, times: Words) -> tuple[Words, Words]:
        """Return the times between which rows of the other input match."""
        raise NotImplementedError

    def _window_columns(self, _keys: list[pa.Array]) -> list[pa.Array]:
        return []

    # The algorithm.

    def _arrive(self, held: JoinState, side: int, rows: pa.Table, context: Context) -> Arrivals:
        """Return the rows that have a time and are not late, in each of their places."""
        clock = self.clocks[side]
        times, has_time = clock.times(rows, context)
        is_wanted = np.ones(rows.num_rows, np.bool_) if has_time is None else has_time
        # A null equals nothing. A row with such a key is only worth keeping to be emitted without a match.
        has_key = _all_valid(rows, self.key)
        if not self._keeps[side]:
            is_wanted = is_wanted & has_key
        if not is_wanted.all():
            rows, times, has_key = rows.filter(pa.array(is_wanted)), times[is_wanted], has_key[is_wanted]
        placed = self._place(side, times, clock.now(context))
        if len(placed.rows) != rows.num_rows:
            rows = rows.take(pa.array(placed.rows))
        owners = _insert(held.keys, [*(_one(rows, name) for name in self.key), *placed.keys])
        at = np.where(has_key[placed.rows], placed.times, UNMATCHABLE)
        return Arrivals(self._sides[side].select(rows), owners, at, placed.expires)

    def _join(self, held: JoinState, side: int, new: Arrivals, numbers: Words, below: int | None) -> Iterator[pa.Table]:
        """Yield the pairs of new rows with rows of the other input, and flag both."""
        other = held.stores[1 - side]
        lows, highs = self._bounds(side, new.times)
        if self._keeps[side]:
            lows = np.where(new.times == UNMATCHABLE, UNMATCHABLE + 1, lows)
        probes, rows = other.match(new.owners, lows, highs, below)
        if not len(probes):
            return
        keys = held.keys.take_keys(new.owners[probes])
        pair = [new.rows.take(pa.array(probes)), other.take(rows)]
        results = self._to_results(keys, *(pair if side == LEFT else reversed(pair)))
        if self._where is not None:
            is_match = _to_mask(self._where(results), len(probes))
            results, probes, rows = results.filter(pa.array(is_match)), probes[is_match], rows[is_match]
        held.stores[side].flags[numbers[probes]] = 1
        other.flags[rows] = 1
        yield results

    def _join_with_nulls(self, side: int, keys: list[pa.Array], rows: pa.Table) -> pa.Table:
        assert self.input_schema is not None  # noqa: S101 - for the type checker
        empty = stored_schema(self._sides[1 - side], self.input_schema)
        nothing = pa.Table.from_arrays([pa.nulls(rows.num_rows, each.type) for each in empty], schema=empty)
        pair = [rows, nothing]
        return self._to_results(keys, *(pair if side == LEFT else reversed(pair)))

    def _to_results(self, keys: list[pa.Array], left: pa.Table, right: pa.Table) -> pa.Table:
        of_sides = [
            table.column(name) for table, side in zip((left, right), self._sides, strict=True) for name in side.columns
        ]
        arrays = [*keys[: len(self.key)], *self._window_columns(keys[len(self.key) :]), *of_sides]
        return pa.Table.from_arrays(arrays, schema=self.output_schema)

    def _schedule(self, held: JoinState, context: Context, due: int) -> None:
        """See to it that a timer fires when the first row expires."""
        if due < held.due:
            self.clocks[LEFT].set_timer(context, due, _TIMER)
            held.due = due

    def __repr__(self) -> str:
        left, right = self._sides
        return f"{type(self).__name__}({left!r}, {right!r})"

    def _find_keys(self, rows: pa.Table, key: tuple[Any, ...]) -> NDArray[np.bool_]:
        index = KeyedColumns(pa.schema(self.key_fields), {})
        numbers = _insert(index, [_one(rows, name) for name in self.key])
        return numbers == index.find_key(key) if len(numbers) else np.zeros(0, np.bool_)


class IntervalJoin(StreamJoin):
    """Joins rows of a key whose times are near: `left.time + lower <= right.time <= left.time + upper`.

        IntervalJoin(
            Side("ads", time="shown_at", columns=["ad"]),
            Side("clicks", time="clicked_at", columns=["user"]),
            upper="10 minutes",
        )

    joins every ad with the clicks on it within ten minutes. `how` is "inner", "left", "right" or "full"; `tag` is the
    column that names the input of a row. `where` is a further condition: a function from a table of pairs, as they are
    emitted, to a mask of those that match; null is false. Rows with a time at or before the watermark, less the
    `lateness`, are dropped. Results are the key columns and the columns of both sides, pairs at once, rows without a
    match when they expire. The state holds a row of the left until `upper` after its time, one of the right until
    `-lower` after its time. O(1) per row and pair, and per row of the key that is waiting.
    """

    def __init__(
        self,
        left: Side,
        right: Side,
        *,
        lower: str = "0 seconds",
        upper: str,
        how: How = "inner",
        where: Condition | None = None,
        tag: str = INPUT,
        lateness: str = "0 seconds",
    ) -> None:
        super().__init__(left, right, how=how, where=where, tag=tag, lateness=lateness)
        self._lower, self._upper = _parse_signed(lower, "lower"), _parse_signed(upper, "upper")
        if self._lower > self._upper:
            raise InvalidJob(f"no time is between lower={lower!r} and upper={upper!r}. Exchange them.")

    @property
    def _reach(self) -> int:
        return max(0, self._upper, -self._lower)

    def _place(self, side: int, times: Words, now: int) -> Placed:
        rows = np.flatnonzero(times > now)
        times = times[rows]
        return Placed(rows, times, times + (self._upper if side == LEFT else -self._lower), [])

    def _bounds(self, side: int, times: Words) -> tuple[Words, Words]:
        if side == LEFT:
            return times + self._lower, times + self._upper
        return times - self._upper, times - self._lower


class WindowJoin(StreamJoin):
    """Joins rows of a key that are in the same window, tumbling or sliding.

        WindowJoin(Side("persons", ...), Side("auctions", ...), window("10 seconds"))

    Like a join on the key and `window(time, ...)` in Spark: results have the key columns, the window as a struct, and
    the columns of both sides. A row takes part in each of its windows until the window is complete; rows all of whose
    windows are complete are late, and dropped. The other arguments are those of `IntervalJoin`.
    """

    def __init__(
        self,
        left: Side,
        right: Side,
        window: Window,
        *,
        how: How = "inner",
        where: Condition | None = None,
        tag: str = INPUT,
        lateness: str = "0 seconds",
    ) -> None:
        super().__init__(left, right, how=how, where=where, tag=tag, lateness=lateness)
        self._window = window

    @property
    def _reach(self) -> int:
        return self._window.size

    @property
    def _key_schema(self) -> pa.Schema:
        return pa.schema([*self.key_fields, (_END, pa.int64())])

    def _window_fields(self, clock: Clock | None) -> list[pa.Field]:
        time = pa.int64() if clock is None else clock.result_type
        return [pa.field("window", pa.struct([("start", time), ("end", time)]))]

    def _place(self, _side: int, times: Words, now: int) -> Placed:
        rows, ends = self._window.assign(times)
        is_open = ends > now
        rows, ends = rows[is_open], ends[is_open]
        return Placed(rows, np.zeros(len(rows), np.int64), ends, [pa.array(ends)])

    def _bounds(self, _side: int, times: Words) -> tuple[Words, Words]:
        return times, times

    def _window_columns(self, keys: list[pa.Array]) -> list[pa.Array]:
        (ends,) = keys
        clock = self.clocks[LEFT]
        times = [clock.to_results(ends.to_numpy() - self._window.size), clock.to_results(ends.to_numpy())]
        (window,) = self._window_fields(clock)
        return [pa.StructArray.from_arrays(times, fields=list(window.type))]


def _parse_signed(text: str, name: str) -> int:
    """Return a duration in microseconds that may be negative, as in "-5 minutes"."""
    stripped = text.strip()
    sign = -1 if stripped.startswith("-") else 1
    return sign * parse_duration_ms(stripped.lstrip("-"), name) * 1_000


def _of_owners(store: RowStore, is_selected: NDArray[np.bool_]) -> RowStore:
    return store.select(is_selected[store.owners] & store.is_live)


def _insert(keys: KeyedColumns, columns: list[pa.Array]) -> Words:
    return keys.rows_for(columns if len(columns) > 1 else columns[0])


def _to_mask(found: Any, pairs: int) -> NDArray[np.bool_]:
    """Return what a condition answered as an array; raises `InvalidOutput` if that is not one boolean per pair."""
    array = found if isinstance(found, pa.Array | pa.ChunkedArray) else pa.array(np.atleast_1d(np.asarray(found)))
    if not pa.types.is_boolean(array.type) or len(array) != pairs:
        why = f"where returned {len(array)} values of type {array.type} for {pairs} pairs, not a boolean for each"
        raise InvalidOutput("join", why)
    return np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False), np.bool_)


def _one(rows: pa.Table, column: str) -> pa.Array:
    return rows.column(column).combine_chunks()


def _all_valid(rows: pa.Table, key: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return which rows have all key columns."""
    masks = [rows.column(name).is_valid().to_numpy() for name in key if rows.column(name).null_count]
    return np.asarray(np.logical_and.reduce(masks), np.bool_) if masks else np.ones(rows.num_rows, np.bool_)
