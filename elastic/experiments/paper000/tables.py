"""Figures 17, 18, 20 and 21 of paper 000: the size of the routing table, and beta."""

from typing import NamedTuple

from elastic.experiments.paper000.lab import Lab
from elastic.experiments.results import Rows, format_number, format_table, group_by


class TableSizeRow(NamedTuple):
    """Mixed (or another strategy) with at most `most_entries` entries."""

    strategy: str
    theta: float
    most_entries: int
    moved_percent: float
    moved_standard_error: float
    bound_percent: float
    entries: float
    relaxed_percent: float


class GrowthRow(NamedTuple):
    """The table of MinMig after a number of adjustments."""

    theta: float
    adjustment: int
    entries: int
    limit: float


class BetaRow(NamedTuple):
    """MinMig with one beta."""

    window: int
    beta: float
    entries: float
    moved_percent: float
    moved_standard_error: float
    bound_percent: float


def measure_table_sizes(lab: Lab) -> list[TableSizeRow]:
    """Mixed with tables of growing size; `knap` beside it at the default theta."""
    cases = [("mixed", theta) for theta in lab.scale.table_thetas] + [("knap", lab.scale.theta)]
    rows = []
    for strategy, theta in cases:
        lab.progress.step(f"{strategy}, theta {theta:g}")
        for most_entries in lab.scale.table_sizes:
            mean = lab.mean(strategy, lab.setting(theta=theta, most_entries=most_entries))
            rows.append(
                TableSizeRow(
                    strategy,
                    theta,
                    most_entries,
                    mean.moved_percent,
                    mean.moved_standard_error,
                    mean.bound_percent,
                    mean.entries,
                    mean.relaxed_percent,
                )
            )
    return rows


def measure_growth(lab: Lab) -> list[GrowthRow]:
    """MinMig does not heed the size of its table; in the end a key is at home by chance only."""
    rows = []
    keys, nodes = lab.scale.growth_keys, lab.scale.nodes
    for theta in lab.scale.growth_thetas:
        lab.progress.step(f"theta {theta:g}")
        setting = lab.setting(keys=keys, theta=theta, most_entries=keys)
        samples = lab.run("min-mig", setting, lab.scale.growth_adjustments)
        rows += [
            GrowthRow(theta, number + 1, sample.entries, keys * (nodes - 1) / nodes)
            for number, sample in enumerate(samples)
        ]
    return rows


def measure_betas(lab: Lab) -> list[BetaRow]:
    """Figures 20 and 21 show the same plans."""
    rows = []
    for window in lab.scale.windows:
        for beta in lab.scale.betas:
            lab.progress.step(f"beta {beta:g}, window {window}")
            mean = lab.mean("min-mig", lab.setting(window=window, most_entries=lab.scale.keys), {"beta": beta})
            rows.append(
                BetaRow(window, beta, mean.entries, mean.moved_percent, mean.moved_standard_error, mean.bound_percent)
            )
    return rows


def format_table_sizes(rows: Rows) -> str:
    header = ["strategy, theta", "most entries", "entries", "moved, %", "bound, %", "relaxed, %"]
    lines = [
        [
            f"{row.strategy}, {row.theta:g}",
            f"{row.most_entries:,}",
            format_number(row.entries, 0),
            format_number(row.moved_percent, 2, row.moved_standard_error),
            format_number(row.bound_percent),
            format_number(row.relaxed_percent, 0),
        ]
        for row in rows
    ]
    return format_table(header, lines)


def format_growth(rows: Rows) -> str:
    """Some of the adjustments only; the CSV file has all."""
    lines: list[list[str]] = []
    for theta, mine in group_by(rows, "theta").items():
        shown = [row for row in mine if row.adjustment in (1, 3, 10, 30, 100, 300) or row is mine[-1]]
        lines += [[f"{theta:g}", str(row.adjustment), f"{row.entries:,}", f"{row.limit:,.0f}"] for row in shown]
    return format_table(["theta", "adjustments", "entries", "K (N - 1) / N"], lines)


def format_betas(rows: Rows) -> str:
    header = ["w", "beta", "entries", "moved, %", "bound, %"]
    lines = [
        [
            str(row.window),
            f"{row.beta:g}",
            format_number(row.entries, 0),
            format_number(row.moved_percent, 2, row.moved_standard_error),
            format_number(row.bound_percent),
        ]
        for row in rows
    ]
    return format_table(header, lines)
