"""Prints how long each part of a recovery takes after `kill -9` of a node, with and without spares.

Takes about a minute for 10 kills. The state is small by default, so that starting and noticing dominate.
"""

import logging
import os
import random
import signal
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import click
from pyspark.sql import SparkSession

import elastic
from benchmarks.migration.measures import Window, summarise_affected, summarise_entered
from benchmarks.migration.operator import NewestPayload
from benchmarks.migration.results import PublishedResults
from benchmarks.migration.stream import PAYLOAD_BYTES, Stream, start_clock
from benchmarks.report import table
from elastic.core.events import EpochCommitted, NodeLost
from elastic.core.messages import CaughtUp, NodeJoined, UnitsInstalled
from elastic.driver import event_loop

_JOB, _CLOCK = "failover", "clock.json"
_TIMEOUT_SECONDS = 60.0
_POLL_SECONDS = 0.002
_MARKS = ("lost", "joined", "epoch", "installed", "caught up")


class Recovery(NamedTuple):
    """Milliseconds from the kill to each event of the recovery, in the order of `_MARKS`, and the peak response."""

    marks: tuple[float, ...]
    peak_ms: float


class EventTimes(logging.Handler):
    """Notes when the driver's loop handled each event of a recovery."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.times: list[tuple[Any, float]] = []

    def emit(self, record: logging.LogRecord) -> None:
        decision = record.args[0] if isinstance(record.args, tuple) and record.args else None
        event = getattr(decision, "event", None)
        if isinstance(event, NodeLost | NodeJoined | EpochCommitted | UnitsInstalled | CaughtUp):
            self.times.append((event, record.created))

    def find(self, node: str, since: float) -> tuple[float, ...] | None:
        """Return when a node that was killed at `since` reached each mark, None before the last."""
        found: list[float] = []
        kinds = iter((NodeLost, NodeJoined, EpochCommitted, UnitsInstalled, CaughtUp))
        kind = next(kinds)
        for event, at in list(self.times):
            if at >= since and isinstance(event, kind) and getattr(event, "node", node) == node:
                found.append(at)
                if (following := next(kinds, None)) is None:
                    return tuple(found)
                kind = following
        return None


@contextmanager
def _listening() -> Iterator[EventTimes]:
    logger, times = logging.getLogger(event_loop.__name__), EventTimes()
    level, propagate = logger.level, logger.propagate
    logger.addHandler(times)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield times
    finally:
        logger.removeHandler(times)
        logger.setLevel(level)
        logger.propagate = propagate


def measure_kills(
    spark: SparkSession, stream: Stream, *, nodes: int, kills: int, **settings: Any
) -> tuple[list[Recovery], float]:
    """Kill a node `kills` times; return the recoveries, and the 99th percentile of steady response times."""
    chance = random.Random(kills)  # noqa: S311 - chooses victims
    with TemporaryDirectory(prefix="bench-failover-", ignore_cleanup_errors=True) as folder, _listening() as times:
        clock, store = Path(folder) / _CLOCK, Path(folder) / "store"
        job = elastic.run(
            stream.frame(spark, clock),
            key="key",
            operator=NewestPayload(PAYLOAD_BYTES),
            name=_JOB,
            nodes=nodes,
            store=store.as_uri(),
            trigger={"processingTime": stream.trigger},
            **settings,
        )
        try:
            _until(lambda: job.status().published_batch + 1 >= stream.filling_ticks, "the state to be filled")
            since = start_clock(clock)
            time.sleep(5.0)
            steady = Window(_now_us(), _now_us() + 5_000_000)
            time.sleep(5.0)
            found = []
            for _ in range(kills):
                victim = chance.choice([node for node in job.status().nodes if node.serving])
                killed = time.time()
                os.kill(victim.pid, signal.SIGKILL)
                _until(lambda name=victim.name, at=killed: times.find(name, at) is not None, "the recovery")
                marks = times.find(victim.name, killed) or ()
                time.sleep(2.0 + chance.random())
                found.append((killed, marks))
            responses = PublishedResults(store, _JOB, NewestPayload.__name__).responses(since)
        finally:
            job.stop(drain=False)
    recoveries = []
    for killed, marks in found:
        window = Window(round(killed * 1e6), round(marks[-1] * 1e6))
        peak = summarise_affected(responses, window).peak
        recoveries.append(Recovery(tuple(1e3 * (mark - killed) for mark in marks), peak))
    return recoveries, summarise_entered(responses, steady).p99


def format_recoveries(measured: dict[str, list[Recovery]]) -> str:
    rows = []
    for name, recoveries in measured.items():
        for label, choose in (("median", statistics.median), ("worst", max)):
            marks = [choose(one.marks[number] for one in recoveries) for number in range(len(_MARKS))]
            peak = choose(one.peak_ms for one in recoveries)
            rows.append([name, label, *(f"{mark:.0f}" for mark in marks), f"{peak:.0f}"])
    return table("ms after kill -9 of a node", ["", "", *_MARKS, "peak response"], rows)


def _until(holds: Any, what: str) -> None:
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"timed out after {_TIMEOUT_SECONDS:g} s waiting for {what}. Look at the job's log.")
        time.sleep(_POLL_SECONDS)


def _now_us() -> int:
    return time.time_ns() // 1_000


@click.command()
@click.option("--kills", default=20, help="Nodes to kill, one after the other.")
@click.option("--nodes", default=4)
@click.option("--state-mb", default=10.0)
@click.option("--rows", default=2_000, help="Rows per second.")
@click.option("--spares", default=(0, 1), multiple=True, type=int, help="Spares to measure with; repeatable.")
def main(kills: int, nodes: int, state_mb: float, rows: int, spares: tuple[int, ...]) -> None:
    """Measure recoveries after `kill -9`."""
    spark = elastic.local_session(nodes, spare_nodes=4, spark_driver_memory="2g")
    spark.sparkContext.setLogLevel("OFF")
    stream = Stream(state_mb, rows=max(1, rows // 20), tick_ms=50)
    measured = {}
    for number in spares:
        recoveries, steady = measure_kills(spark, stream, nodes=nodes, kills=kills, spares=number)
        measured[f"{number} spares"] = recoveries
        click.echo(f"{number} spares: steady p99 {steady:.0f} ms")
    print(format_recoveries(measured))


if __name__ == "__main__":
    main()
