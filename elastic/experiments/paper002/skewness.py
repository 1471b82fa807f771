"""Figure 7 of paper 002: loads of nodes by hash alone, without standbys and with one for every key."""

from typing import NamedTuple

import numpy as np

from elastic.experiments.paper002.lab import Lab
from elastic.experiments.results import Rows, format_number, format_table, group_by
from migration.keys.kernels.columns import sum_loads
from migration.keys.kernels.standbys import sum_standby_loads

PERCENTILES = (0, 25, 50, 75, 100)


class SkewRow(NamedTuple):
    """The load of the node at a percentile of all nodes, in multiples of the mean load."""

    parameter: str
    value: int
    standbys: int
    percentile: int
    load: float


def measure(lab: Lab) -> list[SkewRow]:
    rows = []
    cases = [("nodes", nodes, lab.scale.keys, nodes) for nodes in lab.scale.skew_node_counts]
    cases += [("keys", keys, keys, lab.scale.nodes) for keys in lab.scale.skew_key_counts]
    for parameter, value, keys, nodes in cases:
        lab.progress.step(f"{parameter} {value:,}")
        setting = lab.setting(keys=keys, nodes=nodes, skew=lab.scale.key_skew, share=1.0)
        loads: dict[int, list[list[float]]] = {0: [], 1: []}
        for seed in range(lab.scale.skew_intervals if keys < lab.scale.large_keys else 2):
            workload = setting.workload(1_000 * lab.seed + seed)
            work, other = workload.frequency, np.zeros(nodes)
            for count in loads:
                if count:
                    other = np.asarray(sum_standby_loads(setting.standby_homes(workload), work, 1.0, other))
                found = sum_loads(workload.home, work, other)
                loads[count].append(np.percentile(found / found.mean(), PERCENTILES).tolist())
        for count, found_loads in loads.items():
            means = np.mean(found_loads, axis=0).tolist()
            rows += [SkewRow(parameter, value, count, *pair) for pair in zip(PERCENTILES, means, strict=True)]
    return rows


def format_rows(rows: Rows) -> str:
    lines = [
        [parameter, f"{value:,}", str(standbys), *(format_number(row.load) for row in mine)]
        for parameter, of_one in group_by(rows, "parameter").items()
        for value, of_value in group_by(of_one, "value").items()
        for standbys, mine in group_by(of_value, "standbys").items()
    ]
    return format_table(["", "value", "standbys", *(f"{percentile} %" for percentile in PERCENTILES)], lines)
