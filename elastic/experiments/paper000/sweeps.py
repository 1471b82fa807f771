"""Figures 8, 9, 10, 12 and 19 of paper 000: time and migration cost of strategies against one parameter."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from elastic.experiments.paper000.lab import Lab
from elastic.experiments.results import Rows, format_number, format_table, format_value

PAPER_STRATEGIES = ("min-table", "mixed")
OURS = "knap"


class SweepRow(NamedTuple):
    """A strategy at one value of a parameter; per cents are of all state, and `bound_percent` is the lower bound."""

    parameter: str
    value: float
    window: int
    strategy: str
    milliseconds: float
    moved_percent: float
    moved_standard_error: float
    bound_percent: float
    times_bound: float | None
    entries: float
    theta_reached: float
    relaxed_percent: float


def measure_by_nodes(lab: Lab) -> list[SweepRow]:
    return _sweep(lab, "nodes", lab.scale.node_counts, lab.scale.windows, keys=lab.scale.key_counts[-1])


def measure_by_theta(lab: Lab) -> list[SweepRow]:
    return _sweep(lab, "theta", lab.scale.thetas, lab.scale.windows)


def measure_by_keys(lab: Lab) -> list[SweepRow]:
    return _sweep(lab, "keys", lab.scale.key_counts, lab.scale.windows)


def measure_by_fluctuation(lab: Lab) -> list[SweepRow]:
    """With a table so small that Mixed has to move entries back, and few enough keys for brute force."""
    return _sweep(
        lab,
        "fluctuation",
        lab.scale.fluctuations,
        (lab.scale.window,),
        ("readj", "mixed", "mixed-bf", OURS),
        keys=lab.scale.fluctuation_keys,
        most_entries=lab.scale.fluctuation_entries,
    )


def measure_by_window(lab: Lab) -> list[SweepRow]:
    return _sweep(lab, "window", lab.scale.all_windows, (0,))


def _sweep(
    lab: Lab,
    parameter: str,
    values: Sequence[float],
    windows: Sequence[int],
    strategies: Sequence[str] = (*PAPER_STRATEGIES, OURS),
    **fixed: Any,
) -> list[SweepRow]:
    rows = []
    for value in values:
        lab.progress.step(f"{parameter} {format_value(value)}")
        for window in windows:
            setting = lab.setting(**{"window": window, **fixed, parameter: value})
            for strategy in strategies:
                mean = lab.mean(strategy, setting)
                rows.append(
                    SweepRow(
                        parameter,
                        value,
                        setting.window,
                        strategy,
                        mean.milliseconds,
                        mean.moved_percent,
                        mean.moved_standard_error,
                        mean.bound_percent,
                        mean.moved_percent / mean.bound_percent if mean.bound_percent else None,
                        mean.entries,
                        mean.theta_reached,
                        mean.relaxed_percent,
                    )
                )
    return rows


def format_rows(rows: Rows) -> str:
    header = [rows[0].parameter, "w", "strategy", "ms", "moved, %", "bound, %", "times bound", "entries"]
    header += ["theta reached", "relaxed, %"]
    lines = [
        [
            format_value(row.value),
            str(row.window),
            row.strategy,
            format_number(row.milliseconds),
            format_number(row.moved_percent, 2, row.moved_standard_error),
            format_number(row.bound_percent),
            format_number(row.times_bound),
            format_number(row.entries, 0),
            format_number(row.theta_reached, 3),
            format_number(row.relaxed_percent, 0),
        ]
        for row in rows
    ]
    return format_table(header, lines)
