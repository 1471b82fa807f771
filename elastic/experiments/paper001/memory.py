"""How many copies of keys each technique needs, beside the imbalance that they buy."""

from typing import NamedTuple

from elastic.experiments.paper001.lab import Lab
from elastic.experiments.paper001.simulation import Technique
from elastic.experiments.results import Rows, format_number, format_table

TECHNIQUES = tuple(map(Technique, ("hash", "pkg", "d-choices", "w-choices", "shuffle")))


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
            [pkg] = lab.run(name, Technique("pkg"), workers)
            for technique in TECHNIQUES:
                [run] = lab.run(name, technique, workers)
                copies = run.copies
                label = "PKG" if technique.partitioner == "pkg" else technique.label
                rows.append(MemoryRow(name, workers, label, copies, copies / keys, copies / pkg.copies, run.mean_share))
    return rows


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
