"""Two curves: duration and peak by limit on bytes in flight, and duration by state size.

Both use the strategy `even`, which moves most of the state where the optimal plan moves an eighth. Durations exclude
starting and stopping nodes.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import click
import numpy as np
from pyspark.sql import SparkSession

from benchmarks.migration.engines import NODES, ElasticJob, run_job
from benchmarks.migration.measures import Move, summarise_affected
from benchmarks.migration.stream import Stream, start_clock
from benchmarks.migration.trial import MORE_NODES

TASKS_IN_FLIGHT = (1, 2, 4, 8, 64)  # per node; the last is no limit
_TASKS = 64
_SLACK = 1.2  # tasks differ in size: with a limit of the mean, half of them would move one by one
_PAUSE_SECONDS = 4.0
MODES = ("progressive", "live")


class LimitResult(NamedTuple):
    """Migrations with one limit: the mean duration, and the worst response times."""

    mb_per_node: float
    seconds: float
    p99_ms: float
    peak_ms: float


class SizeResult(NamedTuple):
    """Migrations of one state size."""

    state_mb: float
    mode: str
    moved_mb: float
    seconds: float
    peak_ms: float

    @property
    def mb_per_second(self) -> float:
        return self.moved_mb / self.seconds


def sweep_limits(spark: SparkSession, state_mb: float) -> Iterator[LimitResult]:
    """Measure all limits in one job, in both orders, so that none profits from its position."""
    limits = [_SLACK * tasks * state_mb * 1e6 / _TASKS for tasks in TASKS_IN_FLIGHT]
    moves: dict[float, list[Move]] = {limit: [] for limit in limits}
    with _run_filled_job(spark, state_mb) as (job, since):
        for limit in (*limits, *reversed(limits)):
            moves[limit] += _scale_out_and_back(job, mode="progressive", tasks_per_node=None, bytes_per_node=limit)
        responses = job.responses(since)
    for limit, all_moves in moves.items():
        found = [summarise_affected(responses, move.moving) for move in all_moves]
        seconds = float(np.mean([move.moving.seconds for move in all_moves]))
        yield LimitResult(limit / 1e6, seconds, max(one.p99 for one in found), max(one.peak for one in found))


def sweep_sizes(spark: SparkSession, sizes_mb: Sequence[float]) -> Iterator[SizeResult]:
    """Measure each size in a job of its own; bytes and seconds are totals of both directions."""
    for state_mb in sizes_mb:
        with _run_filled_job(spark, state_mb) as (job, since):
            moves = {mode: _scale_out_and_back(job, mode=mode) for mode in MODES}
            responses = job.responses(since)
        for mode, both in moves.items():
            yield SizeResult(
                state_mb,
                mode,
                sum(move.stored_bytes for move in both) / 1e6,
                sum(move.moving.seconds for move in both),
                max(summarise_affected(responses, move.moving).peak for move in both),
            )


@contextmanager
def _run_filled_job(spark: SparkSession, state_mb: float) -> Iterator[tuple[ElasticJob, int]]:
    """Run a job with its state on the steady stream; yield it and the start of the steady rate."""
    stream = Stream(state_mb)
    with run_job(spark, stream) as (job, clock):
        click.echo(f"{state_mb:g} MB: filling")
        job.wait_for_batches(stream.filling_ticks)
        since = start_clock(clock)
        time.sleep(_PAUSE_SECONDS)
        yield job, since


def _scale_out_and_back(job: ElasticJob, **options: Any) -> list[Move]:
    moves = []
    for nodes in (MORE_NODES, NODES):
        moves.append(job.scale(nodes, strategy="even", **options))
        time.sleep(_PAUSE_SECONDS)
    click.echo(f"{options}: {', '.join(f'{move.moving.seconds:.2f} s' for move in moves)}")
    return moves
