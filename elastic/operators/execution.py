"""The execution side: what a node does with an operator. Nothing of Spark, nothing of storage's objects."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import pyarrow as pa

from elastic.errors import InvalidJob
from elastic.operators.calls import BatchCalls, Calls, Step, UnitState
from elastic.operators.combining import Combiner
from elastic.operators.guarded import GuardedCalls, Trial
from elastic.operators.keyed import KeyedOperator
from elastic.operators.keyed_calls import KeyedCalls
from elastic.operators.keys import canonical, needs_canonical
from elastic.operators.moment import Moment
from elastic.operators.operator import Operator
from elastic.operators.outputs import NEXT, SELF, SINK, Outputs
from elastic.operators.rows import check_input_format
from elastic.operators.saved import decoded, encoded
from elastic.operators.schemas import schema_of
from elastic.routing.hashing import check_key

_TIMER_BYTES = 32


@dataclass(frozen=True)
class StepOutput:
    """What a step emitted, None where it emitted nothing. `rows` counts the rows that came in.

    `quarantined` has the columns row (JSON) and error (a traceback).
    """

    sink: pa.Table | None
    next: pa.Table | None
    self_: pa.Table | None
    quarantined: pa.Table | None
    rows: int


class StageRunner:
    """One stage of a job, on one node: applies steps to the states of its slots.

    Deterministic: the same state, slices and moment give the same state and output. States are separate, so steps of
    different slots may run at the same time as far as the operator allows it. After an error a state is not to be used
    any more: restore it.
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
    ) -> None:
        if on_error not in ("fail", "skip"):
            raise InvalidJob(f'on_error cannot be {on_error!r}. Use "fail" or "skip".')
        check_key(input_schema, key)
        check_input_format(operator.input_format)
        self.operator = operator.bind(tuple(key), input_schema)
        self.key = tuple(key)
        self.input_schema = input_schema
        self.stage = stage
        self.name = name
        self.combiner = Combiner.of(self.operator, name)  # travels to those who send rows here
        self._schemas = _schemas(self.operator, input_schema, next_schema)
        self._calls: Calls = self._calls_of(self.operator, skip=on_error == "skip")

    @property
    def output_schema(self) -> pa.Schema | None:
        """Of what goes to the sink; None if nothing does."""
        return self._schemas.get(SINK)

    @property
    def emits_rows_to_stages(self) -> bool:
        """Whether a step may cause another round."""
        return NEXT in self._schemas or SELF in self._schemas

    def combined(self, rows: pa.Table) -> pa.Table:
        """Rows on their way here, as few as the operator can make them."""
        return rows if self.combiner is None else self.combiner(rows)

    def open(self) -> None:
        self.operator.open()

    def close(self) -> None:
        self.operator.close()

    def new_state(self) -> UnitState:
        """The state of a slot that has seen nothing."""
        return UnitState({} if isinstance(self.operator, KeyedOperator) else self.operator.initial_state())

    def step(self, state: UnitState, slices: Sequence[pa.Table], moment: Moment) -> StepOutput:
        """The rows in their order, then, in round 0, the timers that are due; changes the state in place.

        Raises `OperatorFailed` or `InvalidOutput` unless such rows are to be skipped.
        """
        step = Step(state, moment, Outputs(self.name, self._schemas))
        rows = sum(table.num_rows for table in slices)
        if rows:
            self._calls.rows(step, self._with_new_columns(_table(slices)))
        if self.due(state, moment):
            self._calls.timers(step, state.timers.take_due(moment.clocks))
        tables = {to: step.outputs.table(to) for to in (SINK, NEXT, SELF)}
        return StepOutput(tables[SINK], tables[NEXT], tables[SELF], step.quarantine.table(), rows)

    def due(self, state: UnitState, moment: Moment) -> bool:
        """Whether some timer is due, so that a step is needed even without rows."""
        return moment.round == 0 and state.timers.is_due(moment.clocks)

    def capture(self, state: UnitState) -> Any:
        """What to store: a copy that later steps cannot change.

        Free for Arrow, a copy of memory for arrays, keyed columns and dicts of scalars, a pickle for anything else.
        """
        return encoded(state.value, state.timers, self.name)

    def restore(self, saved: Any) -> UnitState:
        """The state from what was captured, stored and loaded."""
        value, timers = decoded(saved)
        if isinstance(self.operator, KeyedOperator) and self._has_odd_keys:
            value = {canonical(key): entry for key, entry in value.items()}
        return UnitState(value, timers)

    def size(self, state: UnitState) -> int:
        """About how many bytes are stored or moved; cheap."""
        return int(self.operator.state_size(state.value)) + _TIMER_BYTES * len(state.timers)

    def lookup(self, state: UnitState, key: Any) -> Any:
        """What the state holds for one key: a value, or a tuple of one value per key column."""
        return self.operator.lookup(state.value, key if isinstance(key, tuple) else (key,))

    def state_rows(self, state: UnitState) -> pa.Table:
        return self.operator.state_rows(state.value)

    def guarded(self, trial: Trial) -> Self:
        """The same stage for rows that may kill the process: every call is tried first. See `GuardedCalls`."""
        twin = copy.copy(self)
        key = self.key if isinstance(self.operator, KeyedOperator) else None
        twin._calls = GuardedCalls(self._calls, trial, key, self.capture, self.restore)  # noqa: SLF001 - its own
        return twin

    @property
    def _has_odd_keys(self) -> bool:
        return any(needs_canonical(self.input_schema.field(name).type) for name in self.key)

    def _with_new_columns(self, rows: pa.Table) -> pa.Table:
        """Rows logged before the job was restarted with more columns have nulls there; combined rows have their own."""
        if self.combiner is not None or rows.num_columns >= len(self.input_schema):
            return rows
        for field in self.input_schema:
            if field.name not in rows.schema.names:
                rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
        return rows.select(self.input_schema.names)

    def _calls_of(self, operator: Operator, *, skip: bool) -> Calls:
        if isinstance(operator, KeyedOperator):
            return KeyedCalls(operator, self.key, self.name, skip=skip)
        return BatchCalls(operator, self.name, skip=skip)


def _schemas(operator: Operator, input_schema: pa.Schema, next_schema: pa.Schema | None) -> dict[str, pa.Schema]:
    """The schema of each destination that the operator may emit to."""
    unknown = operator.emits - {NEXT, SELF}
    if unknown:
        raise InvalidJob(
            f"emits cannot name {sorted(unknown)}. Use 'next' and 'self'; the sink needs output_schema only."
        )
    schemas = {SINK: schema_of(operator.output_schema)} if operator.output_schema is not None else {}
    if next_schema is not None:
        schemas[NEXT] = next_schema
    if SELF in operator.emits:
        schemas[SELF] = input_schema
    return schemas


def _table(slices: Sequence[pa.Table | pa.RecordBatch]) -> pa.Table:
    """All slices as one table, without copying."""
    tables = [pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows for rows in slices]
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)
