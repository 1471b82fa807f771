"""What a job must come to: one process without a protocol, which takes the same batches."""

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from elastic.operators.execution import StageRunner
from elastic.operators.moment import Moment
from elastic.operators.stages import Stage, runners_of, stages_of
from elastic.results import Description, StageDescription
from elastic.routing import key_hash, slot_of, split, task_of
from elastic.runtime.pipeline import runners
from elastic.runtime.protocol import Position
from storage.state import BatchTime
from tests.elastic.runtime.simulation.operators import SCHEMA

TASKS = 8
WATERMARK_DELAY_MS = 700

Batch = list[pa.Table]  # one table for each source partition


@dataclass
class Committed:
    """What a job has committed: by number the batch of the source (None: a tick), and the rows by step and slot.

    The rows of a slot are in the order of the log.
    """

    sources: list[int | None] = field(default_factory=list)
    log: dict[Position, dict[int, pa.Table]] = field(default_factory=dict)


def pipeline_of(stages: list[Stage]) -> Description:
    named = stages_of(stages, ())
    described = tuple(
        StageDescription(stage.name, stage.key, stage.operator, runner.input_schema, runner.output_schema)
        for stage, runner in zip(named, runners_of(named, SCHEMA), strict=True)
    )
    return Description(described, TASKS, "1")


def batches_of(seed: int) -> list[Batch]:
    """Some batches of some partitions of some rows; some of each are empty. Event time moves on, with outliers."""
    chance = random.Random(seed)  # noqa: S311
    return [
        [_partition(chance, batch, chance.choice([0, 1, 5, 20])) for _ in range(chance.choice([1, 2, 3]))]
        for batch in range(chance.choice([2, 4, 8]))
    ]


def _partition(chance: random.Random, batch: int, size: int) -> pa.Table:
    columns = {
        "key": [chance.randrange(20) for _ in range(size)],
        "value": [chance.randrange(4) for _ in range(size)],
        "at": [max(0, 600 * batch + chance.randrange(-3_000, 1_500)) for _ in range(size)],
    }
    return pa.table(columns, schema=SCHEMA)


def timestamp_of(batch: int) -> int:
    return 1_000 * batch


def watermark_of(batches: list[Batch]) -> int | None:
    """The latest event time of these batches, less the delay."""
    times = [at for partitions in batches for rows in partitions for at in rows["at"].to_pylist()]
    return max(times) - WATERMARK_DELAY_MS if times else None


class Oracle:
    """Takes batches one after the other, and keeps every result and every state.

    The order of rows in a later round is the engine's to choose, and the log tells which one it chose. So the log is
    compared, as a bag, with what must be in it, and read in its own order; that of round 0 must be in source order.
    """

    def __init__(self, pipeline: Description, committed: Committed) -> None:
        self.results: Counter[str] = Counter()
        self._pipeline = pipeline
        self._committed = committed
        self._stages = runners(pipeline, "fail")
        self._states = {
            slot_of(number, task): stage.new_state()
            for number, stage in enumerate(self._stages)
            for task in range(TASKS)
        }

    def take(self, source: list[Batch]) -> None:
        """All batches of the source, each once, in order, and between them the ticks that were committed."""
        sources = self._committed.sources
        assert [number for number in sources if number is not None] == list(range(len(source))), sources
        batches = [[] if number is None else source[number] for number in sources]
        for batch, partitions in enumerate(batches):
            clocks = watermark_of(batches[:batch]), watermark_of(batches[: batch + 1])
            time = BatchTime(batch, timestamp_of(batch), *clocks)
            waiting = {0: [rows for rows in partitions if rows.num_rows]}
            round_ = 0
            while any(waiting.values()) or round_ == 0:
                waiting = self._take_round(Position(batch, round_), time, waiting)
                round_ += 1

    def states(self) -> dict[int, str]:
        return {slot: text_of(state) for slot, state in self._states.items()}

    def _take_round(
        self, position: Position, time: BatchTime, waiting: dict[int, list[pa.Table]]
    ) -> dict[int, list[pa.Table]]:
        emitted: dict[int, list[pa.Table]] = {}
        for slot, state in self._states.items():
            number, task = divmod(slot, slot_of(1, 0))
            rows = self._rows(position, slot, waiting.get(number, []))
            moment = Moment(slot, task, *position, time.timestamp_ms, time.watermark_ms, time.next_watermark_ms)
            if not rows and not self._stages[number].due(state, moment):
                continue
            output = self._stages[number].step(state, rows, moment)
            self.results.update(lines_of(self._pipeline.stages[number].name, position.batch, output.sink))
            for target, table in ((number + 1, output.next), (number, output.self_)):
                if table is not None and table.num_rows:
                    emitted.setdefault(target, []).append(table)
        return emitted

    def _rows(self, position: Position, slot: int, waiting: list[pa.Table]) -> list[pa.Table]:
        """The rows of a slot, in the order of the log; of a stage that combines rows the log has other ones."""
        number, task = divmod(slot, slot_of(1, 0))
        stage = self._stages[number]
        expected = _slice(stage, waiting, task)
        logged = self._committed.log.get(position, {}).get(slot)
        if stage.combiner is not None:
            return [expected] if expected is not None else []
        if expected is None or logged is None:
            assert expected is logged, f"{position}, slot {slot}: {expected} became {logged}"
            return []
        if position.round == 0:
            assert logged.to_pylist() == expected.to_pylist(), f"{position}, slot {slot}: not in source order"
        assert _bag(logged) == _bag(expected), f"{position}, slot {slot}: the log holds other rows"
        return [logged]


def _slice(stage: StageRunner, tables: list[pa.Table], task: int) -> pa.Table | None:
    if not tables:
        return None
    rows = stage.combined(pa.concat_tables(tables))
    return split(rows, task_of(key_hash([rows[name] for name in stage.key]), TASKS)).slices().get(task)


def _bag(rows: pa.Table) -> Counter[str]:
    return Counter(str(sorted(row.items())) for row in rows.to_pylist())


def lines_of(stage: str, batch: int, rows: pa.Table | None) -> list[str]:
    return [] if rows is None else [f"{stage} {batch} {sorted(row.items())}" for row in rows.to_pylist()]


def text_of(state: Any) -> str:
    value = state.value
    timers = sorted((timer, list(values)) for timer, values in state.timers.to_columns().items())
    if hasattr(value, "to_table"):
        return str(sorted(value.to_table().to_pylist(), key=str))
    return f"{sorted((value or {}).items())} {timers}"
