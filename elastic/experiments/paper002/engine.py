"""Figures 10 and 11 of paper 002 on the engine: throughput with and without a lost node, and recovery by size of state.

Every row takes the same time, on the node that owns its key and on the node that follows it. The time is slept, so that
a few cores stand for as many as there are nodes.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from elastic.errors import KeysNotMeasured
from elastic.experiments.engine_job import EngineJob, WrongResults, start_job
from elastic.experiments.paper002.engine_charts import draw_recovery, draw_throughput
from elastic.experiments.progress import ExperimentProgress, SilentProgress
from elastic.experiments.results import Experiment, Rows, format_number, format_table, format_value
from elastic.operators import Context, KeyedColumns, Operator, Stage, State
from elastic.routing import hash_keys
from migration import Assignment
from migration.keys.workloads import KeyWorkload

_SCHEMA = pa.schema([("key", pa.int64()), ("seconds", pa.float64())])
_WAIT_SECONDS = 60.0
_POLL_SECONDS = 0.002

NONE, WHOLE_NODE, BY_TASK = "no standby", "whole node (TaskB)", "by task"
HASH, MIXED, READJ, MIXED_STANDBYS, IDEAL = "hash", "mixed", "readj", "mixed, standbys", "ideal"


@dataclass(frozen=True)
class EngineScale:
    """The sizes of all runs."""

    nodes: int = 5
    tasks: int = 40
    seconds_per_row: float = 0.001
    rows_per_batch: int = 200
    load: float = 0.3  # of what the nodes can take, of their own rows; where recovery is measured
    keys: int = 50_000  # where recovery is measured
    sizes_mb: tuple[float, ...] = (1.0, 10.0, 50.0, 200.0)
    batches_before: int = 20  # since the last saved state, when the node is killed
    batches_after: int = 20
    full_batches: int = 60  # of a run as fast as the job takes them; the node is killed in the middle
    words: int = 2_000  # keys, where they fluctuate
    skew: float = 0.85
    fluctuations: tuple[float, ...] = (0.2, 1.0)
    theta: float = 0.08
    batches_per_interval: int = 20
    intervals: int = 6  # a phase of the fluctuation has three; the first interval is not measured
    strategies: tuple[str, ...] = (HASH, READJ, MIXED, MIXED_STANDBYS, IDEAL)
    rounds: int = 2

    @property
    def interval_seconds(self) -> float:
        """The time between two batches, where recovery is measured."""
        return self.rows_per_batch * self.seconds_per_row / self.nodes / self.load


ENGINE_FULL = EngineScale()
ENGINE_QUICK = EngineScale(
    nodes=3,
    tasks=6,
    seconds_per_row=0.0001,
    rows_per_batch=30,
    keys=100,
    sizes_mb=(0.1,),
    batches_before=4,
    batches_after=4,
    full_batches=8,
    words=50,
    fluctuations=(1.0,),
    batches_per_interval=3,
    intervals=2,
    strategies=(HASH, MIXED_STANDBYS),
    rounds=1,
)


@dataclass(eq=False)
class EngineLab:
    """What the experiments on the engine share."""

    scale: EngineScale = ENGINE_FULL
    seed: int = 0
    progress: ExperimentProgress = field(default_factory=SilentProgress)


class ThroughputRow(NamedTuple):
    """Figure 10: rows per second of a full job, means over the rounds; with `lost`, a node is killed in the middle."""

    fluctuation: float
    strategy: str
    rows_per_second: float
    rows_per_second_lost: float


class RecoveryRow(NamedTuple):
    """Figure 11: medians over the rounds.

    `recovery_ms` is from the kill until the lost node's tasks have caught up. `delay_ms` is the mean response time of
    the rows that came meanwhile or were in flight, `steady_ms` that of rows long before. `rows_per_second` is of a full
    job of a fixed number of rows, one node of which is killed in the middle.
    """

    state_mb: float
    protection: str
    recovery_ms: float
    delay_ms: float
    steady_ms: float
    rows_per_second: float


class Newest(Operator):
    """Counts the rows of every key, and keeps a payload for it; each row takes its `seconds`."""

    output_schema = "key long, count long"

    def __init__(self, payload_bytes: int) -> None:
        self._payload = f"V{payload_bytes}"

    def initial_state(self) -> KeyedColumns:
        return KeyedColumns("key long", {"count": "int64", "payload": self._payload})

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> Any:
        time.sleep(float(rows["seconds"].to_numpy().sum()))
        columns: KeyedColumns = state.value
        at = columns.rows_for(rows.select(["key"]))
        columns.column("payload")[at] = np.zeros(len(at), self._payload)
        columns.count("count", at)
        yield pa.table({"key": rows["key"], "count": columns.column("count")[at]})


# Figure 11.


def measure_recovery(lab: EngineLab) -> list[RecoveryRow]:
    """Kill a node, for every size of state and every protection in turn.

    One standby of each task is shared by the owner's neighbours, except for those of the first node: its neighbour has
    all of them. So the first node is protected as a whole node by another, and one in the middle task by task.
    """
    for protection in (NONE, BY_TASK):
        _measure_paced(EngineLab(ENGINE_QUICK, lab.seed), 0.1, protection)  # loads compiled code
    rows = []
    for size in lab.scale.sizes_mb:
        found: dict[str, list[tuple[float, ...]]] = {NONE: [], WHOLE_NODE: [], BY_TASK: []}
        for number in range(lab.scale.rounds):
            lab.progress.step(f"{size:g} MB of state, round {number + 1}")
            for protection, measured in found.items():
                paced = _measure_paced(lab, size, protection)
                measured.append((*paced, _measure_full(lab, size, protection)))
        rows += [RecoveryRow(size, one, *np.median(values, axis=0).tolist()) for one, values in found.items()]
    return rows


def _measure_paced(lab: EngineLab, size_mb: float, protection: str) -> tuple[float, float, float]:
    """Return the time of the recovery, the mean response time around it, and the one before, in ms."""
    scale, batches = lab.scale, lab.scale.batches_before + lab.scale.batches_after
    with _start_filled(scale, size_mb, protection) as running:
        first = len(running.source.batches)
        arrivals, published, killed = list[float](), list[float](), 0.0
        tables = _draw_batches(lab, batches)
        began = time.monotonic()
        while len(published) < batches:
            now = time.monotonic()
            published += [now] * (running.job.batches()[1] + 1 - first - len(published))
            due = min(batches, int((now - began) / scale.interval_seconds) + 1)
            for rows in tables[len(arrivals) : due]:
                arrivals.append(now)
                running.source.append(rows)
                if len(arrivals) == scale.batches_before:
                    killed = now
                    running.kill(_victim(scale, protection))
            _check_time(now - began, batches * scale.interval_seconds)
            time.sleep(_POLL_SECONDS)
        recovery = _await_recovery(running)
        running.await_published()  # the sink gets a batch after it is published
        _check(running, scale, tables)
    times = 1e3 * (np.array(published) - np.array(arrivals))
    is_around = (np.array(published) > killed) & (np.array(arrivals) <= killed + recovery)
    return 1e3 * recovery, float(times[is_around].mean()), float(times[: scale.batches_before // 2].mean())


def _measure_full(lab: EngineLab, size_mb: float, protection: str) -> float:
    """Return rows per second of a job that takes batches as fast as it can, and loses a node in the middle."""
    with _start_filled(lab.scale, size_mb, protection) as running:
        tables = _draw_batches(lab, lab.scale.full_batches)
        seconds = _take_all(running, tables, kill_after=len(tables) // 2, victim=_victim(lab.scale, protection))
        _await_recovery(running)
        _check(running, lab.scale, tables)
    return lab.scale.rows_per_batch * len(tables) / seconds


@contextmanager
def _start_filled(scale: EngineScale, size_mb: float, protection: str) -> Iterator[EngineJob]:
    """Start a job with that much state, saved, and with its standbys."""
    standbys = int(protection != NONE)
    stage = Stage(Newest(int(size_mb * 1e6 / scale.keys)), key="key", standbys=standbys)
    filling = [pa.table([keys, np.zeros(len(keys))], schema=_SCHEMA) for keys in np.array_split(_keys(scale), 4)]
    with _start(scale, stage) as running:
        for rows in filling:
            running.source.append(rows)
        running.await_published()
        running.job.snapshot()
        _await_standbys(running, standbys * scale.tasks)
        yield running


def _keys(scale: EngineScale) -> npt.NDArray[np.int64]:
    return np.arange(scale.keys, dtype=np.int64)


def _draw_batches(lab: EngineLab, count: int) -> list[pa.Table]:
    scale, chance = lab.scale, np.random.default_rng(lab.seed)
    seconds = np.full(scale.rows_per_batch, scale.seconds_per_row)
    drawn = chance.integers(0, scale.keys, (count, scale.rows_per_batch))
    return [pa.table([keys, seconds], schema=_SCHEMA) for keys in drawn]


def _victim(scale: EngineScale, protection: str) -> str:
    return f"node-{1 if protection == WHOLE_NODE else scale.nodes // 2 + 1}"


# Figure 10.


def measure_throughput(lab: EngineLab) -> list[ThroughputRow]:
    """Run every strategy on the same keys, without a loss and with one, in turn."""
    rows = []
    for fluctuation in lab.scale.fluctuations:
        found: dict[str, list[tuple[float, float]]] = {strategy: [] for strategy in lab.scale.strategies}
        for number in range(lab.scale.rounds):
            lab.progress.step(f"fluctuation {fluctuation:g}, round {number + 1}")
            for strategy, speeds in found.items():
                seed = lab.seed + number
                whole, lost = (_run_keys(lab.scale, strategy, fluctuation, seed, lost=lost) for lost in (False, True))
                speeds.append((whole, lost))
        rows += [ThroughputRow(fluctuation, one, *np.mean(speeds, axis=0).tolist()) for one, speeds in found.items()]
    return rows


def _run_keys(scale: EngineScale, strategy: str, fluctuation: float, seed: int, *, lost: bool) -> float:
    """Return rows per second of all intervals but the first; a node is killed in the middle of them."""
    standbys = int(strategy == MIXED_STANDBYS)
    stage = Stage(Newest(8), key="key", grouping="table", standbys=standbys)
    intervals = _draw_intervals(scale, 0.0 if strategy == IDEAL else scale.skew, fluctuation, seed)
    seconds, half = 0.0, 1 + (scale.intervals - 1) // 2
    with _start(scale, stage) as running:
        _await_standbys(running, standbys * scale.tasks)
        for number, tables in enumerate(intervals):
            kill_after = len(tables) // 2 if lost and number == half else None
            spent = _take_all(running, tables, kill_after=kill_after, victim=f"node-{scale.nodes // 2 + 1}")
            seconds += spent if number else 0.0
            if strategy not in (HASH, IDEAL):
                _rebalance(running, strategy, scale.theta)
        _check(running, scale, [table for tables in intervals for table in tables], filled=False)
    return (scale.intervals - 1) * scale.batches_per_interval * scale.rows_per_batch / seconds


def _rebalance(running: EngineJob, strategy: str, theta: float) -> None:
    """Move keys to where they are balanced, in the background."""
    migration = running.job.migration
    if migration is not None and not migration.is_over:
        return
    options: dict[str, Any] = {"strategy": strategy.partition(",")[0], "theta": theta, "relax": True}
    try:
        running.job.rebalance(level="keys", **options)
    except KeysNotMeasured:
        return


def _draw_intervals(scale: EngineScale, skew: float, fluctuation: float, seed: int) -> list[list[pa.Table]]:
    """Draw the batches of every interval; frequencies fluctuate at the middle, by where keys are at the start."""
    names = pa.array(np.arange(scale.words, dtype=np.int64))
    tasks = hash_keys([names]) % scale.tasks
    boundaries = Assignment.even(scale.tasks, scale.nodes).boundaries
    homes = (np.searchsorted(boundaries, tasks, side="right") - 1).astype(np.int32)
    workload = KeyWorkload.zipf(scale.words, scale.nodes, skew, fluctuation, window=1, seed=seed)
    chance, intervals = np.random.default_rng(seed), []
    seconds = np.full(scale.rows_per_batch, scale.seconds_per_row)
    for number in range(scale.intervals):
        if number and number % max(1, scale.intervals // 2) == 0:
            workload = workload.advance(homes)
        shares = workload.frequency / workload.frequency.sum()
        drawn = chance.choice(scale.words, (scale.batches_per_interval, scale.rows_per_batch), p=shares)
        intervals.append([pa.table([keys, seconds], schema=_SCHEMA) for keys in drawn])
    return intervals


# A run.


@contextmanager
def _start(scale: EngineScale, stage: Stage) -> Iterator[EngineJob]:
    settings = {"max_pending_batches": 4, "snapshot_seconds": 3_600.0, "copy_bytes_per_second": 0}
    settings |= {"heartbeat_seconds": 0.2, "key_interval_seconds": 0.5}
    sizes: dict[str, Any] = {"senders": 1, "nodes": scale.nodes, "tasks": scale.tasks, "settings": settings}
    with (
        TemporaryDirectory(prefix="elastic-bench-", ignore_cleanup_errors=True) as folder,
        start_job([stage], _SCHEMA, store=(Path(folder) / "store").as_uri(), **sizes) as running,
    ):
        yield running


def _take_all(running: EngineJob, tables: Sequence[pa.Table], *, kill_after: int | None, victim: str) -> float:
    """Append all batches at once, kill a node when some of them are published, and return how long all took."""
    first, began = running.job.batches()[1] + 1, time.monotonic()
    for rows in tables:
        running.source.append(rows)
    if kill_after is not None:
        _until(lambda: running.job.batches()[1] + 1 >= first + kill_after, "the first half of the batches")
        running.kill(victim)
    running.await_published()
    return time.monotonic() - began


def _await_standbys(running: EngineJob, count: int) -> None:
    def have_all() -> bool:
        nodes = running.job.status().nodes
        return all(node.serving for node in nodes) and sum(len(node.standbys) for node in nodes) >= count

    _until(have_all, "all nodes and their standbys")


def _await_recovery(running: EngineJob) -> float:
    """Return how long the recovery took, from the loss until the units have caught up, in seconds."""
    _until(lambda: bool(running.job.status().recoveries), "the recovery")
    return float(running.job.status().recoveries[0]["seconds"])


def _until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"timed out after {_WAIT_SECONDS:g} s waiting for {what}. Run with --quick to find out.")
        time.sleep(_POLL_SECONDS)


def _check_time(seconds: float, usual: float) -> None:
    if seconds > usual + _WAIT_SECONDS:
        raise TimeoutError(f"timed out after {seconds:.0f} s waiting for batches that arrived in {usual:.0f} s.")


def _check(running: EngineJob, scale: EngineScale, tables: Sequence[pa.Table], *, filled: bool = True) -> None:
    """Raise unless the newest count of every key is the number of its rows: each was counted once."""
    keys = np.concatenate([table["key"].to_numpy() for table in tables])
    expected = np.bincount(keys, minlength=scale.keys if filled else scale.words) + int(filled)
    found = running.sink.table()
    counts = np.zeros_like(expected)
    np.maximum.at(counts, found["key"].to_numpy(), found["count"].to_numpy())
    if not np.array_equal(counts, expected):
        raise WrongResults(f"{int((counts != expected).sum())} of {len(expected)} keys are counted wrongly")


def format_recovery(rows: Rows) -> str:
    header = ["state, protection", "recovery, ms", "delay around, ms", "before, ms", "rows/s with a loss"]
    return format_table(
        header,
        [
            [f"{format_value(row.state_mb)} MB, {row.protection}", *(format_number(value, 0) for value in row[2:])]
            for row in rows
        ],
    )


def format_throughput(rows: Rows) -> str:
    header = ["fluctuation, strategy", "rows/s", "with a loss", "% of it"]
    return format_table(
        header,
        [
            [
                f"{row.fluctuation:g}, {row.strategy}",
                format_number(row.rows_per_second, 0),
                format_number(row.rows_per_second_lost, 0),
                format_number(100 * row.rows_per_second_lost / row.rows_per_second, 0),
            ]
            for row in rows
        ],
    )


_SETUP = "Nodes are threads of one process: to start one takes no time. The time of a row is slept, by standbys, too."
ENGINE_EXPERIMENTS: Mapping[str, Experiment[EngineLab]] = {
    "figure10": Experiment(
        "Throughput of a running job, against the fluctuation, without a lost node and with one",
        measure_throughput,
        format_throughput,
        draw_throughput,
        note=f"{_SETUP} Keys are rebalanced after every interval; `ideal` has keys of equal frequency.",
    ),
    "figure11": Experiment(
        "Recovery and throughput of a running job, against the size of its state",
        measure_recovery,
        format_recovery,
        draw_recovery,
        note=(
            f"{_SETUP} Without a standby, the tasks are restored from the saved state and the log since. TaskB: all "
            "tasks of the node have their standbys on one other node; by task: two nodes share them."
        ),
    ),
}
