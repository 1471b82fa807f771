"""Figure 15 of paper 000: throughput over time while a node joins."""

from typing import NamedTuple

from elastic.experiments.paper000.engine.lab import APPLICATIONS, EngineLab
from elastic.experiments.results import Rows, format_number, format_table, group_by


class ScaleOutRow(NamedTuple):
    """One interval of one run; `seconds` is its end, after the start of the run."""

    application: str
    strategy: str
    interval: int
    seconds: float
    nodes: int
    rows_per_second: float
    imbalance: float
    entries: int


def measure(lab: EngineLab) -> list[ScaleOutRow]:
    """One run of each strategy; a node joins after some intervals, and keys are rebalanced after each."""
    rows = []
    for name in APPLICATIONS:
        lab.progress.step(name)
        for strategy in lab.scale.strategies:
            application = lab.application(name, strategy)
            summary = lab.run(
                application, strategy, lab.scale.theta, lab.scale.scale_out_intervals, lab.scale.scale_out_after
            )
            seconds = 0.0
            for window in summary.windows:
                seconds += window.seconds
                rows.append(
                    ScaleOutRow(
                        name,
                        strategy,
                        window.number,
                        seconds,
                        window.nodes,
                        window.rows / window.seconds,
                        window.imbalance,
                        window.entries,
                    )
                )
    return rows


def format_rows(rows: Rows) -> str:
    """Means before and after the node joined, without the first interval and the one in which it joined."""
    lines = []
    for name, mine in group_by(rows, "application").items():
        for strategy, series in group_by(mine, "strategy").items():
            before = [row for row in series[1:] if row.nodes == series[0].nodes]
            after = [row for row in series if row.nodes != series[0].nodes][1:]
            lines.append(
                [
                    f"{name}, {strategy}",
                    *(format_number(_mean(part, "rows_per_second"), 0) for part in (before, after)),
                    *(format_number(_mean(part, "imbalance")) for part in (before, after)),
                    f"{series[-1].entries:,}",
                ]
            )
    header = ["application, strategy", "rows/s before", "rows/s after", "imbalance before", "after", "entries"]
    return format_table(header, lines)


def _mean(rows: Rows, field: str) -> float | None:
    return sum(getattr(row, field) for row in rows) / len(rows) if rows else None
