"""One trial of an engine: fill, steady, scale out, steady, scale in, steady."""

import time
from dataclasses import dataclass

import click
from pyspark.sql import SparkSession

from benchmarks.migration.engines import NODES, run_engine
from benchmarks.migration.measures import Move, Responses, Window
from benchmarks.migration.stream import Stream, start_clock

MORE_NODES = 10
_WARM_UP_SECONDS = 5.0
_LATE_SECONDS = 3.0  # after a steady window, so that all its records get their results


@dataclass(frozen=True)
class Trial:
    """The measurements of one engine; `steady` are the windows before, between and after the migrations."""

    name: str
    responses: Responses
    steady: tuple[Window, Window, Window]
    out: Move
    back: Move

    @property
    def moves(self) -> tuple[Move, Move]:
        return self.out, self.back


def run_trial(name: str, spark: SparkSession, stream: Stream, seconds: float) -> Trial:
    with run_engine(name, spark, stream) as (engine, clock):
        click.echo(f"{name}: filling {stream.state_mb:g} MB, then {seconds:g} s before and after each move")
        engine.wait_for_batches(stream.filling_ticks)
        since = start_clock(clock)
        time.sleep(_WARM_UP_SECONDS)
        before = _wait_steady(seconds)
        out = engine.scale(MORE_NODES)
        between = _wait_steady(seconds)
        back = engine.scale(NODES)
        after = _wait_steady(seconds)
        responses = engine.responses(since)
    click.echo(f"{name}: {out.window.seconds:.2f} s to scale out, {back.window.seconds:.2f} s to scale in")
    return Trial(name, responses, (before, between, after), out, back)


def _wait_steady(seconds: float) -> Window:
    began = time.time_ns() // 1_000
    time.sleep(seconds)
    window = Window(began, time.time_ns() // 1_000)
    time.sleep(_LATE_SECONDS)
    return window
