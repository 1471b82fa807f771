"""Rows a second, triggers and memory of a running engine."""

import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.runtime.engines import Running

_POLL_SECONDS = 0.02
_PATIENCE_SECONDS = 240.0


class Triggers(NamedTuple):
    """Milliseconds that Spark took for a micro-batch, from looking for data to its commit."""

    p50: float
    p95: float
    p99: float
    batches: int


def rows_per_second(running: Running, rows: int, *, warm_up: int, batches: int) -> float:
    """Over whole batches, counted when their rows are in the state, after `warm_up` of them."""
    first = _wait_for(running, warm_up)
    last = _wait_for(running, warm_up + batches)
    return (last[0] - first[0]) * rows / (last[1] - first[1])


def triggers(running: Running, *, warm_up: int, batches: int) -> Triggers:
    """Spark keeps the last hundred of them."""
    _wait_for(running, warm_up + batches)
    kept = [p["durationMs"]["triggerExecution"] for p in running.query.recentProgress if p["batchId"] >= warm_up]
    spent = np.array([value for value in kept if value is not None], dtype=float)
    p50, p95, p99 = np.quantile(spent, [0.5, 0.95, 0.99])
    return Triggers(float(p50), float(p95), float(p99), len(spent))


def memory_per_node(running: Running) -> list[tuple[float, float]]:
    """(resident, proportional) MB of every node; proportional shares what several processes map from one file."""
    return [(_mapped(pid, "Rss:"), _mapped(pid, "Pss:")) for pid in running.nodes()]


def _mapped(pid: int, kind: str) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(kind))


def _wait_for(running: Running, batches: int) -> tuple[int, float]:
    """How many batches are done once that many are, and when that was noticed."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (done := running.batches()) < batches:
        if (error := running.query.exception()) is not None:
            raise error
        if time.monotonic() > deadline:
            raise TimeoutError(f"{done} of {batches} batches in {_PATIENCE_SECONDS:g} s")
        time.sleep(_POLL_SECONDS)
    return done, time.perf_counter()
