"""Every record counts once, whatever happens: seeds of an unkind world against a single undisturbed process."""

import os
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from elastic.operators import Context, CountByKey, Operator, Stage, State, ToSelf, ToSink
from elastic.operators.moment import Moment
from elastic.operators.stages import runners_of, stages_of
from elastic.results import Description, StageDescription
from elastic.routing import key_hash, slot_of, split, task_of
from elastic.runtime.pipeline import runners
from tests.elastic.runtime.simulation import Faults, World

SEEDS = int(os.environ.get("ELASTIC_SIMULATION_SEEDS", "60"))
SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.int64())])
TASKS = 8


class History(Operator):
    """Remembers every value of every key, in order, and tells what it knew before: sees loss, repetition and order."""

    output_schema = "key long, value long, before long"

    def initial_state(self) -> dict[int, list[int]]:
        return {}

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> list[dict[str, int]]:
        told = []
        for row in rows.to_pylist():
            known = state.value.setdefault(row["key"], [])
            told.append({**row, "before": len(known)})
            known.append(row["value"])
        return told


class Alarm(History):
    """The same, and an hour after a key came it is told of, by a timer."""

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> list[dict[str, int]]:
        told = super().handle_batch(rows, state, context)
        for row in told:
            context.set_timer(context.timestamp_ms + 1_500, kind="processing", name=str(row["key"]))
        return told

    def handle_timer(self, timer: Any, state: State, _context: Context) -> list[dict[str, int]]:
        key = int(timer.name)
        return [{"key": key, "value": -1, "before": len(state.value[key])}]


class Countdown(Operator):
    """Sends every record back to itself under another key until its value is 0: many rounds, and state in each."""

    output_schema = "key long, value long"
    emits = frozenset({"self"})

    def initial_state(self) -> Counter[int]:
        return Counter()

    def handle_batch(self, rows: pa.Table, state: State, _: Context) -> list[Any]:
        again = [{"key": r["key"] + 1, "value": r["value"] - 1} for r in rows.to_pylist() if r["value"] > 0]
        state.value.update(rows["key"].to_pylist())
        done = [{"key": r["key"], "value": 0} for r in rows.to_pylist() if r["value"] == 0]
        return [ToSelf(again), ToSink(done)]


PIPELINES: dict[str, list[Stage]] = {
    "one operator that knows the order": [Stage(History(), ("key",))],
    "timers": [Stage(Alarm(), ("key",))],
    "columns": [Stage(CountByKey(), ("key",))],
    "records that come back": [Stage(Countdown(), ("key",))],
    "two stages": [Stage(Countdown(), ("key",)), Stage(CountByKey(), ("key",))],
}


WORLDS = {
    "crashes": Faults(),
    "crashes and migrations": Faults(migration=0.05),
    # A controller that dies ends every migration, and with it what could go wrong there: so it seldom does.
    "crashes and direct migrations": Faults(migration=0.08, direct=0.9, node_crash=0.02, controller_crash=0.0005),
    "crashes, migrations and restarts": Faults(migration=0.08, direct=0.3, restart=0.5),
}


def pipeline_of(stages: list[Stage]) -> Description:
    named = stages_of(stages, ())
    described = tuple(
        StageDescription(stage.name, stage.key, stage.operator, runner.input_schema, runner.output_schema)
        for stage, runner in zip(named, runners_of(named, SCHEMA), strict=True)
    )
    return Description(described, TASKS, "1")


def batches_of(seed: int) -> list[list[pa.Table]]:
    """Some batches of some partitions of some rows; some of each are empty."""
    chance = random.Random(seed)  # noqa: S311
    return [
        [
            pa.table(
                {
                    "key": [chance.randrange(20) for _ in range(size)],
                    "value": [chance.randrange(4) for _ in range(size)],
                },
                schema=SCHEMA,
            )
            for size in [chance.choice([0, 1, 5, 20]) for _ in range(chance.choice([1, 2, 3]))]
        ]
        for _ in range(chance.choice([1, 4, 8]))
    ]


def undisturbed(pipeline: Description, batches: list[list[pa.Table]]) -> tuple[Counter[str], dict[int, str]]:
    """One process, no protocol: all results with their batches, and all states."""
    stages = runners(pipeline, "fail")
    states = {slot_of(number, task): stage.new_state() for number, stage in enumerate(stages) for task in range(TASKS)}
    results: Counter[str] = Counter()
    for batch, partitions in enumerate(batches):
        waiting = {0: stages[0].combined(pa.concat_tables(partitions))}
        round_ = 0
        while waiting or round_ == 0:
            emitted: dict[int, list[pa.Table]] = {}
            for slot in sorted(states):
                number, task = divmod(slot, slot_of(1, 0))
                rows = _rows_of(waiting.get(number), pipeline.stages[number].key, task)
                moment = Moment(slot, task, batch, round_, 1_000 * batch)
                if not rows and not stages[number].due(states[slot], moment):
                    continue
                output = stages[number].step(states[slot], rows, moment)
                results.update(_counted(pipeline.stages[number].name, batch, output.sink))
                for target, table in ((number + 1, output.next), (number, output.self_)):
                    if table is not None and table.num_rows:
                        emitted.setdefault(target, []).append(table)
            waiting = {stage: stages[stage].combined(pa.concat_tables(tables)) for stage, tables in emitted.items()}
            round_ += 1
    return results, {slot: _shown(state) for slot, state in states.items()}


def _rows_of(rows: pa.Table | None, key: tuple[str, ...], task: int) -> list[pa.Table]:
    if rows is None or not rows.num_rows:
        return []
    mine = split(rows, task_of(key_hash([rows[name] for name in key]), TASKS)).slices().get(task)
    return [] if mine is None else [mine]


def _counted(stage: str, batch: int, rows: pa.Table | None) -> list[str]:
    return [] if rows is None else [f"{stage} {batch} {sorted(row.items())}" for row in rows.to_pylist()]


def _shown(state: Any) -> str:
    value = state.value
    if hasattr(value, "to_table"):
        return str(sorted(value.to_table().to_pylist(), key=str))
    return str(sorted((value or {}).items()))


def published(world: World, pipeline: Description, batches: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for stage in pipeline.stages:
        for batch in range(batches):
            rows = world.results.read(batch, stage.name)
            found.update(_counted(stage.name, batch, rows.drop_columns(["_batch", "_task"])))
    return found


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("faults", WORLDS.values(), ids=WORLDS.keys())
def test_results_and_states_are_those_of_one_undisturbed_process(name: str, faults: Faults) -> None:
    pipeline = pipeline_of(PIPELINES[name])
    for seed in range(max(1, SEEDS // len(PIPELINES) // len(WORLDS))):
        batches = batches_of(seed)
        world = World(seed, pipeline, batches, nodes=1 + seed % 3, faults=faults)
        try:
            world.run()
            results, states = undisturbed(pipeline, batches)
            assert published(world, pipeline, len(batches)) == results
            assert {slot: _shown(state) for slot, state in world.final_states().items()} == states
        except Exception:
            print(f"seed {seed} of {name!r}, {world.crashes} crashes; its story:")
            print("\n".join(" ".join(map(str, words))[:400] for words in world.story[-200:]))
            raise
