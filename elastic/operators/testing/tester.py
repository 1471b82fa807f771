"""Operators tried out in one process: no Spark, no Java, no store."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from elastic.errors import InvalidJob
from elastic.operators.execution import StageRunner, StepOutput
from elastic.operators.moment import Moment
from elastic.operators.operator import Operator
from elastic.operators.rows import as_table, is_frame
from elastic.operators.schemas import SchemaLike, schema_of
from elastic.operators.stages import Stage, runners_of, stages_of
from elastic.operators.testing.story import Batch, Crash, Scale
from elastic.operators.testing.world import World
from elastic.operators.times import in_milliseconds
from elastic.routing.hashing import key_hash, scalar_hash
from elastic.routing.slots import stage_of, task_of_slot
from elastic.routing.split import split
from migration import Ownership, Plan

_SECOND_MS = 1_000

Slices = dict[int, list[pa.Table]]


class OperatorTester:
    """Runs an operator, or several as a pipeline, over batches, with nodes that come, go and crash in between.

        tester = OperatorTester(CountByKey(), key="word")
        rows = tester.run([[{"word": "a"}], Scale(3), [{"word": "a"}], Crash("node-1"), [{"word": "b"}]])

    A list of rows (or a table, or a frame) is a batch. Rows come out in the order of batch, stage, task and round.
    `schema` is that of the rows, else it is inferred from those of the first run. `watermark` names the column of
    event time and how many milliseconds late rows may be. A snapshot is taken every `snapshot_every` batches.
    A replay that gives other rows than the first time raises `NotReplayable`.
    """

    def __init__(
        self,
        pipeline: Operator | Stage | Sequence[Operator | Stage],
        *,
        key: str | Sequence[str],
        schema: SchemaLike | None = None,
        tasks: int = 16,
        nodes: int = 2,
        watermark: tuple[str, int] | None = None,
        on_error: Literal["fail", "skip"] = "fail",
        snapshot_every: int = 2,
        most_rounds: int = 1_000,
    ) -> None:
        self._stages = stages_of(pipeline, key)
        self._schema = None if schema is None else schema_of(schema)
        self._shape = (tasks, nodes)
        self._watermark = watermark
        self._on_error: Literal["fail", "skip"] = on_error
        self._snapshot_every = snapshot_every
        self._most_rounds = most_rounds
        self._runners: tuple[StageRunner, ...] = ()
        self._world: World | None = None
        self._batch = 0
        self._now_ms = 0
        self._watermark_ms: int | None = None
        self.results: dict[str, list[dict[str, Any]]] = {stage.name: [] for stage in self._stages}
        self.quarantined: list[dict[str, Any]] = []
        self.plans: list[Plan] = []

    def run(self, story: Iterable[Any]) -> list[dict[str, Any]]:
        """What the batches of this story give to the sink; what each stage ever gave is in `results`."""
        items = [item if isinstance(item, Batch | Scale | Crash) else Batch(item) for item in story]
        self._start([item.rows for item in items if isinstance(item, Batch)])
        emitted: list[dict[str, Any]] = []
        for item in items:
            if isinstance(item, Batch):
                emitted += self._apply(item)
            elif isinstance(item, Scale):
                self.plans.append(self._running.scale(item.nodes))
            else:
                self._running.crash(item.node)
        return emitted

    @property
    def assignment(self) -> Ownership:
        """Which node owns which tasks now."""
        return self._running.assignment

    def state(self, key: Any, stage: str | None = None) -> Any:
        """What a stage (the last one, unless named) holds for a key."""
        world = self._running
        number = len(self._stages) - 1 if stage is None else [made.name for made in self._stages].index(stage)
        runner = self._runners[number]
        values = key if isinstance(key, tuple) and len(runner.key) > 1 else (key,)
        types = [runner.input_schema.field(name).type for name in runner.key]
        task = scalar_hash(*values, types=types) % self._shape[0]
        return runner.lookup(world.state(world.routing.slots(number)[task]), values)

    def close(self) -> None:
        """Close the operators, as a node does when it leaves."""
        for runner in self._runners:
            runner.close()

    @property
    def _running(self) -> World:
        if self._world is None:
            raise InvalidJob("the tester has seen no rows yet. Call run() first.")
        return self._world

    def _start(self, batches: list[Any]) -> None:
        if self._world is not None:
            return
        if self._schema is None:
            self._schema = _inferred(batches)
        self._runners = runners_of(self._stages, self._schema, self._on_error)
        for runner in self._runners:
            runner.open()
        self._world = World(self._runners, *self._shape)

    def _apply(self, batch: Batch) -> list[dict[str, Any]]:
        rows = as_table(_listed(batch.rows), self._schema)
        moment = self._moment(batch, rows)
        steps = list(self._rounds(rows, moment))
        self._batch += 1
        self._watermark_ms = moment.next_watermark_ms
        if self._batch % self._snapshot_every == 0:
            self._running.snapshot()
        emitted: list[dict[str, Any]] = []
        for slot, _, output in sorted(steps, key=lambda step: step[:2]):
            sunk = [] if output.sink is None else output.sink.to_pylist()
            self.results[self._stages[stage_of(slot)].name] += sunk
            self.quarantined += [] if output.quarantined is None else output.quarantined.to_pylist()
            emitted += sunk
        return emitted

    def _rounds(self, rows: pa.Table, moment: Moment) -> Iterator[tuple[int, int, StepOutput]]:
        """Every step of a batch: its rows and timers, then what operators emitted, until they emit no more."""
        slices: Slices = {}
        self._send(rows, 0, slices)
        for number in range(self._most_rounds):
            coming: Slices = {}
            for slot in self._slots_to_step(slices, moment, number):
                output = self._running.step(slot, slices.get(slot, []), _at(moment, slot, number))
                self._send(output.self_, stage_of(slot), coming)
                self._send(output.next, stage_of(slot) + 1, coming)
                yield slot, number, output
            if not coming:
                return
            slices = coming
        raise InvalidJob(
            f"batch {moment.batch} still emits rows to stages after {self._most_rounds} rounds. "
            "Let the operator stop, or raise most_rounds."
        )

    def _slots_to_step(self, slices: Slices, moment: Moment, number: int) -> list[int]:
        if number > 0:
            return sorted(slices)
        every = [slot for stage in range(len(self._stages)) for slot in self._running.routing.slots(stage)]
        return [slot for slot in every if slot in slices or self._running.due(_at(moment, slot, number))]

    def _send(self, rows: pa.Table | None, stage: int, slices: Slices) -> None:
        if rows is None or not rows.num_rows:
            return
        rows = self._runners[stage].combined(rows)
        hashes = key_hash([rows.column(name) for name in self._stages[stage].key])
        for slot, some in split(rows, self._running.routing.slots_of(hashes, stage)).slices().items():
            slices.setdefault(slot, []).append(some)

    def _moment(self, batch: Batch, rows: pa.Table) -> Moment:
        now = self._now_ms if batch.timestamp_ms is None else batch.timestamp_ms
        if batch.timestamp_ms is not None and now < self._now_ms - _SECOND_MS:
            raise InvalidJob(f"batch {self._batch} at {now} ms is before the one before it. Let time go on.")
        self._now_ms = now + _SECOND_MS
        following = batch.next_watermark_ms if batch.next_watermark_ms is not None else self._watermark_after(rows)
        return Moment(0, 0, self._batch, 0, now, self._watermark_ms, following)

    def _watermark_after(self, rows: pa.Table) -> int | None:
        if self._watermark is None or not rows.num_rows:
            return self._watermark_ms
        column, delay_ms = self._watermark
        newest = pc.max(in_milliseconds(rows.column(column))).as_py()
        known = [self._watermark_ms, None if newest is None else newest - delay_ms]
        return max((each for each in known if each is not None), default=None)


def _at(moment: Moment, slot: int, number: int) -> Moment:
    clocks = (moment.timestamp_ms, moment.watermark_ms, moment.next_watermark_ms)
    return Moment(slot, task_of_slot(slot), moment.batch, number, *clocks)


def _listed(rows: Any) -> Any:
    return rows if isinstance(rows, pa.Table | pa.RecordBatch) or is_frame(rows) else list(rows)


def _inferred(batches: list[Any]) -> pa.Schema:
    given = [_listed(rows) for rows in batches]
    tables = [as_table(rows, rows.schema) for rows in given if isinstance(rows, pa.Table | pa.RecordBatch)]
    tables += [pa.Table.from_pandas(rows, preserve_index=False) for rows in given if is_frame(rows)]
    dicts = [row for rows in given if isinstance(rows, list) for row in rows]
    if not tables and not dicts:
        raise InvalidJob("a story without rows has no schema. Give the tester a schema.")
    return tables[0].schema.remove_metadata() if tables else pa.Table.from_pylist(dicts).schema
