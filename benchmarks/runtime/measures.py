"""Throughput, trigger durations and memory of a running engine."""

import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.runtime.engines import RunningEngine

_POLL_SECONDS = 0.02
_TIMEOUT_SECONDS = 240.0


class Triggers(NamedTuple):
    """Durations of micro-batches in milliseconds, from the query for data to the commit."""

    p50: float
    p95: float
    p99: float
    batches: int


def measure_throughput(engine: RunningEngine, rows: int, *, warm_up: int, batches: int) -> float:
    """Return rows per second over whole batches, counted when they are applied, after `warm_up` batches."""
    first = _wait_for(engine, warm_up)
    last = _wait_for(engine, warm_up + batches)
    return (last[0] - first[0]) * rows / (last[1] - first[1])


def measure_triggers(engine: RunningEngine, *, warm_up: int, batches: int) -> Triggers:
    """Return the trigger durations after `warm_up` batches; Spark keeps the last hundred."""
    _wait_for(engine, warm_up + batches)
    durations = [p["durationMs"]["triggerExecution"] for p in engine.query.recentProgress if p["batchId"] >= warm_up]
    spent = np.array([value for value in durations if value is not None], dtype=float)
    p50, p95, p99 = np.quantile(spent, [0.5, 0.95, 0.99])
    return Triggers(float(p50), float(p95), float(p99), len(spent))


def measure_memory(engine: RunningEngine) -> list[tuple[float, float]]:
    """Return (resident, proportional) MB of every node; the latter divides memory that processes share."""
    return [(_read_memory_mb(pid, "Rss:"), _read_memory_mb(pid, "Pss:")) for pid in engine.nodes()]


def _read_memory_mb(pid: int, kind: str) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(kind))


def _wait_for(engine: RunningEngine, batches: int) -> tuple[int, float]:
    """Wait for this many batches; return how many are done, and the time."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while (done := engine.batches()) < batches:
        if (error := engine.query.exception()) is not None:
            raise error
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"timed out after {_TIMEOUT_SECONDS:g} s: {done} of {batches} batches are done. Look at the log."
            )
        time.sleep(_POLL_SECONDS)
    return done, time.perf_counter()
