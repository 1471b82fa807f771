"""Deduplication: the first row of each value passes, rows like it do not."""

from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastic.errors import InvalidJob, UnknownColumn
from elastic.operators.columns import KeyedColumns, load_kernels
from elastic.operators.context import Context
from elastic.operators.event_clock import FOREVER, NEVER, Clock
from elastic.operators.expiry import parse_ttl_ms
from elastic.operators.kernels import Words
from elastic.operators.operator import Operator, State, Yields
from elastic.operators.timers import Timer
from elastic.operators.windows import parse_duration

_EXPIRES = "elastic.expires"
_TIMER = "elastic.duplicates"
_SWEEPS = 4  # per duration that values are remembered
_US_PER_MS = 1_000
_MIN_INTERVAL = 1_000_000  # microseconds between looks through the state


class DropDuplicates(Operator):
    """Emits the first row of every combination of the key columns and further `columns`, unchanged.

    Values are remembered

    - forever, without `time` and `ttl`;
    - with `ttl`, such as "1 day", for that long in processing time after the last row that has them;
    - with `time`, the name of the event-time column, until the watermark reaches the time of the first row that has
      them. Then `time` must be one of the columns, as in Spark's `dropDuplicates`; see
      `drop_duplicates_within_watermark` for duplicates whose times differ. Rows at or before the watermark are late,
      and dropped; so are rows without a time.

    The state has a row per remembered combination in `KeyedColumns`; O(1) per row.
    """

    copies_timers = True

    def __init__(self, *columns: str, time: str | None = None, ttl: str | None = None) -> None:
        if time is not None and time not in columns:
            raise InvalidJob(
                f"rows with different {time!r} would be duplicates, and remembered for an unknown time. Add {time!r} "
                "to the columns, or use drop_duplicates_within_watermark(time=..., within=...)."
            )
        if time is not None and ttl is not None:
            raise InvalidJob("values are forgotten by event time or after a time to live. Omit `time` or `ttl`.")
        self._columns = columns
        self._time = time
        self._within = 0
        self._ttl_ms = parse_ttl_ms(ttl)
        self.clock = Clock(None, pa.timestamp("us", "UTC"))

    def bind(self, key: tuple[str, ...], input_schema: pa.Schema) -> Self:
        bound = super().bind(key, input_schema)
        for column in self._columns:
            if column not in input_schema.names:
                raise UnknownColumn(column, input_schema.names)
        bound.clock = Clock.of(self._time, input_schema)
        bound.output_schema = input_schema
        return bound

    @property
    def handles_timers(self) -> bool:
        return self._forgets

    @property
    def has_timers(self) -> bool:
        return False  # they only forget what is old

    def open(self) -> None:
        """Load the compiled kernels before the first rows."""
        load_kernels()

    def initial_state(self) -> KeyedColumns:
        assert self.input_schema is not None  # noqa: S101 - for the type checker; states are those of bound operators
        schema = pa.schema([self.input_schema.field(name) for name in dict.fromkeys([*self.key, *self._columns])])
        return KeyedColumns(schema, {_EXPIRES: "int64"}, {_EXPIRES: NEVER})

    def combine(self, rows: pa.Table) -> pa.Table:
        """Return the first row of each combination, if duplicates cannot differ in whether they are late."""
        if self._within:
            return rows
        seen = self.initial_state()
        numbers = seen.rows_for(_columns(rows, seen))
        return rows if len(seen) == rows.num_rows else rows.filter(pa.array(_mask_first(numbers, len(seen))))

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> Yields:
        seen: KeyedColumns = state.value
        now = self.clock.now(context)
        expires: Any = FOREVER
        if self._time is not None:
            times, has_time = self.clock.times(rows, context)
            is_kept = times > now if has_time is None else (times > now) & has_time
            if not is_kept.all():
                rows, times = rows.filter(pa.array(is_kept)), times[is_kept]
            expires = times + self._within
        elif self._ttl_ms is not None:
            expires = np.full(rows.num_rows, now + self._ttl_ms * _US_PER_MS)
        known = len(seen)
        numbers = seen.rows_for(_columns(rows, seen))
        # A value that is still there although it has expired is as good as forgotten.
        is_new = seen.column(_EXPIRES)[numbers] <= now if self._forgets else numbers >= known
        is_first = _mask_first(numbers, len(seen))
        is_new &= is_first
        if self._forgets:
            renewed = is_first if self._ttl_ms is not None else is_new
            seen.column(_EXPIRES)[numbers[renewed]] = expires[renewed]
            self._schedule(expires[renewed], now, context)
        yield rows if is_new.all() else rows.filter(pa.array(is_new))

    def handle_timer(self, _: Timer, state: State, context: Context) -> Yields:
        seen: KeyedColumns = state.value
        now = self.clock.now(context)
        is_remembered = seen.column(_EXPIRES) > now
        if not is_remembered.all():
            seen.keep(is_remembered)
        self._schedule(seen.column(_EXPIRES), now, context)

    def part(self, state: State, hashes: Any) -> Any:
        return super().part(state, hashes)

    def join(self, state: State, part: Any) -> None:
        super().join(state, part)

    def lookup(self, value: KeyedColumns, key: tuple[Any, ...]) -> int:
        """Return the number of remembered combinations of a key."""
        names = value.key_schema.names
        columns = dict(zip(names, value.take_keys(), strict=True))
        index = KeyedColumns(pa.schema(self.key_fields), {})
        keys = [columns[name] for name in self.key]
        numbers = index.rows_for(keys if len(keys) > 1 else keys[0])
        row = index.find_key(key)
        return 0 if row < 0 else int(np.count_nonzero(numbers == row))

    @property
    def _forgets(self) -> bool:
        return self._time is not None or self._ttl_ms is not None

    def _schedule(self, expires: Words, now: int, context: Context) -> None:
        """See to it that the state is looked through when the first of these values expires.

        A few times per duration at most, not in every batch.
        """
        duration = self._within if self._ttl_ms is None else self._ttl_ms * _US_PER_MS
        interval = max(duration // _SWEEPS, _MIN_INTERVAL)
        if len(expires):
            self.clock.set_timer_by(context, max(int(expires.min()), now + interval), _TIMER)


class _WithinWatermark(DropDuplicates):
    """See `drop_duplicates_within_watermark`."""

    def __init__(self, *columns: str, time: str, within: str) -> None:
        super().__init__(*columns)
        self._time = time
        self._within = parse_duration(within, "within")

    def __repr__(self) -> str:
        columns = "".join(f"{column!r}, " for column in self._columns)
        return f"drop_duplicates_within_watermark({columns}time={self._time!r})"


def drop_duplicates_within_watermark(*columns: str, time: str, within: str) -> DropDuplicates:
    """Return an operator that emits the first row of every combination of the key columns and `columns`.

    Duplicates whose event times differ by less than `within`, such as "10 minutes", are dropped; others may be. As in
    Spark's `dropDuplicatesWithinWatermark`, values are remembered until the watermark reaches the time of the first row
    that has them plus `within`, which is the delay of the watermark there.
    """
    return _WithinWatermark(*columns, time=time, within=within)


def _columns(rows: pa.Table, seen: KeyedColumns) -> Any:
    names = seen.key_schema.names
    return [rows.column(name) for name in names] if len(names) > 1 else rows.column(names[0])


def _mask_first(numbers: Words, count: int) -> NDArray[np.bool_]:
    """Return a mask of the first occurrence of each number."""
    first = np.full(count, len(numbers), np.int64)
    np.minimum.at(first, numbers, np.arange(len(numbers)))
    is_first = np.zeros(len(numbers), np.bool_)
    is_first[first[first < len(numbers)]] = True
    return is_first
