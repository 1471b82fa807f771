"""Figure 7 of paper 000: how uneven the loads of nodes are if only the hash decides."""

from typing import NamedTuple

import numpy as np

from elastic.experiments.paper000.lab import Lab
from elastic.experiments.results import Rows, format_number, format_table, group_by
from migration.keys.loads import Floats


class SkewnessRow(NamedTuple):
    """A percentile of the nodes, by ascending load over the mean load, averaged over intervals."""

    panel: str
    nodes: int
    keys: int
    percentile: float
    load: float


def measure(lab: Lab) -> list[SkewnessRow]:
    """By the number of nodes, then by the number of keys."""
    rows = []
    for nodes in lab.scale.skew_node_counts:
        rows += _rows(lab, "nodes", nodes, lab.scale.key_counts[-1])
    for keys in lab.scale.key_counts:
        rows += _rows(lab, "keys", lab.scale.nodes, keys)
    return rows


def _rows(lab: Lab, panel: str, nodes: int, keys: int) -> list[SkewnessRow]:
    lab.progress.step(f"loads by hash: {nodes} nodes, {keys:,} keys")
    loads = _average_loads(lab, nodes, keys)
    return [SkewnessRow(panel, nodes, keys, 100 * (rank + 1) / nodes, float(load)) for rank, load in enumerate(loads)]


def _average_loads(lab: Lab, nodes: int, keys: int) -> Floats:
    """The ascending loads of the nodes over their mean: an average over intervals.

    Every interval gives the frequencies to keys anew. Were they to fluctuate without a rebalance in between, some nodes
    would grow again and again.
    """
    workload = lab.setting(nodes=nodes, keys=keys, window=1).workload(1_000 * lab.seed)
    rng, total = np.random.default_rng([lab.seed, nodes, keys]), np.zeros(nodes)
    for _ in range(lab.scale.skew_intervals):
        loads = np.bincount(workload.home, rng.permutation(workload.frequency), nodes)
        total += np.sort(loads) / loads.mean()
    return total / lab.scale.skew_intervals


def format_rows(rows: Rows) -> str:
    header = ["nodes, keys", "lightest", "median", "heaviest", "heaviest / lightest"]
    lines = []
    for panel, mine in group_by(rows, "panel").items():
        for series in group_by(mine, panel).values():
            loads = [row.load for row in series]
            lines.append(
                [
                    f"{series[0].nodes} nodes, {series[0].keys:,} keys",
                    *(format_number(value) for value in (loads[0], float(np.median(loads)), loads[-1])),
                    format_number(loads[-1] / loads[0]),
                ]
            )
    return format_table(header, lines)
