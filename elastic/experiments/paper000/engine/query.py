"""Figure 16 of paper 000: throughput of TPC-H query 5 over time, while hot customers and suppliers change."""

from typing import NamedTuple

import numpy as np

from elastic.experiments.paper000.engine.lab import EngineLab
from elastic.experiments.paper000.engine.scale import HASH, IDEAL
from elastic.experiments.results import Rows, format_number, format_table, group_by


class QueryRow(NamedTuple):
    """One interval of one run; `seconds` is its end, after the start of the run."""

    strategy: str
    theta: float | None  # None: nothing moves
    interval: int
    phase: int  # keys swap frequencies where it changes
    seconds: float
    rows_per_second: float
    imbalance: float  # of the suppliers
    entries: int


def measure(lab: EngineLab) -> list[QueryRow]:
    """One run of each strategy, and of those that move something one for each theta."""
    scale = lab.scale
    rows = [row for strategy in (HASH, IDEAL) for row in _run(lab, strategy, None)]
    for theta in scale.query_thetas:
        lab.progress.step(f"theta {theta:g}")
        for strategy in scale.query_strategies:
            rows += _run(lab, strategy, theta)
    return rows


def _run(lab: EngineLab, strategy: str, theta: float | None) -> list[QueryRow]:
    rows: list[QueryRow] = []
    for window in lab.run(lab.query(strategy), strategy, theta or 0.0, lab.scale.query_intervals).windows:
        seconds = window.seconds + (rows[-1].seconds if rows else 0.0)
        phase = window.number // lab.scale.query_intervals_per_phase
        speed = window.rows / window.seconds
        row = QueryRow(strategy, theta, window.number, phase, seconds, speed, window.imbalance, window.entries)
        rows.append(row)
    return rows


def format_rows(rows: Rows) -> str:
    """Means without the first interval, in which compiled code is loaded and the tables are read."""
    found = {key: group_by(mine, "strategy") for key, mine in group_by(rows, "theta").items()}
    speeds = {strategy: _mean(series) for strategy, series in found[None].items()}
    lines = []
    for theta, by_strategy in found.items():
        for strategy, series in by_strategy.items():
            speed = _mean(series)
            lines.append(
                [
                    strategy if theta is None else f"{strategy}, theta {theta:g}",
                    format_number(speed, 0),
                    format_number(_mean([row for row in series if _ends_phase(row, series)]), 0),
                    format_number(speed / speeds[HASH]),
                    format_number(100 * speed / speeds[IDEAL], 0),
                    format_number(float(np.mean([row.imbalance for row in series[1:]]))),
                    f"{series[-1].entries:,}",
                ]
            )
    header = ["strategy", "rows/s", "ends of phases", "times hash", "% of ideal", "imbalance", "entries"]
    return format_table(header, lines)


def _mean(series: Rows) -> float:
    """Return the rows per second of some intervals, which have about the same rows, over their total time."""
    warm = [row for row in series if row.interval] or list(series)
    return float(len(warm) / np.sum([1 / row.rows_per_second for row in warm]))


def _ends_phase(row: QueryRow, series: Rows) -> bool:
    """Whether an interval is the last of its phase: rebalances had time to learn its keys."""
    return all(other.phase > row.phase for other in series if other.interval > row.interval)
