"""Paper 004 on the engine: completion times of rows whose cost depends on their content, and what measuring costs.

A row is done when the operator has taken it. Its completion time begins when its batch arrives at the source, so it
includes sending, the commit, the backlog of its node, and the rows that its node takes before it.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from elastic.experiments.engine_job import EngineJob, WrongResults, append_paced, start_job
from elastic.experiments.paper004.charts.engine import draw_completion, draw_overhead
from elastic.experiments.progress import ExperimentProgress, SilentProgress
from elastic.experiments.results import Experiment, Rows, format_number, format_table, group_by
from elastic.operators import Stage, stateless
from elastic.routing.shuffle import SCHEDULERS

SLOW_BRANCH, EQUAL = "slow branch", "equal costs"
_ROWS = pa.schema([("id", pa.int64()), ("kind", pa.int64()), ("seconds", pa.float64())])
_LEARN_SECONDS = 1.1  # two heartbeats: from then on senders know what rows cost
_SPUN = pa.schema([("kind", pa.int64())])
_LEAST_MICROSECONDS = 0.01  # of a row, where the size of a run follows from it


@dataclass(frozen=True)
class EngineScale:
    """The sizes of all runs. The cost of a row is slept, so that a few cores stand for as many as there are nodes."""

    nodes: int = 5
    senders: int = 2
    tasks: int = 40
    kinds: int = 100  # different cost keys
    slow_share: float = 0.1  # of kinds take the slow branch
    slow_seconds: float = 0.120
    fast_seconds: float = 0.006
    rows_per_batch: int = 60
    load: float = 0.85  # of what the nodes can take
    batches: int = 75
    warm_up_batches: int = 30  # not measured: senders learn what rows cost
    rounds: int = 3
    spin_microseconds: tuple[float, ...] = (0.0, 1.0, 10.0, 100.0)  # computed per row, where overhead is measured
    spin_rounds: int = 40
    spin_seconds: float = 1.0  # of computing in a round
    spin_rows_per_batch: int = 20_000
    most_spin_rows: int = 400_000

    @property
    def mean_seconds(self) -> float:
        return self.slow_share * self.slow_seconds + (1 - self.slow_share) * self.fast_seconds

    @property
    def interval_seconds(self) -> float:
        return self.rows_per_batch * self.mean_seconds / self.nodes / self.load


ENGINE_FULL = EngineScale()
ENGINE_QUICK = EngineScale(
    nodes=2,
    tasks=4,
    kinds=20,
    slow_seconds=0.010,
    fast_seconds=0.0005,
    rows_per_batch=20,
    batches=8,
    warm_up_batches=2,
    rounds=1,
    spin_microseconds=(0.0,),
    spin_rounds=1,
    spin_rows_per_batch=100,
    most_spin_rows=400,
)


@dataclass(eq=False)
class EngineLab:
    """What the experiments on the engine share."""

    scale: EngineScale = ENGINE_FULL
    seed: int = 0
    progress: ExperimentProgress = field(default_factory=SilentProgress)


class CompletionRow(NamedTuple):
    """Completion times under a scheduler: medians over the rounds, each of other rows."""

    workload: str
    scheduler: str
    median_ms: float
    p99_ms: float
    mean_ms: float
    median_speed_up: float  # over round-robin in the same round; median over the rounds
    p99_speed_up: float
    least_speed_up: float  # the worst round, of median and 99 %


class OverheadRow(NamedTuple):
    """Processor time per row of the whole process, and by how much it exceeds that of round-robin."""

    microseconds_per_row: float  # that the operator computes
    scheduler: str
    processor_microseconds: float
    overhead_percent: float
    spread_percent: float  # between the quartiles of the rounds


def _sleep(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    done = []
    for row in rows:
        time.sleep(row["seconds"])
        done.append({"id": row["id"], "done": time.monotonic()})
    return done


def measure_completion(lab: EngineLab) -> list[CompletionRow]:
    """Run all schedulers on the same rows, in turn."""
    rows = []
    for scheduler in SCHEDULERS:
        _run_completion(EngineLab(ENGINE_QUICK), EQUAL, scheduler, lab.seed)  # loads compiled code
    for workload in (SLOW_BRANCH, EQUAL):
        rounds: list[dict[str, npt.NDArray[np.float64]]] = []
        for number in range(lab.scale.rounds):
            lab.progress.step(f"{workload}, round {number + 1}")
            rounds.append({one: _run_completion(lab, workload, one, lab.seed + number) for one in SCHEDULERS})
        rows += [_summarise(workload, scheduler, rounds) for scheduler in SCHEDULERS]
    return rows


def _run_completion(lab: EngineLab, workload: str, scheduler: str, seed: int) -> npt.NDArray[np.float64]:
    """Return the median, the 99 % quantile and the mean of the completion times, in ms; every row is done once."""
    scale, chance = lab.scale, np.random.default_rng(seed)
    is_slow = chance.permutation(scale.kinds) < scale.slow_share * scale.kinds
    seconds = np.where(is_slow, scale.slow_seconds, scale.fast_seconds)
    if workload == EQUAL:
        seconds = np.full(scale.kinds, scale.mean_seconds)
    batches = []
    for batch in range(scale.batches):
        ids, kinds = np.arange(scale.rows_per_batch), chance.integers(0, scale.kinds, scale.rows_per_batch)
        batches.append(pa.table([ids + batch * scale.rows_per_batch, kinds, seconds[kinds]], schema=_ROWS))
    operator = stateless(_sleep, "id long, done double", input_format="rows")
    stage = Stage(operator, grouping="shuffle", scheduler=scheduler, cost_key="kind")
    settings = {"max_pending_batches": 16}
    with start_job(
        [stage], _ROWS, senders=scale.senders, nodes=scale.nodes, tasks=scale.tasks, settings=settings
    ) as running:
        arrivals = append_paced(running, batches, scale.interval_seconds)
    done = running.sink.table()
    if sorted(done["id"].to_pylist()) != list(range(scale.batches * scale.rows_per_batch)):
        raise WrongResults(f"{scheduler}: {done.num_rows} rows are done")
    of_batch = done["id"].to_numpy() // scale.rows_per_batch
    times = 1_000 * (done["done"].to_numpy() - arrivals[of_batch])[of_batch >= scale.warm_up_batches]
    return np.array([np.median(times), np.quantile(times, 0.99), times.mean()])


def _summarise(workload: str, scheduler: str, rounds: Sequence[dict[str, npt.NDArray[np.float64]]]) -> CompletionRow:
    times = np.median([one[scheduler] for one in rounds], axis=0)
    speed_ups = np.array([(one["round-robin"] / one[scheduler])[:2] for one in rounds])
    median, p99 = np.median(speed_ups, axis=0).tolist()
    median_ms, p99_ms, mean_ms = times.tolist()
    return CompletionRow(workload, scheduler, median_ms, p99_ms, mean_ms, median, p99, float(speed_ups.min()))


def measure_overhead(lab: EngineLab) -> list[OverheadRow]:
    """Give jobs with all schedulers rows of equal cost, as fast as they take them; processor time counts.

    The jobs run side by side and take turns of some batches: rounds that are a second apart have the same machine.
    """
    rows = []
    for microseconds in lab.scale.spin_microseconds:
        lab.progress.step(f"{microseconds:g} us per row")
        rounds = _run_overhead(lab, microseconds)
        for scheduler in SCHEDULERS:
            excess = [100 * (one[scheduler] / one["round-robin"] - 1) for one in rounds]
            lower, median, upper = np.quantile(excess, [0.25, 0.5, 0.75]).tolist()
            spent = float(np.median([one[scheduler] for one in rounds]))
            rows.append(OverheadRow(microseconds, scheduler, spent, median, upper - lower))
    return rows


def _run_overhead(lab: EngineLab, microseconds: float) -> list[dict[str, float]]:
    """Return the processor time per row, in microseconds, of each scheduler in each round."""
    scale = lab.scale
    number = min(scale.most_spin_rows, int(scale.spin_seconds / max(microseconds, _LEAST_MICROSECONDS) * 1e6))
    size = min(scale.spin_rows_per_batch, number // 4)
    kinds = np.random.default_rng(lab.seed).integers(0, scale.kinds, (number // size, size))
    batches = [pa.table([batch], schema=_SPUN) for batch in kinds]
    rounds: list[dict[str, float]] = []
    with ExitStack() as running:
        jobs = {one: running.enter_context(_start_spinning(lab, microseconds, one)) for one in SCHEDULERS}
        for job in jobs.values():  # loads compiled code
            _append_all(job, batches[:1])
        time.sleep(_LEARN_SECONDS)
        for number in range(scale.spin_rounds + 1):
            names = sorted(SCHEDULERS, reverse=bool(number % 2))  # what warms up does not favour one of them
            rounds.append({name: _append_all(jobs[name], batches) / kinds.size for name in names})
    return rounds[1:]


def _start_spinning(lab: EngineLab, microseconds: float, scheduler: str) -> AbstractContextManager[EngineJob]:
    scale = lab.scale
    stage = Stage(stateless(Spin(microseconds), "kind long"), grouping="shuffle", scheduler=scheduler, cost_key="kind")
    settings = {"max_pending_batches": 4}
    return start_job([stage], _SPUN, senders=scale.senders, nodes=scale.nodes, tasks=scale.tasks, settings=settings)


def _append_all(running: EngineJob, batches: Sequence[pa.Table]) -> float:
    """Return the processor time of the process until the results of these batches are published, in microseconds."""
    began = time.process_time()
    for batch in batches:
        running.source.append(batch)
    running.await_published()
    return 1e6 * (time.process_time() - began)


@dataclass(frozen=True)
class Spin:
    """Computes for some time per row, in one vectorised call."""

    microseconds: float

    def __call__(self, rows: pa.Table) -> pa.Table:
        end = time.thread_time() + 1e-6 * self.microseconds * rows.num_rows
        while time.thread_time() < end:
            pass
        return rows


def format_completion(rows: Rows) -> str:
    header = ["rows", "scheduler", "median, ms", "p99, ms", "mean, ms", "median: times", "p99: times", "worst round"]
    return format_table(
        header,
        [
            [
                row.workload,
                row.scheduler,
                *(format_number(value, 0) for value in row[2:5]),
                *map(format_number, row[5:]),
            ]
            for row in rows
        ],
    )


def format_overhead(rows: Rows) -> str:
    header = ["us per row", "scheduler", "processor time, us", "overhead, %", "between quartiles, %"]
    lines = [
        [
            f"{row.microseconds_per_row:g}",
            row.scheduler,
            format_number(row.processor_microseconds),
            format_number(row.overhead_percent, 1),
            format_number(row.spread_percent, 1),
        ]
        for mine in group_by(rows, "microseconds_per_row").values()
        for row in mine
    ]
    return format_table(header, lines)


_SETUP = "Nodes and two senders are threads of one process."
ENGINE_EXPERIMENTS: Mapping[str, Experiment[EngineLab]] = {
    "completion": Experiment(
        "Completion times of rows on a running job",
        measure_completion,
        format_completion,
        draw_completion,
        note=(
            f"{_SETUP} The cost of a row is slept, row by row. A completion time is from the arrival of the batch at "
            "the source until the operator has taken the row."
        ),
    ),
    "overhead": Experiment(
        "Processor time of scheduling and measuring",
        measure_overhead,
        format_overhead,
        draw_overhead,
        note=f"{_SETUP} All rows cost the same; the operator takes them in vectorised calls.",
    ),
}
