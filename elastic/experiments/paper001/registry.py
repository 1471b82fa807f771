"""The experiments of paper 001 by name."""

from collections.abc import Mapping

from elastic.experiments.paper001 import charts, datasets, imbalance, memory, over_time, sources, speed, throughput
from elastic.experiments.paper001.lab import Lab
from elastic.experiments.results import Experiment

EXPERIMENTS: Mapping[str, Experiment[Lab]] = {
    "table1": Experiment(
        "Streams: messages, keys and the share of the heaviest key",
        datasets.measure,
        datasets.format_rows,
        charts.draw_datasets,
        note=(
            "LN1 and LN2 are reproduced, with rounded samples. Wikipedia, Twitter, cashtags and LiveJournal are "
            "replaced by Zipf streams with the same share of the heaviest key and fewer keys. Popular keys of the "
            "stream that stands for the cashtags drift, so that over all periods the share is smaller."
        ),
    ),
    "table2": Experiment(
        "Imbalance as a share of all messages, against the number of workers (Table II in brackets)",
        imbalance.measure_baselines,
        imbalance.format_baselines,
        charts.draw_imbalance("Splitting keys balances what no unsplit key can"),
        note=(
            "Reproduced: the order of the techniques and, once W > 2 / p1, the values of all but hashing within 3 %. "
            "Table II is said to have averages over time, but has what is reached at the end: p1 / 2 - 1 / W with two "
            "choices, p1 - 1 / W without splitting. No technique with two choices is below that floor, half of it on "
            "average; W-Choices is. Not reproduced: On-Greedy and PoTC with few workers, which depend on the order of "
            "keys in the real streams. With few heavy keys (LN1, LN2) PKG is above its floor for some hash functions: "
            "the choices of several heavy keys fall on too few workers. Off-Greedy knows the whole stream, so it is "
            "even at its end and not before. H + combine counts combined rows; a batch is the part between two samples."
        ),
    ),
    "figure2": Experiment(
        "Average imbalance with global and local estimates of loads",
        imbalance.measure_estimates,
        imbalance.format_averages,
        charts.draw_imbalance("Local estimates suffice"),
        note=(
            "Reproduced: local estimates are worse than global ones by less than a factor of 20 (paper: 10), at most "
            "by some messages per source, and equal once PKG is at its floor. W-Choices with local estimates and local "
            "sketches stays balanced."
        ),
    ),
    "figure3": Experiment(
        "Imbalance through time",
        over_time.measure,
        over_time.format_rows,
        charts.draw_over_time,
        note=(
            "Reproduced: G and L5 are alike although they agree on few messages (overlap 0.44 to 0.49 where balanced; "
            "paper 0.47), and drift does no harm. Probing hurts (paper: does not help): after a probe all sources see "
            "the same loads and send to the same workers until the next one."
        ),
    ),
    "figure4": Experiment(
        "Average imbalance with uniform and skewed sources",
        sources.measure,
        sources.format_rows,
        charts.draw_sources,
        note="Reproduced on a generated graph: uneven sources balance as well as even ones.",
    ),
    "figure5a": Experiment(
        "Throughput against the processing time of a row, modelled",
        throughput.measure_delays,
        throughput.format_delays,
        charts.draw_delays,
        note=(
            "A model, not a cluster: rows per second are limited by the busiest of 9 workers and by the source, whose "
            "limit is such that PKG loses the paper's 37 %. Then KG loses 62 % (paper: about 60 %). KG + combine sends "
            "a key once per batch, so the busiest worker has fewer rows than with any splitting."
        ),
    ),
    "figure5b": Experiment(
        "Throughput and memory for aggregation periods, modelled",
        throughput.measure_periods,
        throughput.format_periods,
        charts.draw_periods,
        note=(
            "A model: workers need 0.4 ms for a row or a partial result. Reproduced: PKG needs less memory than SG "
            "and has, except for the shortest period, more throughput; longer periods give more of both. Not "
            "reproduced: KG ahead of PKG for periods below 30 s; the aggregator, which may be what limits the paper's "
            "cluster, is not modelled."
        ),
    ),
    "memory": Experiment(
        "Counters of all workers, if partial results are never merged",
        memory.measure,
        memory.format_rows,
        charts.draw_memory,
        note=(
            "PKG has 1.02 to 1.7 counters per key, never more than 2 (paper: 1.3 times those of KG); W-Choices has 1 "
            "to 6.3 times those of PKG, the most where few keys are all heavy (LN2); SG has up to W per key."
        ),
    ),
    "speed": Experiment(
        "Rows per second and core",
        speed.measure,
        speed.format_rows,
        charts.draw_speed,
        note="In batches of 131,072 rows. `hash`, `shuffle` and `pair-split` are NumPy, the others compiled by numba.",
    ),
}
