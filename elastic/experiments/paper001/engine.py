"""Figure 5 of paper 001 on the engine: throughput and latency with a key that one node cannot take.

Every row costs the same time, wherever it is combined: on a node, or where senders combine, in a sender.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from elastic.experiments.engine_job import WrongResults, append_paced, start_job
from elastic.experiments.paper001.charts import draw_engine
from elastic.experiments.progress import ExperimentProgress, SilentProgress
from elastic.experiments.results import Experiment, Rows, format_number, format_table
from elastic.operators import Context, KeyedColumns, Operator, Stage, State, partial

_SCHEMA = pa.schema([("key", pa.int64())])
HASH = "hash"


@dataclass(frozen=True)
class EngineScale:
    """The sizes of all runs. The cost of a row is slept, so that a few cores stand for as many as there are nodes."""

    nodes: int = 8
    senders: int = 2
    tasks: int = 64
    hot_share: float = 0.3  # of all rows have one key
    keys: int = 1_000  # the others are spread evenly
    seconds: float = 0.001  # per row
    rows_per_batch: int = 2_000
    batches: int = 24
    warm_up_batches: int = 4  # not measured
    rounds: int = 3


ENGINE_FULL = EngineScale()
ENGINE_QUICK = EngineScale(
    nodes=2, tasks=4, keys=20, seconds=0.0001, rows_per_batch=100, batches=4, warm_up_batches=1, rounds=1
)


@dataclass(eq=False)
class EngineLab:
    """What the experiments on the engine share."""

    scale: EngineScale = ENGINE_FULL
    seed: int = 0
    progress: ExperimentProgress = field(default_factory=SilentProgress)


class Tally(Operator):
    """Counts the rows of every key; each row that arrives takes some time."""

    output_schema = "key long, count long"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def initial_state(self) -> KeyedColumns:
        return KeyedColumns("key long", {"count": "int64"})

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> Any:
        time.sleep(self.seconds * rows.num_rows)
        amounts = rows["count"].to_numpy() if "count" in rows.column_names else np.ones(rows.num_rows, np.int64)
        touched = state.value.count("count", state.value.rows_for(rows.select(["key"])), amounts)
        yield state.value.to_table(touched)


class CombiningTally(Tally):
    """The same, combined before; of `seconds` each row takes, some may be spent when it is combined."""

    def __init__(self, seconds: float, combining_seconds: float) -> None:
        super().__init__(seconds)
        self.combining_seconds = combining_seconds

    def combine(self, rows: pa.Table) -> pa.Table:
        time.sleep(self.combining_seconds * rows.num_rows)
        return self.merge(rows.append_column("count", pa.array(np.ones(rows.num_rows, np.int64))))

    def merge(self, partials: pa.Table) -> pa.Table:
        sums = partials.group_by("key", use_threads=False).aggregate([("count", "sum")])
        return sums.rename_columns(["key", "count"])


def techniques(seconds: float) -> Mapping[str, tuple[Stage, ...]]:
    """Return the stages of each technique, by its name."""
    costly, cheap = Stage(CombiningTally(0.0, seconds), "key"), Stage(CombiningTally(seconds, 0.0), "key")
    return {
        HASH: (Stage(Tally(seconds), "key"),),
        "hash + costly combine": (costly,),
        "hash + cheap combine": (cheap,),
        "partial": partial(costly),
        "partial, head only": partial(costly, split="head"),
    }


class EngineRow(NamedTuple):
    """Medians over the rounds; `speed_up` is of the throughput, over hash in the same round."""

    technique: str
    rows_per_second: float
    speed_up: float
    least_speed_up: float
    latency_ms: float  # from the arrival of a batch, while one batch is in flight, until its results are published


def measure(lab: EngineLab) -> list[EngineRow]:
    for stages in techniques(0.0).values():
        _run(EngineLab(ENGINE_QUICK, lab.seed), stages)  # loads compiled code
    rounds: list[dict[str, tuple[float, float]]] = []
    for number in range(lab.scale.rounds):
        lab.progress.step(f"round {number + 1}")
        rounds.append({name: _run(lab, stages) for name, stages in techniques(lab.scale.seconds).items()})
    rows = []
    for name in rounds[0]:
        speed, latency = np.median([one[name] for one in rounds], axis=0).tolist()
        speed_ups = [one[name][0] / one[HASH][0] for one in rounds]
        rows.append(EngineRow(name, speed, float(np.median(speed_ups)), min(speed_ups), latency))
    return rows


def _run(lab: EngineLab, stages: tuple[Stage, ...]) -> tuple[float, float]:
    """Return rows per second of a full job, and the median latency of single batches in ms; checks the results."""
    scale, chance = lab.scale, np.random.default_rng(lab.seed)
    keys = 1 + chance.integers(0, scale.keys, (scale.batches, scale.rows_per_batch))
    keys[chance.random(keys.shape) < scale.hot_share] = 0
    batches = [pa.table([batch], schema=_SCHEMA) for batch in keys]
    with start_job(
        stages,
        _SCHEMA,
        senders=scale.senders,
        nodes=scale.nodes,
        tasks=scale.tasks,
        settings={"max_pending_batches": 4},
    ) as running:
        latencies = []
        for rows in batches[: scale.warm_up_batches]:
            began = time.monotonic()
            append_paced(running, [rows], 0.0)
            latencies.append(1_000 * (time.monotonic() - began))
        began = time.monotonic()
        append_paced(running, batches[scale.warm_up_batches :], 0.0)
        seconds = time.monotonic() - began
        counted = running.sink.table()
    newest = {row["key"]: row["count"] for row in counted.sort_by("count").to_pylist()}
    if newest != dict(zip(*(one.tolist() for one in np.unique(keys, return_counts=True)), strict=True)):
        raise WrongResults(f"{stages[0].name or 'a stage'} counted {newest}")
    rows_measured = (scale.batches - scale.warm_up_batches) * scale.rows_per_batch
    return rows_measured / seconds, float(np.median(latencies))


def format_rows(rows: Rows) -> str:
    header = ["technique", "rows/s", "times hash", "worst round", "latency, ms"]
    return format_table(
        header,
        [
            [
                row.technique,
                format_number(row.rows_per_second, 0),
                format_number(row.speed_up),
                format_number(row.least_speed_up),
                format_number(row.latency_ms, 0),
            ]
            for row in rows
        ],
    )


ENGINE_EXPERIMENTS: Mapping[str, Experiment[EngineLab]] = {
    "splitting": Experiment(
        "Throughput of a running job with a key of 30 % of all rows",
        measure,
        format_rows,
        draw_engine,
        note=(
            "Nodes and two senders are threads of one process, and the cost of a row is slept, so that a few cores "
            "stand for as many processors as there are nodes and senders. Where combining costs nothing, rows cost "
            "what they cost on the nodes, which get few of them."
        ),
    ),
}
