"""A tester that runs operators in one process, without Spark, Java or a store."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from elastic.errors import InvalidJob
from elastic.operators.calls import UnitState
from elastic.operators.context import Moment
from elastic.operators.event_times import to_milliseconds
from elastic.operators.graph import DEFAULT_INPUT, Input, InputSpec, Watermarks, choose_key, to_input_specs
from elastic.operators.keyed import KeyedOperator
from elastic.operators.keys import to_key
from elastic.operators.operator import Operator
from elastic.operators.partial import PartialOperator
from elastic.operators.rows import as_table, is_frame
from elastic.operators.schemas import SchemaLike, to_schema
from elastic.operators.stage_runner import StageRunner, StepOutput
from elastic.operators.stages import Stage, build_runners, build_stages, distinct_inputs
from elastic.operators.testing.cluster import SimulatedCluster
from elastic.operators.testing.scenario import Crash, InputBatch, Rekey, Scale
from elastic.routing.groupings import Groupings
from elastic.routing.hashing import hash_key
from elastic.routing.split import split
from elastic.routing.unit_chooser import UnitChooser
from migration import Ownership, Plan
from storage.state import BatchTime, UnitId

_SECOND_MS = 1_000

Slices = dict[UnitId, list[pa.Table]]


class OperatorTester:
    """Runs an operator, or a pipeline of several, over batches; nodes join, leave and crash, and keys move in between.

        tester = OperatorTester(CountByKey(), key="word")
        rows = tester.run([[{"word": "a"}], Scale(3), [{"word": "a"}], Crash("node-1"), [{"word": "b"}]])

    A list of rows, a table or a DataFrame is a batch. With several `inputs`, which have schemas instead of rows, a
    batch is a mapping from their names to such:

        inputs = [Input(name="ads", schema="id long, ts timestamp", event_time="ts"), Input(name="clicks", ...)]
        OperatorTester(join, key="id", inputs=inputs).run([{"ads": [...], "clicks": [...]}, {"clicks": [...]}])

    Output rows are in order of batch, stage, task and round, those
    of the guests of tasks (see `Rekey`) after those of the tasks.
    `schema` is that of the rows; by default it is inferred from the first run. `watermark` names the column of event
    time and the delay in milliseconds. The tester takes a snapshot every `snapshot_every` batches, and raises
    `NotReplayable` if a replay emits other rows than before.
    """

    def __init__(
        self,
        pipeline: Operator | Stage | Sequence[Operator | Stage],
        *,
        key: str | Sequence[str] = (),
        schema: SchemaLike | None = None,
        tasks: int = 16,
        nodes: int = 2,
        watermark: tuple[str, int] | None = None,
        on_error: Literal["fail", "skip"] = "fail",
        snapshot_every: int = 2,
        max_rounds: int = 1_000,
        inputs: Sequence[Input] = (),
    ) -> None:
        self._stages = build_stages(pipeline, choose_key(inputs, key), [each.name for each in inputs])
        self._inputs = tuple(inputs)
        self._schema = None if schema is None else to_schema(schema)
        self._shape = (tasks, nodes)
        self._watermark = watermark
        self._on_error: Literal["fail", "skip"] = on_error
        self._snapshot_every = snapshot_every
        self._max_rounds = max_rounds
        self._runners: tuple[StageRunner, ...] = ()
        self._cluster: SimulatedCluster | None = None
        self._chooser = UnitChooser(clock=lambda: self._now_ms / _SECOND_MS)
        self._batch = 0
        self._now_ms = 0
        self._specs: tuple[InputSpec, ...] = ()
        self._watermarks = Watermarks(())
        self._time: BatchTime | None = None  # of the latest batch
        self.results: dict[str, list[dict[str, Any]]] = {stage.name: [] for stage in self._stages}
        self.quarantined: list[dict[str, Any]] = []
        self.plans: list[Plan] = []

    def run(self, scenario: Iterable[Any]) -> list[dict[str, Any]]:
        """Run a scenario; return the rows for the sink. `results` has all rows of each stage so far."""
        items = [
            item if isinstance(item, InputBatch | Scale | Crash | Rekey) else InputBatch(item) for item in scenario
        ]
        self._start([item.rows for item in items if isinstance(item, InputBatch)])
        emitted: list[dict[str, Any]] = []
        for item in items:
            if isinstance(item, InputBatch):
                emitted += self._apply(item)
            elif isinstance(item, Scale):
                self.plans.append(self._running.scale(item.nodes))
            elif isinstance(item, Rekey):
                self._rekey(item)
            else:
                self._running.crash(item.node)
        return emitted

    @property
    def assignment(self) -> Ownership:
        """The current assignment of tasks to nodes."""
        return self._running.assignment

    def state(self, key: Any, stage: str | None = None, *, fresh: bool = False) -> Any:
        """Return the state of a key in a stage, by default the last one; `fresh` adds what a partial stage holds."""
        cluster = self._running
        runner = self._runners[self._stage_number(stage)]
        unit = cluster.routing.groupings.unit_of(_hash(key, runner), runner.stage)
        partials = self._find_partials(_values(key, runner), runner) if fresh else None
        return runner.lookup(cluster.state(unit), _values(key, runner), partials)

    def change_state(self, key: Any, change: Callable[[Any, Any], Any], stage: str | None = None) -> None:
        """Let the state of a key of a `KeyedOperator` be `change(operator, state)`, where None stands for no state.

        The operator is that of the stage, bound to it. A crash keeps the change: the replay repeats it.
        """
        runner = self._runners[self._stage_number(stage)]
        operator = runner.operator
        if not isinstance(operator, KeyedOperator):
            raise InvalidJob(f"stage {runner.name!r} has no state by key that could change. Use a KeyedOperator.")
        known = to_key(_values(key, runner))

        def apply(state: UnitState) -> None:
            changed = change(operator, state.value.get(known))
            if changed is None:
                state.value.pop(known, None)
            else:
                state.value[known] = changed

        self._running.change(self._running.routing.groupings.unit_of(_hash(key, runner), runner.stage), apply)

    def _find_partials(self, key: tuple[Any, ...], runner: StageRunner) -> pa.Table:
        """Return the partials of a key that the tasks of the partial stage before a stage hold."""
        sources = {feed.source for feed in runner.feeds}
        before = [one for one in self._runners if one.name in sources and isinstance(one.operator, PartialOperator)]
        if not before:
            raise InvalidJob("there is no partial stage before that stage. Ask without fresh.")
        units = self._running.routing.units(before[0].stage)
        return pa.concat_tables([before[0].lookup(self._running.state(unit), key).partials for unit in units])

    def close(self) -> None:
        """Close the operators, as a node does when it stops."""
        for runner in self._runners:
            runner.close()

    @property
    def _running(self) -> SimulatedCluster:
        if self._cluster is None:
            raise InvalidJob("the tester has not run yet. Call run() first.")
        return self._cluster

    def _start(self, batches: list[Any]) -> None:
        if self._cluster is not None:
            return
        self._specs = distinct_inputs(self._stages, to_input_specs(self._bind_inputs(batches)))
        self._runners = build_runners(self._stages, self._specs, self._on_error)
        self._watermarks = Watermarks(self._specs, tuple(runner.clock for runner in self._runners))
        for runner in self._runners:
            runner.open()
        tasks, nodes = self._shape
        groupings = Groupings.of_kinds(tasks, [stage.grouping for stage in self._stages])
        self._cluster = SimulatedCluster(self._runners, groupings, nodes)

    def _bind_inputs(self, batches: list[Any]) -> list[InputSpec]:
        if not self._inputs:
            schema = _infer_schema(batches) if self._schema is None else self._schema
            column, delay_ms = self._watermark or (None, 0)
            return [InputSpec(DEFAULT_INPUT, schema, (), column, delay_ms)]
        if missing := [each.name for each in self._inputs if each.schema is None]:
            raise InvalidJob(f"input {missing[0]!r} has no schema. Give Input(..., schema='id long, ...').")
        return [each.bind(each.schema) for each in self._inputs if each.schema is not None]

    def _stage_number(self, name: str | None) -> int:
        """Return the number of a stage, by default that of the last one."""
        names = [stage.name for stage in self._stages]
        if name is not None and name not in names:
            raise InvalidJob(f"there is no stage {name!r}. Name one of {', '.join(map(repr, names))}.")
        return len(names) - 1 if name is None else names.index(name)

    def _rekey(self, item: Rekey) -> None:
        number, tasks = self._stage_number(item.stage), self._shape[0]
        for key, task in item.tasks.items():
            if task is not None and (isinstance(task, bool) or task not in range(tasks)):
                raise InvalidJob(
                    f"key {key!r} cannot move to task {task!r}. Give a task from 0 to {tasks - 1}, or None for the "
                    "task of its hash."
                )
        self._running.rekey(number, {_hash(key, self._runners[number]): task for key, task in item.tasks.items()})

    def _apply(self, batch: InputBatch) -> list[dict[str, Any]]:
        rows = self._rows_by_input(batch.rows)
        time = self._next_time(batch, rows)
        steps = list(self._rounds(rows, time))
        self._batch += 1
        self._time = time
        if self._batch % self._snapshot_every == 0:
            self._running.snapshot()
        emitted: list[dict[str, Any]] = []
        for unit, _, output in sorted(steps, key=lambda step: step[:2]):
            sink_rows = [] if output.sink is None else output.sink.to_pylist()
            self.results[self._stages[unit.stage].name] += sink_rows
            self.quarantined += [] if output.quarantined is None else output.quarantined.to_pylist()
            emitted += sink_rows
        return emitted

    def _rows_by_input(self, rows: Any) -> list[pa.Table]:
        """Return the rows of each input of a batch."""
        if not self._inputs:
            return [as_table(_to_rows(rows), self._specs[0].schema)]
        given = dict(rows) if isinstance(rows, Mapping) else {}
        known = {each.name: each for each in self._inputs}
        if not isinstance(rows, Mapping) and list(rows):
            raise InvalidJob("a batch of several inputs is a mapping from their names to rows. Write {'name': rows}.")
        if unknown := sorted(set(given).difference(known)):
            raise InvalidJob(f"a batch has rows of input {unknown[0]!r}. Name one of {', '.join(map(repr, known))}.")
        return [
            known[spec.name].select(as_table(_to_rows(given.get(spec.name, ())), known[spec.name].schema))
            for spec in self._specs
        ]

    def _rounds(self, rows: Sequence[pa.Table], time: BatchTime) -> Iterator[tuple[UnitId, int, StepOutput]]:
        """Yield every step of a batch: its rows and timers, then emitted rows, until there are no more."""
        slices: Slices = {}
        for spec, some in zip(self._specs, rows, strict=True):
            for runner in self._runners:
                for feed in runner.feeds:
                    if feed.source == spec.name and some.num_rows:
                        self._send(feed(some), runner.stage, slices)
        for number in range(self._max_rounds):
            next_slices: Slices = {}
            for unit in self._units_to_step(slices, time, number):
                output = self._running.step(unit, slices.get(unit, []), self._at(time, unit, number))
                for stage, emitted in self._runners[unit.stage].emitted(output):
                    self._send(emitted, stage, next_slices)
                yield unit, number, output
            if not next_slices:
                return
            slices = next_slices
        raise InvalidJob(
            f"batch {time.batch} still emits rows to stages after {self._max_rounds} rounds. "
            "Make the operator terminate, or raise max_rounds."
        )

    def _units_to_step(self, slices: Slices, time: BatchTime, number: int) -> list[UnitId]:
        if number > 0:
            return sorted(slices)
        every = [unit for stage in range(len(self._stages)) for unit in self._running.routing.units(stage)]
        return [unit for unit in every if unit in slices or self._running.is_due(self._at(time, unit, number))]

    def _send(self, rows: pa.Table | None, stage: int, slices: Slices) -> None:
        if rows is None or not rows.num_rows:
            return
        runner = self._runners[stage]
        rows = runner.combine(rows)
        numbers = self._chooser.unit_numbers(runner.hash_rows(rows), self._running.routing, stage)
        for number, some in split(rows, numbers).slices().items():
            slices.setdefault(UnitId.from_number(number), []).append(some)

    def _next_time(self, batch: InputBatch, rows: Sequence[pa.Table]) -> BatchTime:
        now = self._now_ms if batch.timestamp_ms is None else batch.timestamp_ms
        if batch.timestamp_ms is not None and now < self._now_ms - _SECOND_MS:
            raise InvalidJob(f"batch {self._batch} at {now} ms is earlier than its predecessor. Give ascending times.")
        self._now_ms = now + _SECOND_MS
        seen = {
            number: _latest_ms(some, spec.event_time)
            for number, (spec, some) in enumerate(zip(self._specs, rows, strict=True))
            if some.num_rows
        }
        time = self._watermarks.advance(self._time, self._batch, now, seen)
        return time if batch.next_watermark_ms is None else _with_watermark(time, batch.next_watermark_ms)

    def _at(self, time: BatchTime, unit: UnitId, number: int) -> Moment:
        return self._runners[unit.stage].moment(unit, time.batch, number, time)


def _latest_ms(rows: pa.Table, column: str | None) -> int | None:
    latest: int | None = None if column is None else pc.max(to_milliseconds(rows.column(column))).as_py()
    return latest


def _with_watermark(time: BatchTime, watermark_ms: int) -> BatchTime:
    """Return the clock with that watermark after the batch, of every input."""
    inputs = tuple(each._replace(watermarks=(watermark_ms, *each.watermarks[1:])) for each in time.inputs)
    return time._replace(next_watermark_ms=watermark_ms, inputs=inputs)


def _values(key: Any, runner: StageRunner) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) and len(runner.key) > 1 else (key,)


def _hash(key: Any, runner: StageRunner) -> int:
    """Return the hash of a key of a stage; raises `InvalidKey` for a key of another type."""
    return hash_key(*_values(key, runner), types=[runner.input_schema.field(name).type for name in runner.key])


def _to_rows(rows: Any) -> Any:
    return rows if isinstance(rows, pa.Table | pa.RecordBatch) or is_frame(rows) else list(rows)


def _infer_schema(batches: list[Any]) -> pa.Schema:
    given = [_to_rows(rows) for rows in batches]
    tables = [as_table(rows, rows.schema) for rows in given if isinstance(rows, pa.Table | pa.RecordBatch)]
    tables += [pa.Table.from_pandas(rows, preserve_index=False) for rows in given if is_frame(rows)]
    dicts = [row for rows in given if isinstance(rows, list) for row in rows]
    if not tables and not dicts:
        raise InvalidJob("a scenario without rows has no schema. Give the tester a schema.")
    return tables[0].schema.remove_metadata() if tables else pa.Table.from_pylist(dicts).schema
