"""Batches that several senders schedule without asking each other: what the engine does with paper 004."""

import time
from typing import NamedTuple

import numpy as np

from elastic.experiments.paper004.lab import Lab
from elastic.experiments.results import Rows, format_number, format_table
from elastic.routing.shuffle import SCHEDULERS, CostEstimates, ExecutionSketch, NodeLoads, SenderShare, SketchShape
from elastic.routing.shuffle.sketch import Floats, Hashes

_ESTIMATED, _EXACT = "estimated", "exact"
_VARIANTS = (
    ("round-robin", _ESTIMATED),
    *((name, costs) for name in ("posg", "posg-batch") for costs in (_ESTIMATED, _EXACT)),
)


class SenderRow(NamedTuple):
    """A scheduler with so many senders: the load of the busiest node over the mean, and the speed of one sender."""

    scheduler: str
    costs: str
    senders: int
    makespan: float
    rows_per_second: float


def measure(lab: Lab) -> list[SenderRow]:
    """A batch is scheduled by sketches of the batch before; exact costs are the bound."""
    setting = lab.setting(rows=2 * lab.scale.batch_rows)
    stream, half = setting.stream(1_000 * lab.seed), lab.scale.batch_rows
    sketch = ExecutionSketch(SketchShape.of_precision(setting.epsilon, seed=lab.seed))
    sketch.add(stream.hashes[:half], stream.costs[:half])
    estimates = CostEstimates.from_sketch(sketch)
    rows = []
    for senders in lab.scale.sender_counts:
        lab.progress.step(f"{senders} senders")
        for name, kind in _VARIANTS:
            batch = stream.hashes[half:], stream.costs[half:]
            rows.append(_row(name, kind, senders, *batch, estimates, lab.scale.batch_nodes))
    return rows


def _row(
    name: str, kind: str, senders: int, hashes: Hashes, costs: Floats, estimates: CostEstimates, nodes: int
) -> SenderRow:
    loads, spent, idle = np.zeros(nodes), 0.0, NodeLoads.idle(nodes)
    for sender in range(senders):
        mine = slice(sender, None, senders)
        own = hashes[mine]
        SCHEDULERS[name](estimates.estimate(own[:1]), idle)  # loads the compiled loops
        began = time.perf_counter()
        expected = estimates.estimate(own) if kind == _ESTIMATED else costs[mine]
        chosen = SCHEDULERS[name](expected, idle, SenderShare(sender, senders)).nodes
        spent += time.perf_counter() - began
        loads += np.bincount(chosen, costs[mine], nodes)
    return SenderRow(name, kind, senders, float(loads.max() / loads.mean()), len(hashes) / spent)


def format_rows(rows: Rows) -> str:
    header = ["scheduler", "costs", "senders", "busiest / mean", "million rows/s"]
    lines = [
        [
            row.scheduler,
            row.costs,
            str(row.senders),
            format_number(row.makespan, 4),
            format_number(row.rows_per_second / 1e6, 1),
        ]
        for row in rows
    ]
    return format_table(header, lines)
