"""What a job must come to: one process without a protocol, which takes the same batches."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastic.core import ids
from elastic.core.pipeline import create_runners, describe_pipeline
from elastic.core.steps import Position
from elastic.ingest.batch_spec import INPUT_NUMBER
from elastic.operators.aggregates.windowed import WindowedAggregate
from elastic.operators.graph import InputSpec
from elastic.operators.joins.stream_join import StreamJoin
from elastic.operators.stage_runner import StageRunner
from elastic.operators.stages import Stage, build_stages
from elastic.results import Description
from elastic.routing import Groupings, split
from storage.state import BatchTime, UnitId
from tests.elastic.simulation.operators import SCHEMA

TASKS = 8
WATERMARK_DELAY_MS = 700

Batch = list[pa.Table]  # one table for each source partition


@dataclass
class Committed:
    """What a job has committed: by number the batch of the source (None: a tick) and its clocks; rows by step and unit.

    The rows of a unit are in the order of the log.
    """

    sources: list[int | None] = field(default_factory=list)
    times: list[BatchTime] = field(default_factory=list)
    log: dict[Position, dict[int, pa.Table]] = field(default_factory=dict)  # by unit number
    groupings: list[tuple[int, Groupings]] = field(default_factory=list)  # and the first batch that they hold for

    def groupings_of(self, batch: int) -> Groupings:
        return [groupings for since, groupings in self.groupings if since <= batch][-1]


ONE_INPUT = [InputSpec("input", SCHEMA, (), "at", WATERMARK_DELAY_MS)]
TWO_INPUTS = [
    InputSpec("a", SCHEMA, (), "at", WATERMARK_DELAY_MS),
    InputSpec("b", SCHEMA, (), "at", 300, idle_after_ms=2_500),
]


def inputs_of(stages: list[Stage]) -> list[InputSpec]:
    reads = {name for stage in stages for name, _ in stage.inputs}
    return TWO_INPUTS if reads.intersection("ab") else ONE_INPUT


def pipeline_of(stages: list[Stage]) -> Description:
    inputs = inputs_of(stages)
    return describe_pipeline(build_stages(stages, (), [spec.name for spec in inputs]), inputs, TASKS)


def batches_of(seed: int, inputs: int = 1) -> list[Batch]:
    """Some batches of some partitions of some rows; some of each are empty. Event time moves on, with outliers.

    Of several inputs each partition has rows of one. They run at different rates, and the last one ahead of the first.
    """
    chance = random.Random(seed)  # noqa: S311
    batches = [
        [_partition(chance, batch, chance.choice([0, 1, 5, 20])) for _ in range(chance.choice([1, 2, 3]))]
        for batch in range(chance.choice([2, 4, 8, 12]))
    ]
    return batches if inputs == 1 else [[_of_one_input(chance, rows) for rows in batch] for batch in batches]


def _partition(chance: random.Random, batch: int, size: int) -> pa.Table:
    columns = {
        "key": [chance.randrange(20) for _ in range(size)],
        "value": [chance.randrange(4) for _ in range(size)],
        "at": [max(0, 600 * batch + chance.randrange(-3_000, 1_500)) for _ in range(size)],
    }
    return pa.table(columns, schema=SCHEMA)


def _of_one_input(chance: random.Random, rows: pa.Table) -> pa.Table:
    number = chance.choice([0, 0, 1])
    ahead = pc.add(rows["at"], 2_000 * number)
    rows = rows.set_column(2, "at", ahead)
    return rows.append_column(INPUT_NUMBER, pa.array([number] * rows.num_rows, pa.int8()))


def rows_by_input(partitions: Batch, inputs: Sequence[InputSpec]) -> dict[str, list[pa.Table]]:
    """Return the tables of each input that have rows, in the order of the partitions."""
    found: dict[str, list[pa.Table]] = {spec.name: [] for spec in inputs}
    for rows in partitions:
        if rows.num_rows:
            number = rows[INPUT_NUMBER][0].as_py() if INPUT_NUMBER in rows.column_names else 0
            found[inputs[number].name].append(rows.select(SCHEMA.names))
    return found


def watermarks_of(batches: list[Batch], times: Sequence[BatchTime], inputs: Sequence[InputSpec]) -> list[int | None]:
    """Return the least watermark of all inputs, before the first batch and after each: the latest event time of an
    input less its delay, or while it is idle the least of those that are not.
    """
    reached: dict[str, int | None] = {spec.name: None for spec in inputs}
    active = {spec.name: 0 for spec in inputs}
    least: list[int | None] = [None]
    for partitions, time in zip(batches, times, strict=True):
        idle = []
        for number, spec in enumerate(inputs):
            tables = rows_by_input(partitions, inputs)[spec.name]
            ats = [at - spec.watermark_delay_ms for rows in tables for at in rows["at"].to_pylist()]
            if time.inputs:
                active_ms = time.inputs[number].active_ms  # no earlier than this life, of which only the driver knows
                assert active[spec.name] <= active_ms <= time.timestamp_ms
                active[spec.name] = active_ms
                assert not ats or active_ms == time.timestamp_ms
            known = reached[spec.name]
            reached[spec.name] = max([*ats, *([] if known is None else [known])], default=None)
            quiet_ms = time.timestamp_ms - active[spec.name]
            if spec.idle_after_ms is not None and quiet_ms >= spec.idle_after_ms:
                idle.append(spec.name)
        awake = [mark for name, mark in reached.items() if name not in idle]
        for name in idle:
            others = [mark for mark in awake if mark is not None]
            if len(others) == len(awake):
                reached[name] = max([min(others), *([] if reached[name] is None else [reached[name]])])  # type: ignore[type-var]
        marks = [mark for mark in reached.values() if mark is not None]
        least.append(min(marks) if len(marks) == len(reached) else None)
    return least


class Oracle:
    """Takes batches one after the other, and keeps every result and every state.

    The order of rows in a later round is the engine's to choose, and the log tells which one it chose. So the log is
    compared, as a bag, with what must be in it, and read in its own order; that of round 0 must be in source order.
    """

    def __init__(self, pipeline: Description, committed: Committed) -> None:
        self.results: Counter[str] = Counter()
        self._pipeline = pipeline
        self._committed = committed
        self._stages = create_runners(pipeline, "fail")
        self._states = {
            unit: stage.new_state()
            for number, stage in enumerate(self._stages)
            for unit in committed.groupings_of(0).units(number)
        }

    def take(self, source: list[Batch]) -> None:
        """All batches of the source, each once, in order, and between them the ticks that were committed."""
        sources = self._committed.sources
        assert [number for number in sources if number is not None] == list(range(len(source))), sources
        batches = [[] if number is None else source[number] for number in sources]
        watermarks = watermarks_of(batches, self._committed.times[: len(batches)], self._pipeline.inputs)
        for batch, partitions in enumerate(batches):
            clocks = watermarks[batch], watermarks[batch + 1]
            time = self._committed.times[batch]
            assert (time.batch, time.watermark_ms, time.next_watermark_ms) == (batch, *clocks)
            assert not batch or time.timestamp_ms >= self._committed.times[batch - 1].timestamp_ms
            waiting = self._first_round(partitions)
            round_ = 0
            while any(waiting.values()) or round_ == 0:
                waiting = self._take_round(Position(ids.Batch(batch), round_), time, waiting)
                round_ += 1
            self._move_keys(self._committed.groupings_of(batch), self._committed.groupings_of(batch + 1))

    def states(self) -> dict[UnitId, str]:
        return {unit: text_of(state, self._stages[unit.stage]) for unit, state in self._states.items()}

    def _first_round(self, partitions: Batch) -> dict[int, list[pa.Table]]:
        """Return the rows of the inputs as every stage that reads them gets them, in the order of the partitions."""
        waiting: dict[int, list[pa.Table]] = {}
        for rows in partitions:
            for name, tables in rows_by_input([rows], self._pipeline.inputs).items():
                for stage in self._stages:
                    if name in (feed.source for feed in stage.feeds):
                        waiting.setdefault(stage.stage, []).extend(map(stage.feed_from(name), tables))
        return waiting

    def _take_round(
        self, position: Position, time: BatchTime, waiting: dict[int, list[pa.Table]]
    ) -> dict[int, list[pa.Table]]:
        emitted: dict[int, list[pa.Table]] = {}
        self._check_split(position, waiting)
        for unit, state in self._states.items():
            number = unit.stage
            rows = self._rows(position, unit, waiting.get(number, []))
            moment = self._stages[number].moment(unit, *position, time)
            if not rows and not self._stages[number].is_due(state, moment):
                continue
            output = self._stages[number].step(state, rows, moment)
            self.results.update(lines_of(self._pipeline.stages[number].name, position.batch, output.sink))
            for target, table in self._stages[number].emitted(output):
                emitted.setdefault(target, []).append(table)
        return emitted

    def _check_split(self, position: Position, waiting: dict[int, list[pa.Table]]) -> None:
        """The tasks of a stage without places for its keys together get every row once."""
        for number in range(len(self._stages)):
            if not self._committed.groupings_of(position.batch)[number].is_by_key:
                logged = self._committed.log.get(position, {})
                found = [rows for unit, rows in logged.items() if UnitId.from_number(unit).stage == number]
                # A round of orders or parts has no rows.
                rows = [table for table in found if "key" in table.schema.names]
                bags = [sum(map(_bag, tables), Counter()) for tables in (rows, waiting.get(number, []))]
                assert bags[0] == bags[1], f"{position}: stage {number} got other rows"

    def _move_keys(self, before: Groupings, after: Groupings) -> None:
        """Move the state of every key that a table names to where the groupings after the batch lead."""
        for number, stage in enumerate(self._stages):
            tables = [getattr(one[number], "table", ()) for one in (before, after)]
            for hashed in {hashed for table in tables for hashed, _ in table}:
                source, target = before.unit_of(hashed, number), after.unit_of(hashed, number)
                if source != target:
                    part = stage.part(self._states[source], np.array([hashed], np.int64))
                    stage.join(self._states[target], part)

    def _rows(self, position: Position, unit: UnitId, waiting: list[pa.Table]) -> list[pa.Table]:
        """The rows of a unit, in the order of the log; of a stage that combines rows the log has other ones."""
        stage = self._stages[unit.stage]
        groupings = self._committed.groupings_of(position.batch)
        expected = _slice(stage, waiting, unit, groupings)
        logged = self._committed.log.get(position, {}).get(unit.number)
        if not groupings[unit.stage].is_by_key:
            return [] if logged is None else [logged]  # rows may be in any task: see `_check_split`
        if stage.combiner is not None:
            return [expected] if expected is not None else []
        if expected is None or logged is None:
            assert expected is logged, f"{position}, {unit}: {expected} became {logged}"
            return []
        if position.round == 0:
            assert logged.to_pylist() == expected.to_pylist(), f"{position}, {unit}: not in source order"
        assert _bag(logged) == _bag(expected), f"{position}, {unit}: the log holds other rows"
        return [logged]


def _slice(stage: StageRunner, tables: list[pa.Table], unit: UnitId, groupings: Groupings) -> pa.Table | None:
    if not tables:
        return None
    rows = stage.combine(pa.concat_tables(tables))
    numbers = groupings.unit_numbers(stage.hash_rows(rows), unit.stage)
    return split(rows, numbers).slices().get(unit.number)


def _bag(rows: pa.Table) -> Counter[str]:
    return Counter(str(sorted(row.items())) for row in rows.to_pylist())


def lines_of(stage: str, batch: int, rows: pa.Table | None) -> list[str]:
    return [] if rows is None else [line_of(stage, batch, row) for row in rows.to_pylist()]


def line_of(stage: str, batch: int, row: dict[str, Any]) -> str:
    return f"{stage} {batch} {sorted(row.items())}"


def text_of(state: Any, stage: StageRunner) -> str:
    value = state.value
    columns = state.timers.to_columns()
    timers = [  # in any order: timers of keys that moved come behind others
        sorted(zip(*(map(str, columns[f"{kind}.{name}"]) for name in ("at_ms", "keys", "names")), strict=True))
        for kind in ("event", "processing")
    ]
    if isinstance(stage.operator, StreamJoin | WindowedAggregate):
        # Keys that move take timers of the unit along that may find nothing to do.
        return str(sorted(stage.state_rows(state).to_pylist(), key=str))
    if hasattr(value, "to_table"):
        return str(sorted(value.to_table().to_pylist(), key=str))
    if isinstance(value, pa.Table):
        return f"{sorted(value.to_pylist(), key=str)} {value.schema.metadata} {timers}"
    return f"{sorted((value or {}).items())} {timers}"
