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
        "Average imbalance as a share of all messages, against the number of workers (Table II in brackets)",
        imbalance.measure_baselines,
        imbalance.format_rows,
        charts.draw_imbalance("Splitting keys balances what no unsplit key can"),
        note="",
    ),
    "figure2": Experiment(
        "Average imbalance with global and local estimates of loads",
        imbalance.measure_estimates,
        imbalance.format_rows,
        charts.draw_imbalance("Local estimates suffice"),
        note="",
    ),
    "figure3": Experiment(
        "Imbalance through time",
        over_time.measure,
        over_time.format_rows,
        charts.draw_over_time,
        note="",
    ),
    "figure4": Experiment(
        "Average imbalance with uniform and skewed sources",
        sources.measure,
        sources.format_rows,
        charts.draw_sources,
        note="",
    ),
    "figure5a": Experiment(
        "Throughput against the processing time of a row, modelled",
        throughput.measure_delays,
        throughput.format_delays,
        charts.draw_delays,
        note="",
    ),
    "figure5b": Experiment(
        "Throughput and memory for aggregation periods, modelled",
        throughput.measure_periods,
        throughput.format_periods,
        charts.draw_periods,
        note="",
    ),
    "memory": Experiment(
        "Counters of all workers, if partial results are never merged",
        memory.measure,
        memory.format_rows,
        charts.draw_memory,
        note="",
    ),
    "speed": Experiment(
        "Rows per second and core",
        speed.measure,
        speed.format_rows,
        charts.draw_speed,
        note="",
    ),
}
