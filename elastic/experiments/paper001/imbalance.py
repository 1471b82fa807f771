"""Table II and Figure 2 of paper 001: the average imbalance of techniques against the number of workers."""

from collections.abc import Sequence
from typing import NamedTuple

from elastic.experiments.paper001.lab import Lab
from elastic.experiments.paper001.simulation import Technique, floor_share
from elastic.experiments.results import Rows, format_table, group_by

BASELINES = tuple(map(Technique, ("pkg", "off-greedy", "on-greedy", "potc", "hash")))
OURS = (Technique("d-choices"), Technique("w-choices"), Technique("hash", combines=True))
# Table II, as shares of all messages: 22 million and 1.2 thousand million.
PAPER = {
    "Zipf-WP": {
        "G": (0.8, 2.9, 5.9e5, 8.0e5),
        "Off-Greedy": (0.8, 0.9, 1.6e6, 1.8e6),
        "On-Greedy": (7.8, 1.4e5, 1.6e6, 1.8e6),
        "PoTC": (15.8, 1.7e5, 1.6e6, 1.8e6),
        "H": (1.4e6, 1.7e6, 2.0e6, 2.0e6),
    },
    "Zipf-TW": {
        "G": (0.4, 1.7, 2.74, 4.0e6),
        "Off-Greedy": (0.4, 0.7, 7.8e6, 2.0e7),
        "On-Greedy": (8.4, 92.7, 1.2e7, 2.0e7),
        "PoTC": (2.2e4, 5.1e3, 1.4e7, 2.0e7),
        "H": (4.1e7, 3.7e7, 2.4e7, 3.3e7),
    },
}
_PAPER_WORKERS = (5, 10, 50, 100)
_PAPER_MESSAGES = {"Zipf-WP": 22e6, "Zipf-TW": 1.2e9}


class ImbalanceRow(NamedTuple):
    """Imbalance as shares of all messages: averaged over time, and at the end.

    `floor` is the average that no technique with two choices can be below, (p1 / 2 - 1 / W) / 2, and `final_floor` that
    at the end. `paper` is the value of Table II: called an average, but equal to those at the end.
    """

    stream: str
    workers: int
    technique: str
    messages: int
    average: float
    final: float
    floor: float
    final_floor: float
    paper: float | None


def measure_baselines(lab: Lab) -> list[ImbalanceRow]:
    return _measure(lab, [*BASELINES, *OURS])


def measure_estimates(lab: Lab) -> list[ImbalanceRow]:
    """Global and local estimates, and what the paper does not have: W-Choices with five sources."""
    sources = lab.scale.source_counts
    local = [Technique("pkg", number) for number in sources]
    return _measure(lab, [Technique("hash"), Technique("pkg"), *local, Technique("w-choices", sources[0]), OURS[-1]])


def _measure(lab: Lab, techniques: Sequence[Technique]) -> list[ImbalanceRow]:
    rows = []
    for name in lab.stream_names:
        lab.progress.step(f"{name}: {len(techniques)} techniques")
        stream = lab.stream(name)
        for workers in lab.scale.worker_counts:
            floor = floor_share(stream.heaviest_share, workers)
            for technique in techniques:
                average, final = lab.mean_share(name, technique, workers)
                paper = _paper_share(name, technique.label, workers)
                rows.append(
                    ImbalanceRow(
                        name, workers, technique.label, stream.messages, average, final, floor / 2, floor, paper
                    )
                )
    return rows


def _paper_share(stream: str, technique: str, workers: int) -> float | None:
    found = PAPER.get(stream, {}).get(technique)
    if found is None or workers not in _PAPER_WORKERS:
        return None
    return found[_PAPER_WORKERS.index(workers)] / _PAPER_MESSAGES[stream]


def format_baselines(rows: Rows) -> str:
    """Averages over time, and values at the end, beside which are those of Table II."""
    final = _format(rows, "final", "final_floor")
    return f"Average over time\n\n{format_averages(rows)}\n\nAt the end (Table II)\n\n{final}"


def format_averages(rows: Rows) -> str:
    return _format(rows, "average", "floor")


def _format(rows: Rows, field: str, floor: str) -> str:
    """One line per stream and technique, and one for the floor of each stream."""
    workers = [*group_by(rows, "workers")]
    lines: list[list[str]] = []
    for stream, mine in group_by(rows, "stream").items():
        for technique, series in group_by(mine, "technique").items():
            papers = [row.paper if field == "final" else None for row in series]
            cells = [
                f"{getattr(row, field):.1e}" + ("" if paper is None else f" ({paper:.1e})")
                for row, paper in zip(series, papers, strict=True)
            ]
            lines.append([f"{stream}, {technique}", *cells])
        floors = {row.workers: getattr(row, floor) for row in mine}
        lines.append([f"{stream}, floor of two choices", *(f"{floors[count]:.1e}" for count in workers)])
    return format_table(["stream, technique", *(f"W = {count}" for count in workers)], lines)
