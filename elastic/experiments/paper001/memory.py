"""Number of copies of keys that each technique needs, and its imbalance."""

from typing import NamedTuple

from elastic.experiments.paper001.lab import Lab
from elastic.experiments.paper001.simulation import Technique, count_copies
from elastic.experiments.results import Rows, format_number, format_table

PKG = Technique("pkg")
TECHNIQUES = (Technique("hash"), PKG, Technique("d-choices"), Technique("w-choices"), Technique("shuffle"))


class MemoryRow(NamedTuple):
    """Pairs of a key and a worker that has a counter for it, at the end of a stream; `times_pkg` is relative to PKG."""

    stream: str
    workers: int
    technique: str
    copies: int
    copies_per_key: float
    times_pkg: float
    imbalance: float


def measure(lab: Lab) -> list[MemoryRow]:
    rows = []
    for name in lab.stream_names:
        lab.progress.step(name)
        keys = len(lab.stream(name).hashes)
        for workers in lab.scale.worker_counts:
            found = {technique: _count(lab, name, technique, workers) for technique in TECHNIQUES}
            by_pkg, _ = found[PKG]
            rows += [
                MemoryRow(
                    name,
                    workers,
                    "PKG" if technique == PKG else technique.label,
                    copies,
                    copies / keys,
                    copies / by_pkg,
                    imbalance,
                )
                for technique, (copies, imbalance) in found.items()
            ]
    return rows


def _count(lab: Lab, name: str, technique: Technique, workers: int) -> tuple[int, float]:
    """Return the copies and the imbalance."""
    run = lab.run(name, technique, workers, keep_choices=True)
    return int(count_copies(lab.stream(name).keys, run.choices, workers).sum()), run.mean_share


def format_rows(rows: Rows) -> str:
    header = ["stream, workers", "technique", "counters", "per key", "times PKG", "imbalance"]
    lines = [
        [
            f"{row.stream}, {row.workers}",
            row.technique,
            f"{row.copies:,}",
            format_number(row.copies_per_key),
            format_number(row.times_pkg),
            f"{row.imbalance:.1e}",
        ]
        for row in rows
    ]
    return format_table(header, lines)
