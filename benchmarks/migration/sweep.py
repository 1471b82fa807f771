"""Two curves: duration and peak against the bound on bytes in flight, and migration time against the size of the state.

Both use the strategy `even`, which moves most of the state where the optimal plan moves an eighth, and both look at the
time when state moves, without that of starting and stopping nodes.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import click
import numpy as np
from pyspark.sql import SparkSession

from benchmarks.migration.engines import NODES, ElasticJob, running_job
from benchmarks.migration.measures import touched_by
from benchmarks.migration.moves import Move
from benchmarks.migration.stream import Stream, start_clock
from benchmarks.migration.trial import MORE_NODES

TASKS_IN_FLIGHT = (1, 2, 4, 8, 64)  # per node; the last is no bound at all
_TASKS = 64
_SLACK = 1.2  # tasks are not of one size: a bound of just the mean would let half of them travel alone
_PAUSE_SECONDS = 4.0
MODES = ("progressive", "live")


class Bounded(NamedTuple):
    """Migrations under one bound: the mean of moving seconds, and the worst of response times."""

    mb_per_node: float
    seconds: float
    p99_ms: float
    peak_ms: float


class Sized(NamedTuple):
    """Migrations of one size of state."""

    state_mb: float
    mode: str
    moved_mb: float
    seconds: float
    peak_ms: float

    @property
    def mb_per_second(self) -> float:
        return self.moved_mb / self.seconds


def against_bounds(spark: SparkSession, state_mb: float) -> Iterator[Bounded]:
    """All in one job, up and down again, so that no bound is better off because it came later."""
    limits = [_SLACK * tasks * state_mb * 1e6 / _TASKS for tasks in TASKS_IN_FLIGHT]
    moves: dict[float, list[Move]] = {limit: [] for limit in limits}
    with _warm(spark, state_mb) as (job, since):
        for limit in (*limits, *reversed(limits)):
            moves[limit] += _out_and_back(job, mode="progressive", tasks_per_node=None, bytes_per_node=limit)
        responses = job.responses(since)
    for limit, all_moves in moves.items():
        found = [touched_by(responses, move.moving) for move in all_moves]
        seconds = float(np.mean([move.moving.seconds for move in all_moves]))
        yield Bounded(limit / 1e6, seconds, max(one.p99 for one in found), max(one.peak for one in found))


def against_size(spark: SparkSession, sizes_mb: Sequence[float]) -> Iterator[Sized]:
    """A job for every size; bytes and seconds of both directions are added up."""
    for state_mb in sizes_mb:
        with _warm(spark, state_mb) as (job, since):
            moves = {mode: _out_and_back(job, mode=mode) for mode in MODES}
            responses = job.responses(since)
        for mode, both in moves.items():
            yield Sized(
                state_mb,
                mode,
                sum(move.stored_bytes for move in both) / 1e6,
                sum(move.moving.seconds for move in both),
                max(touched_by(responses, move.moving).peak for move in both),
            )


@contextmanager
def _warm(spark: SparkSession, state_mb: float) -> Iterator[tuple[ElasticJob, int]]:
    """A job with its state, on the steady stream, and when that began."""
    stream = Stream(state_mb)
    with running_job(spark, stream) as (job, clock):
        click.echo(f"{state_mb:g} MB: filling")
        job.wait_for_batches(stream.filling_ticks)
        since = start_clock(clock)
        time.sleep(_PAUSE_SECONDS)
        yield job, since


def _out_and_back(job: ElasticJob, **how: Any) -> list[Move]:
    moves = []
    for nodes in (MORE_NODES, NODES):
        moves.append(job.scale(nodes, strategy="even", **how))
        time.sleep(_PAUSE_SECONDS)
    click.echo(f"{how}: {', '.join(f'{move.moving.seconds:.2f} s' for move in moves)}")
    return moves
