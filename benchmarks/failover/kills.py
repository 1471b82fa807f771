"""Kills nodes of the demo's job, one after the other, and measures each recovery."""

import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import SparkSession

import elastic
from benchmarks.failover.events import Decisions, listen_to_decisions
from examples.demo.demo import MINING
from examples.demo.proof import Proof, prove
from examples.demo.response_times import response_times
from examples.demo.source import find_start, stream_clocked_numbers
from examples.demo.timeline import Timeline
from examples.frequent_patterns.audit import Audit
from examples.frequent_patterns.board import Board
from examples.frequent_patterns.job import patterns_job
from examples.frequent_patterns.sources import take_texts
from examples.frequent_patterns.texts import GeneratedTexts

AFTER_SECONDS = 2.0  # what counts as around a kill
_BEFORE_SECONDS = 2.0  # of a quiet job, which count as steady
_WARM_BATCHES = 20
_TIMEOUT_SECONDS = 60.0
_POLL_SECONDS = 0.02
_QUIET_BEHIND = 2.0  # periods between two batches


@dataclass(frozen=True)
class Load:
    """Texts per second, in a batch every so many milliseconds, on so many nodes."""

    rate: int
    every_ms: int
    nodes: int


class Recovery(NamedTuple):
    """Milliseconds from the kill.

    The driver noticed it, ordered nodes to take over, they have all units and serve them (a lookup is answered,
    and the next batch is applied), and these have repeated the steps that were in flight.
    """

    noticed: float
    ordered: float
    serving: float
    caught_up: float


@dataclass
class Measured:
    """The kills of one job, and the response times around them and before them, in milliseconds."""

    recoveries: list[Recovery] = field(default_factory=list)
    steady: list[float] = field(default_factory=list)
    around: list[float] = field(default_factory=list)
    since_kill: list[tuple[float, float]] = field(default_factory=list)  # seconds from the kill to arrival, response
    proof: Proof = field(default_factory=lambda: Proof(0, 0, 0, []))


def measure_kills(spark: SparkSession, load: Load, *, kills: int, **settings: Any) -> Measured:
    """Run the demo's job with these settings, and kill a node that owns units `kills` times."""
    audit = Audit(GeneratedTexts(), max(1, load.rate * load.every_ms // 1_000), MINING)
    timeline = Timeline(every=load.every_ms / 1_000)
    moments: list[float] = []
    measured = Measured()
    with TemporaryDirectory(prefix="bench-failover-", ignore_cleanup_errors=True) as folder:
        numbers = stream_clocked_numbers(spark, audit.per_batch, load.every_ms)
        job = patterns_job(
            take_texts(numbers, audit.texts),
            store=(Path(folder) / "store").as_uri(),
            mining=MINING,
            nodes=load.nodes,
            sink=Board(timeline.note),
            trigger={"processingTime": "50 milliseconds"},
            empty_batches="off",  # the audit knows the texts of each batch
            **settings,
        )
        with job, listen_to_decisions() as decisions:
            timeline.began = _warm_up(job, timeline)
            chance = random.Random(kills)  # noqa: S311 - chooses victims and moments
            for _ in range(kills):
                _prepare(job, timeline, settings.get("standbys", 0))
                time.sleep(_BEFORE_SECONDS + chance.random())
                killed, recovery = _kill(job, decisions, chance)
                moments.append(killed)
                measured.recoveries.append(recovery)
                time.sleep(max(0.0, killed + AFTER_SECONDS - time.time()))
            job.stop()
            measured.proof = prove(job, audit, timeline.changes, lambda _: None)
    _summarise(measured, moments, *response_times(timeline))
    return measured


def _warm_up(job: elastic.SparkJob, timeline: Timeline) -> float:
    _until(job, lambda: find_start(job.stream) is not None, "the first batch")
    timeline.began = find_start(job.stream) or 0.0
    _until(job, lambda: len(timeline.changes) >= _WARM_BATCHES, "the first batches")
    return timeline.began


def _prepare(job: elastic.SparkJob, timeline: Timeline, standbys: int) -> None:
    """Wait until all nodes and standbys serve, every node has its share of tasks, and no batch is late."""

    def is_whole() -> bool:
        status = job.status()
        followed = sum(len(node.standbys) for node in status.nodes)
        tasks = len(job.assignment().owners)
        return all(node.serving for node in status.nodes) and followed >= standbys * tasks

    _until(job, is_whole, "all nodes and their standbys")
    if standbys:
        job.rebalance(mode="warm", relax=True).wait(_TIMEOUT_SECONDS)
        _until(job, is_whole, "the standbys after a rebalance")
    _until(job, lambda: timeline.behind < _QUIET_BEHIND * timeline.every, "the stream to catch up")


def _kill(job: elastic.SparkJob, decisions: Decisions, chance: random.Random) -> tuple[float, Recovery]:
    """Kill a node that owns units; return when, and what followed."""
    status = job.status()
    owners = set(job.assignment().owners)
    victim = chance.choice([node for node in status.nodes if node.name in owners])
    known = len(status.recoveries)
    killed = time.time()
    os.kill(victim.pid, signal.SIGKILL)
    _until(job, lambda: len(job.status().recoveries) > known, f"the recovery of {victim.name}")
    _until(job, lambda: decisions.find(victim.name, killed) is not None, f"the units of {victim.name}")
    marks = decisions.find(victim.name, killed)
    assert marks is not None  # noqa: S101 - for the type checker; it was waited for
    caught_up = marks.noticed + job.status().recoveries[known]["seconds"]
    noticed, ordered, serving, caught_up = (1e3 * (at - killed) for at in (*marks, caught_up))
    return killed, Recovery(noticed, ordered, serving, caught_up)


def _summarise(
    measured: Measured, moments: list[float], arrival: NDArray[np.float64], seconds: NDArray[np.float64]
) -> None:
    for killed in moments:
        is_before = (arrival >= killed - _BEFORE_SECONDS) & (arrival + seconds < killed)
        is_around = (arrival + seconds >= killed) & (arrival < killed + AFTER_SECONDS)
        measured.steady += (1e3 * seconds[is_before]).tolist()
        measured.around += (1e3 * seconds[is_around]).tolist()
        is_near = (arrival >= killed - _BEFORE_SECONDS) & (arrival < killed + AFTER_SECONDS)
        measured.since_kill += zip((arrival[is_near] - killed).tolist(), (1e3 * seconds[is_near]).tolist(), strict=True)


def _until(job: elastic.SparkJob, holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"timed out after {_TIMEOUT_SECONDS:g} s waiting for {what}. Look at the job's log.")
        job.await_termination(_POLL_SECONDS)
