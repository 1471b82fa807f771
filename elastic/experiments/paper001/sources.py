"""Figure 4 of paper 001: sources that get uneven parts of the stream, because they are chosen by a skewed key."""

from typing import NamedTuple

from elastic.experiments.paper001.lab import Lab
from elastic.experiments.paper001.simulation import Technique, simulate
from elastic.experiments.results import Rows, format_table, group_by
from elastic.routing.splitting import Targets
from elastic.routing.splitting.targets import mix

_SOURCE_SEED = 1 << 32  # of the hash that leads edges to sources: none of those that lead to workers


class SourcesRow(NamedTuple):
    """The average imbalance as a share of all messages, and the share of messages of the busiest source."""

    split: str
    sources: int
    workers: int
    average: float
    busiest_source: float


def measure(lab: Lab) -> list[SourcesRow]:
    """Edges go to sources in turn, or by the hash of their source vertex; keys are their target vertices."""
    stream, vertices = lab.graph
    rows = []
    for sources in lab.scale.source_counts:
        lab.progress.step(f"{sources} sources")
        by_key = Targets.one_per_worker(sources, _SOURCE_SEED).first_choices(mix(vertices, 0))
        for split, source_of in (("uniform", None), ("skewed", by_key)):
            share = 1 / sources if source_of is None else float((source_of[:, None] == range(sources)).mean(0).max())
            for workers in lab.scale.worker_counts:
                run = simulate(
                    stream,
                    Technique("pkg", sources),
                    workers,
                    seed=1_000 * lab.seed,
                    samples=lab.scale.samples,
                    source_of=source_of,
                )
                rows.append(SourcesRow(split, sources, workers, run.mean_share, share))
    return rows


def format_rows(rows: Rows) -> str:
    workers = [*group_by(rows, "workers")]
    lines = []
    for split, mine in group_by(rows, "split").items():
        for sources, series in group_by(mine, "sources").items():
            busiest = f"{100 * series[0].busiest_source:.1f}"
            lines.append([f"{split}, {sources} sources", busiest, *(f"{row.average:.1e}" for row in series)])
    return format_table(["split, sources", "busiest source, %", *(f"W = {count}" for count in workers)], lines)
