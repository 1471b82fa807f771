"""Figure 3 of paper 001: the imbalance through time, with global and local estimates and with probing."""

from typing import NamedTuple

import numpy as np

from elastic.experiments.paper001.lab import DRIFT, ZIPF, Lab
from elastic.experiments.paper001.simulation import Run, Technique
from elastic.experiments.results import Rows, format_table, group_by


class TimeRow(NamedTuple):
    """The imbalance after some messages, as a share of all of them.

    `overlap` is how much a technique agrees with G on the worker of each message: the Jaccard index, over the run.
    """

    stream: str
    workers: int
    technique: str
    message: int
    imbalance: float
    overlap: float


def measure(lab: Lab) -> list[TimeRow]:
    sources = lab.scale.time_sources
    techniques = (
        Technique("hash"),
        Technique("pkg"),
        Technique("pkg", sources),
        Technique("pkg", sources, probes=True),
        Technique("w-choices", sources),
    )
    rows = []
    for name in (*reversed(ZIPF), DRIFT):
        for workers in lab.scale.time_worker_counts:
            lab.progress.step(f"{name}, {workers} workers")
            shared = lab.run(name, Technique("pkg"), workers, keep_choices=True)
            for technique in techniques:
                run = lab.run(name, technique, workers, keep_choices=True)
                overlap = jaccard(run, shared)
                rows += [
                    TimeRow(name, workers, technique.label, int(time), float(value) / run.messages, overlap)
                    for time, value in zip(run.times, run.imbalances, strict=True)
                ]
    return rows


def jaccard(one: Run, other: Run) -> float:
    """Return the overlap of two sets of (message, worker): a / (2 - a) if both agree on the share a of messages."""
    agreed = float(np.mean(one.choices == other.choices))
    return agreed / (2 - agreed)


def format_rows(rows: Rows) -> str:
    """The average, the largest and the last imbalance of each series; the CSV file has all."""
    header = ["stream, workers, technique", "average", "largest", "last", "overlap with G"]
    lines = []
    for stream, mine in group_by(rows, "stream").items():
        for workers, of_count in group_by(mine, "workers").items():
            for technique, series in group_by(of_count, "technique").items():
                values = [row.imbalance for row in series]
                figures = [f"{value:.1e}" for value in (float(np.mean(values)), max(values), values[-1])]
                lines.append([f"{stream}, {workers}, {technique}", *figures, f"{series[0].overlap:.2f}"])
    return format_table(header, lines)
