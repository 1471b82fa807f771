"""Batches that several senders schedule without asking each other: what the engine does with paper 004."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from elastic.experiments.paper004.lab import Lab
from elastic.experiments.results import Rows, format_number, format_table
from elastic.routing.shuffle import SCHEDULERS, CostEstimates, ExecutionSketch, NodeLoads, SenderShare, SketchShape
from elastic.routing.shuffle.simulation import SimulatedStream
from elastic.routing.shuffle.sketch import Floats, Hashes

EXACT = "exact"
COARSE, FINE = 0.05, 0.001  # epsilon: the paper's, and its smallest
_Estimate = Callable[[Hashes, Floats], Floats]


class SenderRow(NamedTuple):
    """A scheduler with so many senders: the load of the busiest node over the mean, and the speed of one sender.

    `costs` is the epsilon of the sketches, or exact. Speeds include the estimates.
    """

    scheduler: str
    costs: str
    senders: int
    makespan: float
    rows_per_second: float


def measure(lab: Lab) -> list[SenderRow]:
    """Batches are scheduled by sketches of the batch before; exact costs are the bound."""
    setting = lab.setting(rows=2 * lab.scale.batch_rows)
    streams = [setting.stream(1_000 * lab.seed + number) for number in range(lab.scale.batch_streams)]
    rows = []
    for senders in lab.scale.sender_counts:
        lab.progress.step(f"{senders} senders")
        for scheduler in SCHEDULERS:
            for costs in (EXACT,) if scheduler == "round-robin" else (f"{COARSE:g}", f"{FINE:g}", EXACT):
                runs = [_schedule(lab, stream, scheduler, costs, senders) for stream in streams]
                makespans, speeds = zip(*runs, strict=True)
                rows.append(SenderRow(scheduler, costs, senders, float(np.mean(makespans)), max(speeds)))
    return rows


def _schedule(lab: Lab, stream: SimulatedStream, scheduler: str, costs: str, senders: int) -> tuple[float, float]:
    """Return the makespan over the mean load, and rows per second."""
    half, nodes = stream.rows // 2, lab.scale.batch_nodes
    estimate = _make_estimate(stream, costs, lab.seed)
    loads, spent, idle = np.zeros(nodes), 0.0, NodeLoads.idle(nodes)
    for sender in range(senders):
        mine = slice(half + sender, None, senders)
        SCHEDULERS[scheduler](estimate(stream.hashes[:1], stream.costs[:1]), idle)  # loads the compiled loops
        began = time.perf_counter()
        expected = estimate(stream.hashes[mine], stream.costs[mine])
        chosen = SCHEDULERS[scheduler](expected, idle, SenderShare(sender, senders)).nodes
        spent += time.perf_counter() - began
        loads += np.bincount(chosen, stream.costs[mine], nodes)
    return float(loads.max() / loads.mean()), (stream.rows - half) / spent


def _make_estimate(stream: SimulatedStream, costs: str, seed: int) -> _Estimate:
    if costs == EXACT:
        return lambda _hashes, exact: exact
    half = stream.rows // 2
    sketch = ExecutionSketch(SketchShape.of_precision(float(costs), seed=seed))
    sketch.add(stream.hashes[:half], stream.costs[:half])
    estimates = CostEstimates.from_sketch(sketch)
    return lambda hashes, _exact: estimates.estimate(hashes)


def format_rows(rows: Rows) -> str:
    header = ["scheduler", "costs", "senders", "busiest / mean", "million rows/s"]
    lines = [
        [
            *(row.scheduler, row.costs, str(row.senders), format_number(row.makespan, 4)),
            format_number(row.rows_per_second / 1e6, 1),
        ]
        for row in rows
    ]
    return format_table(header, lines)
