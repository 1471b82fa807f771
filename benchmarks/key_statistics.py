"""Measures what the statistics of keys cost: two jobs, with and without them, get the same rows in turns.

Both run in this process, so that a disturbance of the machine meets both alike; each pair of turns gives one ratio.
"""

import statistics
import time
from collections.abc import Sequence
from typing import NamedTuple

import click
import numpy as np
import pyarrow as pa

from benchmarks.report import table
from elastic.job.job import Job
from elastic.local import LocalNetwork
from elastic.local.run import TableSource, local_run
from elastic.operators import Context, CountByKey, KeyedColumns, Operator, State
from elastic.settings import Settings

ROWS = 500_000  # per batch
BATCHES = 4  # per turn
NODES = 2
TASKS = 64
# Each job works half of the time. So that it meets the end of an interval as often, and counts as many of its rows, as
# a job that works all of the time, these are half of their defaults.
SETTINGS = {
    "key_interval_seconds": Settings().key_interval_seconds / 2,
    "key_statistics_rows_per_second": Settings().key_statistics_rows_per_second // 2,
}


class CountRows(Operator):
    """Counts rows by key without `combine`: senders send all rows, which is the worst case for the statistics."""

    def initial_state(self) -> KeyedColumns:
        return KeyedColumns("key long", {"count": "int64"})

    def handle_batch(self, rows: pa.Table, state: State, _: Context) -> None:
        state.value.count("count", state.value.rows_for(rows))


class Turn(NamedTuple):
    """The time of a job for its batches. Processor time varies less, and limits a machine at full load."""

    seconds: float
    processor_seconds: float


class Contestant:
    """A job, and the source that feeds it."""

    def __init__(self, operator: Operator, key_statistics: str) -> None:
        self.source = TableSource(LocalNetwork())
        self.job: Job = local_run(
            self.source,
            key="key",
            operator=operator,
            schema=pa.schema([("key", pa.int64())]),
            name=f"bench-{key_statistics}",
            tasks=TASKS,
            nodes=NODES,
            sink="none",
            settings={"key_statistics": key_statistics, **SETTINGS},
        )

    def take_turn(self, batches: Sequence[pa.Table]) -> Turn:
        began = time.perf_counter(), time.process_time()
        for batch in batches:
            self.source.append(batch)
        self.job.process_all_available()
        return Turn(time.perf_counter() - began[0], time.process_time() - began[1])


def make_batches(keys: int) -> list[pa.Table]:
    rng = np.random.default_rng(keys)
    return [pa.table({"key": rng.integers(0, keys, ROWS)}) for _ in range(BATCHES)]


def measure(keys: int, pairs: int, operator: Operator) -> list[tuple[Turn, Turn]]:
    """Return turns without and with statistics, after a few that fill the state."""
    batches = make_batches(keys)
    without, with_them = Contestant(operator, "off"), Contestant(operator, "all")
    found = []
    try:
        for number in range(-3, pairs):
            order = (without, with_them) if number % 2 else (with_them, without)
            turns = {contestant: contestant.take_turn(batches) for contestant in order}
            if number >= 0:
                found.append((turns[without], turns[with_them]))
    finally:
        without.job.stop(drain=False)
        with_them.job.stop(drain=False)
    return found


WHAT = ("more time", "more processor time")


def format_speeds(found: Sequence[tuple[Turn, Turn]]) -> list[str]:
    """Return the rows per second without and with statistics."""
    medians = [statistics.median(turn.seconds for turn in turns) for turns in zip(*found, strict=True)]
    return [f"{BATCHES * ROWS / median:,.0f}" for median in medians]


def format_overheads(found: Sequence[tuple[Turn, Turn]]) -> list[str]:
    """Return median and quartiles of the overhead of each pair, in time and in processor time."""
    cells = []
    for column in range(len(WHAT)):
        overheads = [with_them[column] / without[column] - 1 for without, with_them in found]
        low, median, high = statistics.quantiles(overheads, n=4)
        cells += [f"{median:.1%}", f"{low:.1%} to {high:.1%}"]
    return cells


@click.command()
@click.option("--keys", multiple=True, type=int, default=(10_000, 100_000, 1_000_000), help="Number of keys.")
@click.option("--pairs", default=20, help="Turns of each job.")
@click.option("--combined/--not-combined", default=False, help="Whether senders combine rows.")
def main(keys: tuple[int, ...], pairs: int, combined: bool) -> None:
    """Compare jobs with and without statistics of keys."""
    lines = []
    for count in keys:
        found = measure(count, pairs, CountByKey(silent=True) if combined else CountRows())
        lines.append([f"{count:,}", *format_speeds(found), *format_overheads(found)])
        click.echo("  ".join(lines[-1]))
    title = f"statistics of keys, {NODES} nodes in one process, rows {'combined' if combined else 'not combined'}"
    overheads = [f"{what}, {how}" for what in WHAT for how in ("median", "quartiles")]
    print(table(title, ["keys", "rows/s without", "rows/s with", *overheads], lines))


if __name__ == "__main__":
    main()
