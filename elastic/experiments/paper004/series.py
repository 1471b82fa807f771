"""Figures 10 and 11 of paper 004: completion times over time, with instances whose speeds change half-way."""

from typing import NamedTuple

import numpy as np

from elastic.experiments.paper004.lab import Lab
from elastic.experiments.paper004.streams import MILLISECOND
from elastic.experiments.results import Rows, format_number, format_table, group_by
from elastic.routing.shuffle.machines import SchedulerState
from elastic.routing.shuffle.simulation import ROUND_ROBIN

SLOWNESS = ((1.05, 1.025, 1.0, 0.975, 0.95), (0.90, 0.95, 1.0, 1.05, 1.10))
DELAY_SECONDS = 1.0  # of messages in figure 11: a heartbeat
_POLICIES = (ROUND_ROBIN, "text", "rec", "best")


class SeriesRow(NamedTuple):
    """Completion times of the rows before `row`, since the last point; `first_run` is the row at which POSG began."""

    policy: str
    row: int
    mean_ms: float
    min_ms: float
    max_ms: float
    first_run: int | None


def measure(lab: Lab) -> list[SeriesRow]:
    return _measure(lab, 0.0)


def measure_delayed(lab: Lab) -> list[SeriesRow]:
    """The same with messages that take a second."""
    return _measure(lab, DELAY_SECONDS)


def _measure(lab: Lab, delay: float) -> list[SeriesRow]:
    setting = lab.setting(rows=lab.scale.series_rows, slowness=SLOWNESS)
    rows = []
    for policy in _POLICIES:
        lab.progress.step(f"series of {policy}, messages take {delay:g} s")
        result = lab.simulate(setting, policy, delay=delay)
        first = next((row for row, state in result.story if state is SchedulerState.RUN), None)
        ends = np.linspace(0, setting.rows, lab.scale.series_points + 1).astype(int)[1:]
        for part, end in zip(np.split(result.completion / MILLISECOND, ends[:-1]), ends.tolist(), strict=True):
            rows.append(SeriesRow(policy, end, float(part.mean()), float(part.min()), float(part.max()), first))
    return rows


def format_rows(rows: Rows) -> str:
    """The means of the first half, the quarter after the change, and the last quarter."""
    header = ["policy", "first run at row", "first half, ms", "third quarter, ms", "last quarter, ms", "speed-up"]
    whole = {policy: np.array([row.mean_ms for row in mine]) for policy, mine in group_by(rows, "policy").items()}
    lines = []
    for policy, mine in group_by(rows, "policy").items():
        means, half, quarter = whole[policy], len(mine) // 2, 3 * len(mine) // 4
        parts = means[:half], means[half:quarter], means[quarter:]
        lines.append(
            [
                policy,
                format_number(mine[0].first_run, 0),
                *(format_number(float(part.mean()), 0) for part in parts),
                format_number(float(whole[ROUND_ROBIN].mean() / means.mean())),
            ]
        )
    return format_table(header, lines)
