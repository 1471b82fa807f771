"""One engine through one day: filled, steady, scaled out, steady, scaled in, steady."""

import time
from dataclasses import dataclass

import click
from pyspark.sql import SparkSession

from benchmarks.migration.engines import NODES, running
from benchmarks.migration.measures import Responses, Window
from benchmarks.migration.moves import Move
from benchmarks.migration.stream import Stream, start_clock

MORE_NODES = 10
_WARM_UP_SECONDS = 5.0
_LATE_SECONDS = 3.0  # between a steady window and what comes next, so that all its records have their results


@dataclass(frozen=True)
class Trial:
    """All that was seen of one engine; `steady` are the windows before, between and after the moves."""

    name: str
    responses: Responses
    steady: tuple[Window, Window, Window]
    out: Move
    back: Move

    @property
    def moves(self) -> tuple[Move, Move]:
        return self.out, self.back


def trial(name: str, spark: SparkSession, stream: Stream, seconds: float) -> Trial:
    with running(name, spark, stream) as (engine, clock):
        click.echo(f"{name}: filling {stream.state_mb:g} MB, then {seconds:g} s before and after each move")
        engine.wait_for_batches(stream.filling_ticks)
        since = start_clock(clock)
        time.sleep(_WARM_UP_SECONDS)
        before = _steady(seconds)
        out = engine.scale(MORE_NODES)
        between = _steady(seconds)
        back = engine.scale(NODES)
        after = _steady(seconds)
        responses = engine.responses(since)
    click.echo(f"{name}: {out.window.seconds:.2f} s to scale out, {back.window.seconds:.2f} s to scale in")
    return Trial(name, responses, (before, between, after), out, back)


def _steady(seconds: float) -> Window:
    began = time.time_ns() // 1_000
    time.sleep(seconds)
    window = Window(began, time.time_ns() // 1_000)
    time.sleep(_LATE_SECONDS)
    return window
