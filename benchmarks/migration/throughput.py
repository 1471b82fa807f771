"""Rows a second while state moves against rows a second while it does not, at two paces of the stream.

A paced stream leaves the machine room to move state in: what it loses, users lose. A source that is always ahead leaves
none, so that whatever a migration computes (two processes that start, states that become bytes and come back) is taken
from rows; on two cores that says more of the machine than of the engine.
"""

import time
from typing import NamedTuple

import click
import numpy as np
from pyspark.sql import SparkSession

from benchmarks.migration.engines import NODES, running_job
from benchmarks.migration.measures import Moments, Window
from benchmarks.migration.moves import Move
from benchmarks.migration.stream import Stream, start_clock
from benchmarks.migration.trial import MORE_NODES

_WARM_UP_SECONDS = 5.0
PACED, SATURATED = "40,000 rows a second come", "as many rows come as are read"


def loads(state_mb: float) -> dict[str, Stream]:
    """The paces by name. Batches of the second are large enough that rows, not batches, are what costs."""
    return {
        PACED: Stream(state_mb, rows=2_000, tick_ms=50),
        SATURATED: Stream(state_mb, rows=20_000, tick_ms=0),
    }


class Throughput(NamedTuple):
    """Rows a second: without a migration, during all of one, and while its state moves."""

    steady: float
    migrating: float
    moving: float

    @property
    def share(self) -> float:
        """What is left of it during all of a migration, starting nodes included."""
        return self.migrating / self.steady


def throughput(mode: str, spark: SparkSession, stream: Stream, seconds: float, rounds: int) -> Throughput:
    """Out and back again `rounds` times: a single migration is short next to a batch."""
    steady: list[Window] = []
    moves: list[Move] = []
    with running_job(spark, stream, mode) as (job, clock):
        job.wait_for_batches(stream.filling_ticks)
        since = start_clock(clock)
        time.sleep(_WARM_UP_SECONDS)
        for nodes in (MORE_NODES, NODES) * rounds:
            steady.append(_passed(seconds))
            moves.append(job.scale(nodes))
        steady.append(_passed(seconds))
        moments, rows = job.results.published(since)
    windows = steady, [move.window for move in moves], [move.moving for move in moves]
    found = Throughput(*(rows_per_second(moments, rows, some) for some in windows))
    click.echo(f"{mode}: {found.steady:,.0f} rows/s steady, {found.migrating:,.0f} in migrations ({found.share:.0%})")
    return found


def rows_per_second(moments: Moments, rows: Moments, windows: list[Window]) -> float:
    """A batch's rows are spread evenly over the time since the batch before it was readable."""
    done = np.cumsum(rows)
    counted = sum(np.interp(w.ended, moments, done) - np.interp(w.began, moments, done) for w in windows)
    return float(counted / sum(window.seconds for window in windows))


def _passed(seconds: float) -> Window:
    began = time.time_ns() // 1_000
    time.sleep(seconds)
    return Window(began, time.time_ns() // 1_000)
