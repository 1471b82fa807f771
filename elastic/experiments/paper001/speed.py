"""How many rows a second each technique routes on one core, by hashed keys."""

import time
from typing import NamedTuple

import numpy as np

from elastic.experiments.paper001.lab import Lab
from elastic.experiments.results import Rows, format_number, format_table, group_by
from elastic.routing.splitting import PARTITIONERS, Targets

STREAM = "LN1"
_BATCH = 1 << 17


class SpeedRow(NamedTuple):
    """Rows per second of processor time, the best of several passes over the stream."""

    technique: str
    workers: int
    rows_per_second: float


def measure(lab: Lab) -> list[SpeedRow]:
    stream = lab.stream(STREAM)
    hashes = stream.hashes[stream.keys]
    batches = np.split(hashes, range(_BATCH, len(hashes), _BATCH))
    rows = []
    for name, create in PARTITIONERS.items():
        lab.progress.step(name)
        for workers in lab.scale.worker_counts:
            targets = Targets.one_per_worker(workers, lab.seed)
            create(targets, stream.frequencies).partition(hashes[:1])  # loads compiled code
            passes: list[float] = []
            while not passes or sum(passes) < lab.scale.speed_seconds:
                partitioner = create(targets, stream.frequencies)
                began = time.process_time()
                for batch in batches:
                    partitioner.partition(batch)
                passes.append(time.process_time() - began)
            rows.append(SpeedRow(name, workers, len(hashes) / max(min(passes), 1e-9)))
    return rows


def format_rows(rows: Rows) -> str:
    workers = [*group_by(rows, "workers")]
    lines = [
        [name, *(format_number(row.rows_per_second / 1e6, 1) for row in series)]
        for name, series in group_by(rows, "technique").items()
    ]
    return format_table(["million rows/s", *(f"W = {count}" for count in workers)], lines)
