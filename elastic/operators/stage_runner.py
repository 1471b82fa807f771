"""Runs an operator on a node: steps, snapshots and queries of its units, independent of Spark and of the store."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self

import pyarrow as pa

from elastic.errors import InvalidJob
from elastic.operators import divide, key_records
from elastic.operators.calls import (
    BatchCaller,
    CostTimes,
    KeyedCaller,
    KeyTimes,
    OperatorCaller,
    UnitState,
    UnitStep,
)
from elastic.operators.columns import KeyedColumns
from elastic.operators.combiner import Combiner
from elastic.operators.context import Moment
from elastic.operators.garbage import pause_collector
from elastic.operators.graph.clocks import StageClock
from elastic.operators.graph.feeds import Feed
from elastic.operators.guarded import GuardedCaller, Trial
from elastic.operators.keyed import KeyedOperator
from elastic.operators.keys import needs_canonical, to_canonical, to_key
from elastic.operators.measured import MeasuredCaller
from elastic.operators.operator import Hashes, Operator
from elastic.operators.outputs import NEXT, SELF, SINK, OutputBuffer, next_to
from elastic.operators.rows import check_input_format, concat_rows, fill_new_columns
from elastic.operators.schemas import to_schema
from elastic.operators.state_codec import copy_value, decode, encode
from elastic.operators.upgrades import VERSION, upgrade
from elastic.routing.groupings import ShuffleGrouping, parse_grouping
from elastic.routing.hashing import check_key, hash_rows
from storage.state import BatchTime, SavedState, UnitId

_TIMER_BYTES = 32
_NO_TIME = Moment(UnitId(0, 0), 0, 0, 0)  # of a question, which no batch is about


@dataclass(frozen=True)
class StepOutput:
    """The rows that a step emitted, None for a destination without rows. `rows` is the number of input rows.

    `quarantined` has the columns row (JSON) and error (a traceback). `key_times` is there if the operator was
    called key by key. `parts` has the states of keys that leave the unit (see `key_records`). `cost_times` says how
    long rows of some cost keys took, in a stage that is measured. `next` is for all stages behind this one; `next_to`
    has by name what is for one of them alone.
    """

    sink: pa.Table | None
    next: pa.Table | None
    self_: pa.Table | None
    quarantined: pa.Table | None
    rows: int
    parts: pa.Table | None = None
    key_times: KeyTimes | None = None
    cost_times: CostTimes | None = None
    next_to: Mapping[str, pa.Table] = field(default_factory=dict)


class Follower(NamedTuple):
    """A stage that reads another one, and how rows of that become its own."""

    stage: int
    feed: Feed


class StageRunner:
    """One stage of a job on one node: applies steps to the states of its units.

    Deterministic: the same state, slices and moment give the same state and output. Units do not share state, so steps
    of different units may run concurrently if the operator allows it. After an error a state is invalid: restore it.
    """

    def __init__(
        self,
        operator: Operator,
        *,
        key: Sequence[str],
        input_schema: pa.Schema,
        next_schema: pa.Schema | None = None,
        on_error: Literal["fail", "skip"] = "fail",
        stage: int = 0,
        name: str,
        rows_schema: pa.Schema | None = None,  # if the rows are partials: of the rows that they stand for
        grouping: str = "hash",
        cost_key: Sequence[str] = (),
        first_version: str | None = None,  # of states that do not name theirs; by default the operator's
        feeds: Sequence[Feed] = (),  # from each of the inputs and stages that it reads
    ) -> None:
        if on_error not in ("fail", "skip"):
            raise InvalidJob(f'unknown on_error {on_error!r}. Use "fail" or "skip".')
        declared = parse_grouping(grouping)
        if key or declared.needs_key:
            check_key(input_schema, key)
        # What the unit of a row depends on, or in a shuffled stage what its cost depends on; there perhaps nothing.
        self.grouped_by = tuple(cost_key or key)
        if self.grouped_by:
            check_key(input_schema, self.grouped_by)
        check_input_format(operator.input_format)
        self.operator = operator.bind(tuple(key), input_schema if rows_schema is None else rows_schema)
        self.key = tuple(key)
        self.input_schema = input_schema
        self.stage = stage
        self.name = name
        self.first_version = operator.version if first_version is None else first_version
        # Sent to the senders of rows to this stage.
        is_shuffled = isinstance(declared, ShuffleGrouping)
        method = "combine" if rows_schema is None else "merge"
        self.combiner = Combiner.of(self.operator, name, method, self.grouped_by if is_shuffled else ())
        if self.combiner is not None and self.combiner.cost_key:
            self.combiner.check(input_schema)
        self.feeds = tuple(feeds)
        self.clock = StageClock()  # how far event time has come
        self._watermarks: tuple[BatchTime | None, tuple[int | None, int | None]] = (None, (None, None))  # of a batch
        self._schemas = _schemas(self.operator, input_schema, next_schema)
        # By name; without names, in a pipeline of which this is all that is known, the next number.
        self._followers = {} if next_schema is None else {"": Follower(stage + 1, Feed(name))}
        self._caller: OperatorCaller = self._create_caller(self.operator, skip=on_error == "skip")
        self.is_measured = isinstance(declared, ShuffleGrouping) and declared.is_measured
        if self.is_measured:
            self._caller = MeasuredCaller(self._caller, self.grouped_by)

    @property
    def output_schema(self) -> pa.Schema | None:
        """The schema of the rows for the sink; None if there are none."""
        return self._schemas.get(SINK)

    @property
    def emits_rows_to_stages(self) -> bool:
        """Whether a step may require another round."""
        return NEXT in self._schemas or SELF in self._schemas

    def follow(self, followers: Mapping[str, Follower]) -> None:
        """Set the stages that read this one, by name."""
        self._followers = dict(followers)
        if NEXT in self._schemas:
            self._schemas |= {next_to(name): self._schemas[NEXT] for name in followers}

    def feed_from(self, source: str) -> Feed:
        """Return how rows of an input or a stage become rows of this one."""
        return next((feed for feed in self.feeds if feed.source == source), Feed(source))

    def emitted(self, output: StepOutput) -> Iterator[tuple[int, pa.Table]]:
        """Yield the rows of a step for other stages and for this one, with the number of the stage that they are for.

        What is for one stage alone comes after what is for all.
        """
        for name, (stage, feed) in self._followers.items():
            for rows in (output.next, output.next_to.get(name)):
                if rows is not None and rows.num_rows:
                    yield stage, feed(rows)
        if output.self_ is not None and output.self_.num_rows:
            yield self.stage, output.self_

    def moment(self, unit: UnitId, batch: int, round_: int, time: BatchTime) -> Moment:
        """Return one round of a batch of a unit, with the clocks of this stage."""
        known, watermarks = self._watermarks
        if known is not time:  # all units of the stage take the same steps
            watermarks = self.clock.watermark_of_rows(time), self.clock.watermark_of_timers(time)
            self._watermarks = time, watermarks
        return Moment(unit, batch, round_, time.timestamp_ms, *watermarks)

    def hash_rows(self, rows: pa.Table) -> Hashes:
        """Return for each row the hash that its unit, or its cost, depends on."""
        return hash_rows(rows, self.grouped_by)

    def combine(self, rows: pa.Table) -> pa.Table:
        """Combine rows for this stage, if its operator can."""
        return rows if self.combiner is None else self.combiner(rows)

    def open(self) -> None:
        self.operator.open()

    def close(self) -> None:
        self.operator.close()

    def new_state(self) -> UnitState:
        """Return the state of a unit that has processed nothing."""
        return UnitState({} if isinstance(self.operator, KeyedOperator) else self.operator.initial_state())

    @pause_collector()
    def step(self, state: UnitState, slices: Sequence[pa.Table], moment: Moment) -> StepOutput:
        """Process the rows in order, then, in round 0, the due timers; changes the state in place.

        Slices of a later round may be orders to part with keys, or parts to join. Raises `OperatorFailed` or
        `InvalidOutput`, unless on_error is "skip", and `DivisionFailed`.
        """
        if moment.round and key_records.are_orders(slices):
            return StepOutput(None, None, None, None, 0, parts=key_records.part_keys(self, state, slices))
        if moment.round and key_records.are_parts(slices):
            key_records.join_parts(self, state, slices, moment.unit)
            return StepOutput(None, None, None, None, 0)
        step = UnitStep(state, moment, OutputBuffer(self.name, self._schemas))
        rows = sum(table.num_rows for table in slices)
        if rows:
            given = _table(slices)  # combined rows have columns of their own
            self._caller.rows(step, fill_new_columns(given, self.input_schema) if self.combiner is None else given)
        if self.is_due(state, moment):
            self._caller.timers(step, state.timers.take_due(moment.clocks))
        tables = {to: step.outputs.table(to) for to in (SINK, NEXT, SELF)}
        emitted = tables[SINK], tables[NEXT], tables[SELF]
        to_one = {name: step.outputs.table(next_to(name)) for name in self._followers}
        return StepOutput(
            *emitted,
            step.quarantine.table(),
            rows,
            key_times=step.key_times,
            cost_times=step.cost_times,
            next_to={name: table for name, table in to_one.items() if table is not None},
        )

    def is_due(self, state: UnitState, moment: Moment) -> bool:
        """Return whether a timer is due, so that a step is needed even without rows."""
        return moment.round == 0 and state.timers.is_due(moment.clocks)

    def part(self, state: UnitState, hashes: Hashes) -> UnitState:
        """Take the keys with these hashes out of a state, with their timers; changes the state in place.

        The part is a state too: it can be captured and restored, parted again, and joined to another unit of the stage.
        A timer without a key belongs to the task, and stays. O(keys of the state). Raises `DivisionFailed`.
        """
        return divide.part(self.operator, state, hashes, self.name)

    def join(self, state: UnitState, part: UnitState) -> None:
        """Put a part of another unit into a state; changes both in place. Raises `DivisionFailed`."""
        divide.join(self.operator, state, part, self.name)

    def capture(self, state: UnitState) -> Any:
        """Return a copy of the state for storage, which later steps do not change.

        Free for Arrow, a memory copy for arrays, keyed columns and dicts of scalars, a pickle for everything else.
        """
        return encode(state.value, state.timers, self.name)

    @pause_collector()
    def restore(self, captured: Any) -> UnitState:
        """Return the state from the form in which this version of the operator captured it."""
        value, timers = decode(captured)
        if isinstance(self.operator, KeyedOperator) and self._needs_canonical_keys:
            value = {to_canonical(key): entry for key, entry in value.items()}
        return UnitState(value, timers)

    def load(self, saved: SavedState, unit: UnitId) -> UnitState:
        """Return the state of a unit from its stored form, in the form of this version of the operator.

        Raises `UpgradeFailed`.
        """
        state, version = self.restore(saved.state), self.version_of(saved.meta)
        if version != self.version:
            state.value = upgrade(self.operator, state.value, version, self.name, str(unit))
        return state

    def version_of(self, meta: Mapping[str, Any]) -> str:
        """Return the version of the operator that stored a state with this metadata."""
        return str(meta.get(VERSION, self.first_version))

    @property
    def version(self) -> str:
        """The operator's version, which is stored with every state."""
        return self.operator.version

    def size(self, state: UnitState) -> int:
        """Estimate the bytes of the stored state; cheap."""
        return int(self.operator.state_size(state.value)) + _TIMER_BYTES * len(state.timers)

    def lookup(self, state: UnitState, key: Any, partials: pa.Table | None = None) -> Any:
        """Return what the state holds for one key: a value, or a tuple with one value per key column.

        With partials of that key, return what it would hold after them; the state stays as it is.
        """
        values = key if isinstance(key, tuple) else (key,)
        if partials is None or not partials.num_rows:
            return self.operator.lookup(state.value, values)
        copied = UnitState(self._copy_key(state.value, values, partials))
        step = UnitStep(copied, _NO_TIME, OutputBuffer(self.name, self._schemas))
        self._caller.rows(step, self.combine(partials))
        return self.operator.lookup(copied.value, values)

    def state_rows(self, state: UnitState) -> pa.Table:
        return self.operator.state_rows(state.value)

    def with_trial(self, trial: Trial) -> Self:
        """Return the same stage for rows that may kill the process: see `GuardedCaller`."""
        guarded = copy.copy(self)
        key = self.key if isinstance(self.operator, KeyedOperator) else None
        guarded._caller = GuardedCaller(self._caller, trial, key, self.capture, self.restore)  # noqa: SLF001 - its own
        return guarded

    def _copy_key(self, value: Any, key: tuple[Any, ...], partials: pa.Table) -> Any:
        """Return a copy of a value that has the state of one key; of that key alone where that is possible."""
        if isinstance(self.operator, KeyedOperator):
            known = {to_key(key): value[to_key(key)]} if to_key(key) in value else {}
            return copy_value(known, self.name)
        if isinstance(value, KeyedColumns) and tuple(value.key_schema.names) == self.key:
            rows = value.find(partials.slice(0, 1))
            return value.select(rows[rows >= 0])
        return copy_value(value, self.name)

    @property
    def _needs_canonical_keys(self) -> bool:
        return any(needs_canonical(self.input_schema.field(name).type) for name in self.key)

    def _create_caller(self, operator: Operator, *, skip: bool) -> OperatorCaller:
        if isinstance(operator, KeyedOperator):
            return KeyedCaller(operator, self.key, self.name, skip=skip)
        return BatchCaller(operator, self.name, skip=skip)


def _schemas(operator: Operator, input_schema: pa.Schema, next_schema: pa.Schema | None) -> dict[str, pa.Schema]:
    """Return the schema of each destination that the operator may emit to."""
    unknown = operator.emits - {NEXT, SELF}
    if unknown:
        raise InvalidJob(
            f"unknown destinations in emits: {sorted(unknown)}. Use 'next' and 'self'; for the sink set output_schema."
        )
    schemas = {SINK: to_schema(operator.output_schema)} if operator.output_schema is not None else {}
    if next_schema is not None:
        schemas[NEXT] = next_schema
    if SELF in operator.emits:
        schemas[SELF] = input_schema
    return schemas


def _table(slices: Sequence[pa.Table | pa.RecordBatch]) -> pa.Table:
    """Concatenate slices without copying."""
    tables = [pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows for rows in slices]
    return concat_rows(tables)
