"""The experiments of paper 004 by name."""

from collections.abc import Mapping

from elastic.experiments.paper004 import senders, series, sweeps
from elastic.experiments.paper004.charts.senders import draw_senders
from elastic.experiments.paper004.charts.series import draw_series
from elastic.experiments.paper004.charts.sweeps import draw_sweep
from elastic.experiments.paper004.lab import Lab
from elastic.experiments.results import Experiment

EXPERIMENTS: Mapping[str, Experiment[Lab]] = {
    "figure4": Experiment(
        "Completion times, against the skew of the cost keys",
        sweeps.measure_by_skew,
        sweeps.format_rows,
        draw_sweep("Skewed keys are easier to estimate", "skew of the frequencies (0: uniform)"),
        note="NOTE",
    ),
    "figure5": Experiment(
        "Completion times, against over-provisioning",
        sweeps.measure_by_provisioning,
        sweeps.format_rows,
        draw_sweep("The gain is largest where queues are long", "capacity over input"),
        note="NOTE",
    ),
    "figure6": Experiment(
        "Completion times, against the longest execution time",
        sweeps.measure_by_max_cost,
        sweeps.format_rows,
        draw_sweep(
            "The longest execution time changes times, not speed-ups", "longest execution time, ms", logarithmic=True
        ),
        note="NOTE",
    ),
    "figure7": Experiment(
        "Completion times, against the number of different execution times",
        sweeps.measure_by_cost_values,
        sweeps.format_rows,
        draw_sweep(
            "Few different costs vary more from stream to stream", "different execution times", logarithmic=True
        ),
        note="NOTE",
    ),
    "figure8": Experiment(
        "Completion times, against the number of instances",
        sweeps.measure_by_instances,
        sweeps.format_rows,
        draw_sweep("Several instances are needed for a gain", "instances k"),
        note="NOTE",
    ),
    "figure9": Experiment(
        "Completion times, against the precision of sketches",
        sweeps.measure_by_epsilon,
        sweeps.format_rows,
        draw_sweep("Larger sketches help little", "epsilon (columns = e / epsilon)", logarithmic=True),
        note="NOTE",
    ),
    "figure10": Experiment(
        "Completion times over time; instances change their speeds half-way",
        series.measure,
        series.format_rows,
        draw_series(
            "Estimates follow instances that change their speeds", "One stream. Bands: least and most of a point."
        ),
        note="NOTE",
    ),
    "figure11": Experiment(
        "The same with messages that take a second",
        series.measure_delayed,
        series.format_rows,
        draw_series("Late messages cost little", "One stream; messages to the scheduler take one second."),
        note="NOTE",
    ),
    "figure12": Experiment(
        "Completion times of generated tweets, against the number of instances",
        sweeps.measure_tweets,
        sweeps.format_rows,
        draw_sweep("Three kinds of rows, 35,000 keys", "instances k"),
        note="NOTE",
    ),
    "senders": Experiment(
        "Load of the busiest node when several senders schedule one batch",
        senders.measure,
        senders.format_rows,
        draw_senders,
        note="NOTE",
    ),
}
