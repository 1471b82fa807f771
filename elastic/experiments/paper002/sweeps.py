"""Figures 8 and 9 of paper 002, and more: time and migration cost of strategies against one parameter."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from elastic.experiments.paper002.lab import Lab
from elastic.experiments.results import Rows, format_number, format_table, format_value

STRATEGIES = ("min-table", "readj", "mixed", "task-b", "ftlb", "switch-first")


class SweepRow(NamedTuple):
    """A strategy at one value of a parameter; per cents are of all state, `of_mixed` is a multiple of Mixed's moves."""

    parameter: str
    value: float
    strategy: str
    milliseconds: float
    moved_percent: float
    moved_standard_error: float
    of_mixed: float | None
    background_percent: float
    switches: float
    entries: float
    relaxed_percent: float


def measure_by_theta(lab: Lab) -> list[SweepRow]:
    return _sweep(lab, "theta", lab.scale.thetas)


def measure_by_keys(lab: Lab) -> list[SweepRow]:
    return _sweep(lab, "keys", lab.scale.key_counts, skew=lab.scale.key_skew)


def measure_by_nodes(lab: Lab) -> list[SweepRow]:
    return _sweep(lab, "nodes", lab.scale.node_counts)


def measure_by_fluctuation(lab: Lab) -> list[SweepRow]:
    return _sweep(lab, "fluctuation", lab.scale.fluctuations)


def measure_by_share(lab: Lab) -> list[SweepRow]:
    return _sweep(lab, "share", lab.scale.shares, ("mixed", "ftlb", "switch-first"))


def measure_by_count(lab: Lab) -> list[SweepRow]:
    """With standbys that work nothing, so that only the chance to meet one counts."""
    return _sweep(lab, "count", lab.scale.counts, ("mixed", "ftlb", "switch-first"), share=0.0)


def measure_by_service_level(lab: Lab) -> list[SweepRow]:
    return _sweep(lab, "covered", lab.scale.covered, ("mixed", "ftlb", "switch-first"))


def measure_by_hash(lab: Lab) -> list[SweepRow]:
    """A second hash (0) against the node after (1)."""
    return _sweep(lab, "next_node", (0, 1), ("mixed", "ftlb", "switch-first"))


def _sweep(
    lab: Lab, parameter: str, values: Sequence[float], strategies: Sequence[str] = STRATEGIES, **fixed: Any
) -> list[SweepRow]:
    rows = []
    for value in values:
        lab.progress.step(f"{parameter} {format_value(value)}")
        setting = lab.setting(**{**fixed, parameter: value})
        mixed = lab.mean("mixed", setting).moved_percent
        for strategy in strategies:
            # TaskB has whole nodes as standbys: the next node, regardless of the second hash.
            own = lab.setting(**{**fixed, parameter: value, "next_node": True}) if strategy == "task-b" else setting
            mean = lab.mean(strategy, own)
            rows.append(
                SweepRow(
                    parameter,
                    value,
                    strategy,
                    mean.milliseconds,
                    mean.moved_percent,
                    mean.moved_standard_error,
                    mean.moved_percent / mixed if mixed else None,
                    mean.background_percent,
                    mean.switches,
                    mean.entries,
                    mean.relaxed_percent,
                )
            )
    return rows


def format_rows(rows: Rows) -> str:
    header = [rows[0].parameter, "strategy", "ms", "moved, %", "of Mixed", "background, %", "switches", "entries"]
    lines = [
        [
            format_value(row.value),
            row.strategy,
            format_number(row.milliseconds),
            format_number(row.moved_percent, 2, row.moved_standard_error),
            format_number(row.of_mixed),
            format_number(row.background_percent),
            format_number(row.switches, 0),
            format_number(row.entries, 0),
            format_number(row.relaxed_percent, 0),
        ]
        for row in rows
    ]
    return format_table([*header, "relaxed, %"], lines)
