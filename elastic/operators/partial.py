"""Partial grouping of an operator (paper 001): a stage that any task may take rows of, and the operator behind it.

    elastic.run(df, key="word", operator=partial(CountByKey(), every="10 seconds"), ...)

A task of the partial stage combines its rows to partials, merges them with those that it holds, and emits what it
holds to the operator, with every batch or after every interval of processing time. The operator is as ever: its rows
are grouped by its key, and what it gets are partials, as always if it has `combine`.

Invariant: a row of an interval reaches the operator in the first batch of a later interval, whichever task took it.

Whoever sends rows notes `every` in their metadata, and the log keeps that: a later life may have another `every`, and a
replay still holds and emits what was held and emitted before.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import pyarrow as pa

from elastic.durations import parse_duration_ms
from elastic.errors import InvalidJob, InvalidSetting, NotAnOperator, UnmergeableOperator
from elastic.operators.context import Context
from elastic.operators.keyed import KeyedOperator
from elastic.operators.keys import to_arrow_keys, to_key, to_python_keys
from elastic.operators.operator import Operator, State, Yields
from elastic.operators.rows import fill_new_columns
from elastic.operators.timers import Timer
from elastic.routing.groupings import PartialGrouping
from elastic.routing.hashing import hash_key, hash_keys

EVERY_BATCH = "1 batch"
_EVERY = b"elastic.every"  # in the metadata of rows: how long tasks hold them, in milliseconds
_NO_TIME = b"0"  # they do not
_FLUSHED, _UNTIL = b"elastic.flushed", b"elastic.until"  # in the metadata of the table that is the state
_NEVER = -1
_LONGEST_MS = 100 * 365 * 86_400_000


@dataclass(frozen=True)
class HeldPartials:
    """The partials of one key that a task holds since it emitted partials in batch `flushed` (-1: never)."""

    flushed: int
    partials: pa.Table


class PartialOperator(Operator):
    """Combines rows of another operator to partials, and emits them; see `elastic.operators.stages.partial`.

    The state is a table of partials, one per key. Its metadata has the time at which their interval ends, and the last
    batch that emitted some. With `every_ms` None nothing is held between batches.
    """

    input_format: ClassVar[str] = "arrow"

    def __init__(self, operator: Operator, every_ms: int | None) -> None:
        self.operator = operator
        self.every_ms = every_ms
        self.version = operator.version  # type: ignore[misc] # the partials are the operator's

    @property
    def can_upgrade(self) -> bool:
        return self.operator.can_upgrade

    @property
    def name(self) -> str:
        return f"partial-{getattr(self.operator, 'name', '') or type(self.operator).__name__}"

    def bind(self, key: tuple[str, ...], input_schema: pa.Schema) -> Self:
        if not key:
            raise InvalidJob(f"stage {self.name!r} splits keys and has none. Give the job or the stage a key.")
        bound = super().bind(key, input_schema)
        bound.operator = self.operator.bind(key, input_schema)
        bound.next_schema = _schema_of_partials(bound.operator, input_schema)
        return bound

    def open(self) -> None:
        self.operator.open()

    def close(self) -> None:
        self.operator.close()

    def initial_state(self) -> pa.Table:
        return self._hold(None, _NEVER)

    def upgrade(self, old_version: str, value: pa.Table) -> pa.Table:  # noqa: ARG002 - the operator's
        """Return the partials in the columns of this version, which must understand those of an older one."""
        return self._hold(value if value.num_rows else None, _read(value, _FLUSHED), _read(value, _UNTIL))

    def combine(self, rows: pa.Table) -> pa.Table:
        """Return the same rows with `every`; tasks of this stage combine them, not its senders."""
        every = _NO_TIME if self.every_ms is None else str(self.every_ms)
        return rows.replace_schema_metadata({_EVERY: every})

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> Yields:
        assert self.input_schema is not None  # noqa: S101 - for the type checker; the operator is bound
        every_ms = int((rows.schema.metadata or {}).get(_EVERY, _NO_TIME))
        partials = self.operator.combine(fill_new_columns(rows.replace_schema_metadata(None), self.input_schema))
        if not every_ms:
            yield self._flush(state, context, partials)
            return
        if state.value.num_rows and _read(state.value, _UNTIL) <= context.timestamp_ms:
            yield self._flush(state, context)
        until = (context.timestamp_ms // every_ms + 1) * every_ms
        if state.value.num_rows:
            until = min(until, _read(state.value, _UNTIL))  # another, if `every` has changed
        context.set_timer(until, kind="processing")
        state.value = self._hold(self._merge(state.value, partials), _read(state.value, _FLUSHED), until)

    def handle_timer(self, _: Timer, state: State, context: Context) -> Yields:
        if state.value.num_rows:
            yield self._flush(state, context)

    def lookup(self, value: pa.Table, key: tuple[Any, ...]) -> HeldPartials:
        """Return what the task holds of one key."""
        assert self.input_schema is not None  # noqa: S101 - for the type checker; states are those of bound operators
        types = [self.input_schema.field(name).type for name in self.key]
        wanted = hash_key(*key, types=types)
        found = value.filter(pa.array(hash_keys([value[name] for name in self.key]) == wanted))
        # Keys may have the same hash: nulls do not change it, so those of ("a", null) and (null, "a") are equal.
        equal = set(to_python_keys(to_arrow_keys([to_key(key)], types)))
        is_key = [one in equal for one in to_python_keys([found[name].combine_chunks() for name in self.key])]
        return HeldPartials(_read(value, _FLUSHED), found.filter(pa.array(is_key, pa.bool_())))

    def _flush(self, state: State, context: Context, partials: pa.Table | None = None) -> pa.Table:
        """Return what is held, with these partials, and hold nothing."""
        emitted = state.value if partials is None else self._merge(state.value, partials)
        state.value = self._hold(None, context.batch)
        return emitted

    def _merge(self, held: pa.Table, partials: pa.Table) -> pa.Table:
        schema = self.next_schema
        tables = [table.select(schema.names).cast(schema) for table in (held, partials) if table.num_rows]  # type: ignore[union-attr]
        return self.operator.merge(pa.concat_tables(tables)) if tables else held

    def _hold(self, partials: pa.Table | None, flushed: int, until: int = 0) -> pa.Table:
        schema: Any = self.next_schema
        table = schema.empty_table() if partials is None else partials.select(schema.names).cast(schema)
        return table.replace_schema_metadata({_FLUSHED: str(flushed), _UNTIL: str(until)})


def parse_every(every: object) -> int | None:
    """Return an interval in milliseconds, None for "1 batch"; raises `InvalidSetting`."""
    why = "expected '1 batch' or a duration such as '10 seconds'"
    if every == EVERY_BATCH:
        return None
    if not isinstance(every, str):
        raise InvalidSetting("every", every, why)
    try:
        every_ms = parse_duration_ms(every, "every")
    except InvalidSetting as cause:
        raise InvalidSetting("every", every, why) from cause
    if every_ms < 1:
        raise InvalidSetting("every", every, "it must be at least a millisecond")
    if every_ms > _LONGEST_MS:
        raise InvalidSetting("every", every, "it must be at most 36,500 days")
    return every_ms


def check_mergeable(operator: Operator) -> None:
    """Raise `UnmergeableOperator` if the keys of an operator cannot be split."""
    if isinstance(operator, type) or not isinstance(operator, Operator):
        raise NotAnOperator(operator)
    if (obstacle := _find_obstacle(operator)) is not None:
        raise UnmergeableOperator(type(operator).__name__, obstacle)


def check_partial_stage(operator: Operator, grouping: object, name: str) -> None:
    """Raise `InvalidJob` if a stage is grouped partially without being a partial stage, or the other way round."""
    if isinstance(operator, PartialOperator) != isinstance(grouping, PartialGrouping):
        raise InvalidJob(
            f"stage {name!r} cannot be grouped by {getattr(grouping, 'kind', grouping)!r}: rows of a key would be in "
            "several tasks. Use partial(operator), which makes a partial stage and the operator behind it."
        )


def _find_obstacle(operator: Operator) -> str | None:
    kind = type(operator)
    for method in ("combine", "merge"):
        if getattr(kind, method) is getattr(Operator, method):
            return f"it does not define {method}()"
    if "self" in operator.emits:
        return "it emits rows to itself, which are no partials"
    handles_keys = issubclass(kind, KeyedOperator) and kind.handle_expired is not KeyedOperator.handle_expired
    if handles_keys or operator.handles_timers:
        return "it handles timers, which would fire before the partials of the same batch arrive"
    return None


def _schema_of_partials(operator: Operator, input_schema: pa.Schema) -> pa.Schema:
    """Return the schema of what an operator, which is bound already, combines rows to, and merges to the same."""
    partials = _call(operator, "combine", input_schema.empty_table())
    merged = _call(operator, "merge", partials)
    if sorted(merged.schema.names) != sorted(partials.schema.names):
        obstacle = f"its merge() returns the columns {merged.schema.names} for partials with {partials.schema.names}"
        raise UnmergeableOperator(type(operator).__name__, obstacle)
    return partials.schema.remove_metadata()


def _call(operator: Operator, method: str, rows: pa.Table) -> pa.Table:
    """Return what a method of an operator makes of a table without rows; raises `UnmergeableOperator`."""
    try:
        returned = getattr(operator, method)(rows)
    except Exception as error:  # a user's operator may raise anything
        obstacle = f"its {method}() raised {error!r} for a table without rows"
        raise UnmergeableOperator(type(operator).__name__, obstacle) from error
    if not isinstance(returned, pa.Table):
        obstacle = f"its {method}() returned a {type(returned).__name__} instead of an Arrow table"
        raise UnmergeableOperator(type(operator).__name__, obstacle)
    for name in operator.key:
        if name not in returned.schema.names or returned.schema.field(name).type != rows.schema.field(name).type:
            obstacle = f"its {method}() does not keep the key column {name!r} and its type"
            raise UnmergeableOperator(type(operator).__name__, obstacle)
    return returned


def _read(held: pa.Table, name: bytes) -> int:
    return int(held.schema.metadata[name])
