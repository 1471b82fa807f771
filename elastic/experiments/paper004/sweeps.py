"""Figures 4 to 9 and 12 of paper 004: completion times under policies against one parameter."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from elastic.experiments.paper004.lab import BEST_1024, Lab
from elastic.experiments.paper004.streams import TOP_ENTITY, Setting, fit_skew
from elastic.experiments.results import Rows, format_number, format_table
from elastic.routing.shuffle.simulation import FULL_KNOWLEDGE

_READINGS = ("text", "rec", "best")
_ALL = ("text", "rec", BEST_1024, "best", FULL_KNOWLEDGE)


class SweepRow(NamedTuple):
    """A policy at one value of a parameter: milliseconds, and speed-ups over round-robin."""

    parameter: str
    value: float
    policy: str
    mean_ms: float
    min_ms: float
    max_ms: float
    speedup: float
    least_speedup: float
    most_speedup: float


def measure_by_skew(lab: Lab) -> list[SweepRow]:
    return _sweep(lab, "skew", lab.scale.skews, _ALL)


def measure_by_provisioning(lab: Lab) -> list[SweepRow]:
    return _sweep(lab, "provisioning", lab.scale.provisioning)


def measure_by_max_cost(lab: Lab) -> list[SweepRow]:
    return _sweep(lab, "max_milliseconds", lab.scale.max_milliseconds)


def measure_by_cost_values(lab: Lab) -> list[SweepRow]:
    return _sweep(lab, "cost_values", lab.scale.cost_values)


def measure_by_instances(lab: Lab) -> list[SweepRow]:
    return _sweep(lab, "instances", lab.scale.instance_counts)


def measure_by_epsilon(lab: Lab) -> list[SweepRow]:
    return _sweep(lab, "epsilon", lab.scale.epsilons)


def measure_tweets(lab: Lab) -> list[SweepRow]:
    """Generated tweets: as many entities as in the paper, with its most frequent one and its costs."""
    skew = fit_skew(lab.scale.entities, TOP_ENTITY)
    setting = Setting(lab.scale.tweets, lab.scale.entities, skew, tweets=True)
    counts = lab.scale.instance_counts
    return _sweep(lab, "instances", counts, setting=setting, streams=lab.scale.tweet_streams)


def _sweep(
    lab: Lab,
    parameter: str,
    values: Sequence[float],
    policies: Sequence[str] = _READINGS,
    setting: Setting | None = None,
    streams: int | None = None,
) -> list[SweepRow]:
    rows = []
    for value in values:
        lab.progress.step(f"{parameter} {value:,g}")
        changed: dict[str, Any] = {parameter: value}
        here = replace(setting or lab.setting(), **changed)
        for policy, comparison in lab.compare(here, policies, streams).items():
            rows.append(SweepRow(parameter, value, policy, *comparison))
    return rows


def format_rows(rows: Rows) -> str:
    header = [rows[0].parameter, "policy", "mean, ms", "least", "most", "speed-up", "least", "most"]
    lines = [[f"{row.value:,g}", row.policy, *_milliseconds(row), *_speedups(row)] for row in rows]
    return format_table(header, lines)


def _milliseconds(row: SweepRow) -> list[str]:
    return [format_number(value, 0) for value in (row.mean_ms, row.min_ms, row.max_ms)]


def _speedups(row: SweepRow) -> list[str]:
    return [format_number(value) for value in (row.speedup, row.least_speedup, row.most_speedup)]
