"""Throughput with and without a migration, at two loads.

A paced stream leaves capacity for moving state, so users notice its loss. A saturated one leaves none: all work of a
migration (starting two processes, encoding and decoding states) reduces throughput; on two cores that says more about
the machine than about the engine.
"""

import time
from typing import NamedTuple

import click
import numpy as np
from pyspark.sql import SparkSession

from benchmarks.migration.engines import NODES, run_job
from benchmarks.migration.measures import Moments, Move, Window
from benchmarks.migration.stream import Stream, start_clock
from benchmarks.migration.trial import MORE_NODES

_WARM_UP_SECONDS = 5.0
PACED, SATURATED = "40,000 rows per second", "saturated"


def list_loads(state_mb: float) -> dict[str, Stream]:
    """Return the loads by name. Saturated batches are so large that the cost per row dominates."""
    return {
        PACED: Stream(state_mb, rows=2_000, tick_ms=50),
        SATURATED: Stream(state_mb, rows=20_000, tick_ms=0),
    }


class Throughput(NamedTuple):
    """Rows per second: without a migration, during a whole one, and while its state moves."""

    steady: float
    migrating: float
    moving: float

    @property
    def share(self) -> float:
        """Throughput during a whole migration, starting nodes included, as a fraction of the steady one."""
        return self.migrating / self.steady


def measure_throughput(name: str, spark: SparkSession, stream: Stream, seconds: float, rounds: int) -> Throughput:
    """Scale out and back `rounds` times, because a single migration is short compared with a batch."""
    steady: list[Window] = []
    moves: list[Move] = []
    with run_job(spark, stream, name) as (job, clock):
        job.wait_for_batches(stream.filling_ticks)
        since = start_clock(clock)
        time.sleep(_WARM_UP_SECONDS)
        for nodes in (MORE_NODES, NODES) * rounds:
            steady.append(_wait(seconds))
            moves.append(job.scale(nodes))
        steady.append(_wait(seconds))
        moments, rows = job.results.published(since)
    windows = steady, [move.window for move in moves], [move.moving for move in moves]
    found = Throughput(*(compute_rows_per_second(moments, rows, some) for some in windows))
    click.echo(f"{name}: {found.steady:,.0f} rows/s steady, {found.migrating:,.0f} in migrations ({found.share:.0%})")
    return found


def compute_rows_per_second(moments: Moments, rows: Moments, windows: list[Window]) -> float:
    """Return rows per second in the windows; rows of a batch are spread evenly over the time since the last batch."""
    done = np.cumsum(rows)
    counted = sum(np.interp(w.ended, moments, done) - np.interp(w.began, moments, done) for w in windows)
    return float(counted / sum(window.seconds for window in windows))


def _wait(seconds: float) -> Window:
    began = time.time_ns() // 1_000
    time.sleep(seconds)
    return Window(began, time.time_ns() // 1_000)
