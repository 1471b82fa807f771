"""Figures 13 and 14 of paper 000: throughput and latency of a running job, against the fluctuation and theta."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from elastic.experiments.paper000.engine.lab import APPLICATIONS, EngineLab
from elastic.experiments.paper000.engine.scale import HASH, IDEAL
from elastic.experiments.results import Rows, format_number, format_table, format_value
from examples.harness import Application, Summary


class ThroughputRow(NamedTuple):
    """Means over the rounds of a strategy; the first interval of each run is not measured.

    `imbalance` is the rows of the busiest node divided by the mean, `entries` the size of the key table at the end.
    """

    application: str
    parameter: str
    value: float
    strategy: str
    rows_per_second: float
    rows_per_second_spread: float  # standard deviation over the rounds
    latency_ms: float
    p99_latency_ms: float
    imbalance: float
    entries: float


def measure_by_fluctuation(lab: EngineLab) -> list[ThroughputRow]:
    rows = []
    for value in lab.scale.fluctuations:
        lab.progress.step(f"fluctuation {value:g}")
        measured = _run_in_turn(lab, {one: lab.words(one, value) for one in lab.scale.strategies}, lab.scale.theta)
        rows += [_summarise("words", "fluctuation", value, *one) for one in measured.items()]
    return rows


def measure_by_theta(lab: EngineLab) -> list[ThroughputRow]:
    """`hash` and `ideal` do not depend on theta; they are measured beside each of them nevertheless."""
    rows = []
    for name in APPLICATIONS:
        for theta in lab.scale.thetas:
            lab.progress.step(f"{name}, theta {theta:g}")
            measured = _run_in_turn(lab, {one: lab.application(name, one) for one in lab.scale.strategies}, theta)
            rows += [_summarise(name, "theta", theta, *one) for one in measured.items()]
    return rows


def _run_in_turn(lab: EngineLab, applications: Mapping[str, Application], theta: float) -> dict[str, list[Summary]]:
    """Run all strategies, round by round, so that what else the machine does affects all of them."""
    found: dict[str, list[Summary]] = {strategy: [] for strategy in applications}
    for _ in range(lab.scale.rounds):
        for strategy, application in applications.items():
            found[strategy].append(lab.run(application, strategy, theta, lab.scale.intervals))
    return found


def _summarise(
    application: str, parameter: str, value: float, strategy: str, summaries: Sequence[Summary]
) -> ThroughputRow:
    speeds = [summary.rows_per_second for summary in summaries]
    return ThroughputRow(
        application,
        parameter,
        value,
        strategy,
        float(np.mean(speeds)),
        float(np.std(speeds)),
        float(np.mean([np.mean(summary.latency_ms) for summary in summaries])),
        float(np.mean([summary.latency_quantile(0.99) for summary in summaries])),
        float(np.mean([summary.mean_imbalance for summary in summaries])),
        float(np.mean([summary.windows[-1].entries for summary in summaries])),
    )


def format_rows(rows: Rows) -> str:
    header = [f"application, {rows[0].parameter}", "strategy", "rows/s", "times hash", "% of ideal", "latency, ms"]
    header += ["p99, ms", "imbalance", "entries"]
    speeds = {(row.application, row.value, row.strategy): row.rows_per_second for row in rows}
    lines = [
        [
            f"{row.application}, {format_value(row.value)}",
            row.strategy,
            format_number(row.rows_per_second, 0, row.rows_per_second_spread),
            format_number(row.rows_per_second / speeds[row.application, row.value, HASH]),
            format_number(100 * row.rows_per_second / speeds[row.application, row.value, IDEAL], 0),
            format_number(row.latency_ms, 0),
            format_number(row.p99_latency_ms, 0),
            format_number(row.imbalance),
            format_number(row.entries, 0),
        ]
        for row in rows
    ]
    return format_table(header, lines)
