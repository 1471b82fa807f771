"""Figure 5 of paper 001 as a model: throughput against processing time, and against memory for partial results.

A worker is busy for `delay` per row, so n rows take as long as the busiest worker needs for its share: throughput is at
most 1 / (delay * share), and in the first half of the figure at most what the source sends.
"""

from typing import NamedTuple

import numpy as np

from elastic.experiments.paper001.lab import Lab
from elastic.experiments.paper001.simulation import Run, Technique, count_copies
from elastic.experiments.paper001.streams import Keys
from elastic.experiments.results import Rows, format_number, format_table, group_by

STREAM = "Zipf-WP"
TECHNIQUES = {
    "KG": Technique("hash"),
    "SG": Technique("shuffle"),
    "PKG": Technique("pkg"),
    "W-Choices": Technique("w-choices"),
    "KG + combine": Technique("hash", combines=True),
}
SPLIT = ("SG", "PKG", "W-Choices")
PERIOD_DELAY_MS = 0.4  # as in the paper
FLUSH_MS = 0.4  # to send one partial result on: as long as a row takes; an assumption
_LOST_BY_PKG = 0.37  # of its throughput, between delays of 0.1 and 1 ms: gives the limit of the source


class DelayRow(NamedTuple):
    """Modelled rows per second, and the share of the busiest worker."""

    technique: str
    delay_ms: float
    rows_per_second: float
    largest_share: float


class PeriodRow(NamedTuple):
    """Modelled rows per second if partial results are sent after every `period` rows, and counters before they are."""

    technique: str
    period: int
    counters: float
    partials_per_row: float
    rows_per_second: float


def source_limit(workers: int) -> float:
    """Return the rows per second of the source at which PKG, if evenly balanced, loses what it loses in the paper."""
    return workers / 1e-3 / (1 - _LOST_BY_PKG)


def measure_delays(lab: Lab) -> list[DelayRow]:
    limit, rows = source_limit(lab.scale.storm_workers), []
    for name, technique in TECHNIQUES.items():
        lab.progress.step(name)
        run = lab.run(STREAM, technique, lab.scale.storm_workers)
        rows += [
            DelayRow(name, delay, min(limit, 1 / (delay * 1e-3 * run.largest_share)), run.largest_share)
            for delay in lab.scale.delays_ms
        ]
    return rows


def measure_periods(lab: Lab) -> list[PeriodRow]:
    """Partial results are counters; those of KG are final, so they are never sent on."""
    workers, stream = lab.scale.storm_workers, lab.stream(STREAM)
    run = lab.run(STREAM, TECHNIQUES["KG"], workers)
    by_hash = 1 / (PERIOD_DELAY_MS * 1e-3 * run.largest_share)
    rows = [PeriodRow("KG", period, float(len(stream.hashes)), 0.0, by_hash) for period in lab.scale.periods]
    for name in SPLIT:
        lab.progress.step(name)
        run = lab.run(STREAM, TECHNIQUES[name], workers, keep_choices=True)
        rows += [_measure_period(name, stream.keys, run, period) for period in lab.scale.periods]
    return rows


def _measure_period(name: str, keys: Keys, run: Run, period: int) -> PeriodRow:
    flushed, periods = np.zeros_like(run.loads), 0
    for start in range(0, run.messages, period):
        some = slice(start, start + period)
        flushed += count_copies(keys[some], run.choices[some], len(flushed))
        periods += 1
    seconds = (PERIOD_DELAY_MS * run.loads + FLUSH_MS * flushed).max() * 1e-3
    return PeriodRow(
        name,
        period,
        flushed.sum() / periods,
        float(flushed.sum() / run.messages),
        float(run.messages / seconds),
    )


def format_delays(rows: Rows) -> str:
    delays = [*group_by(rows, "delay_ms")]
    lines = []
    for name, series in group_by(rows, "technique").items():
        speeds = [row.rows_per_second for row in series]
        lost = 100 * (1 - speeds[-1] / speeds[0])
        lines.append(
            [
                name,
                f"{100 * series[0].largest_share:.1f}",
                *(format_number(speed, 0) for speed in speeds),
                f"{lost:.0f}",
            ]
        )
    header = ["technique", "busiest worker, %", *(f"{delay:g} ms" for delay in delays), "lost, %"]
    return format_table(header, lines)


def format_periods(rows: Rows) -> str:
    header = ["technique", "period, rows", "counters", "partials per row", "rows/s"]
    lines = [
        [
            row.technique,
            f"{row.period:,}",
            format_number(row.counters, 0),
            format_number(row.partials_per_row, 3),
            format_number(row.rows_per_second, 0),
        ]
        for row in rows
    ]
    return format_table(header, lines)
