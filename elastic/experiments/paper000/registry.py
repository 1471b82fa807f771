"""The experiments of paper 000 by name."""

from collections.abc import Mapping

from elastic.experiments.paper000 import compact, skewness, sweeps, tables
from elastic.experiments.paper000.charts.compact import draw_compact
from elastic.experiments.paper000.charts.skewness import draw_skewness
from elastic.experiments.paper000.charts.sweeps import draw_sweep
from elastic.experiments.paper000.charts.tables import (
    draw_cost_by_beta,
    draw_entries_by_beta,
    draw_growth,
    draw_table_sizes,
)
from elastic.experiments.paper000.lab import Lab
from elastic.experiments.results import Experiment

EXPERIMENTS: Mapping[str, Experiment[Lab]] = {
    "figure7": Experiment(
        "Loads of nodes by hash alone, against the number of nodes and of keys",
        skewness.measure,
        skewness.format_rows,
        draw_skewness,
    ),
    "figure8": Experiment(
        "Time and migration cost of a plan, against the number of nodes",
        sweeps.measure_by_nodes,
        sweeps.format_rows,
        draw_sweep("More nodes are harder to balance", "nodes N"),
    ),
    "figure9": Experiment(
        "Time and migration cost of a plan, against theta",
        sweeps.measure_by_theta,
        sweeps.format_rows,
        draw_sweep("A stricter balance moves more state", "allowed overload theta"),
    ),
    "figure10": Experiment(
        "Time and migration cost of a plan, against the number of keys",
        sweeps.measure_by_keys,
        sweeps.format_rows,
        draw_sweep("Time grows with the number of keys, cost does not", "keys K", logarithmic=True),
    ),
    "figure11": Experiment(
        "Plans over compact records, against the degree of discretisation",
        compact.measure,
        compact.format_rows,
        draw_compact,
    ),
    "figure12": Experiment(
        "Time and migration cost of a plan, against the fluctuation",
        sweeps.measure_by_fluctuation,
        sweeps.format_rows,
        draw_sweep("Larger fluctuations move more state", "fluctuation f"),
    ),
    "figure17": Experiment(
        "Migration cost of Mixed, against the size of the routing table",
        tables.measure_table_sizes,
        tables.format_table_sizes,
        draw_table_sizes,
    ),
    "figure18": Experiment(
        "Size of MinMig's routing table, against the number of adjustments",
        tables.measure_growth,
        tables.format_growth,
        draw_growth,
    ),
    "figure19": Experiment(
        "Time and migration cost of a plan, against the window",
        sweeps.measure_by_window,
        sweeps.format_rows,
        draw_sweep("A longer window offers cheaper keys", "window w, intervals"),
    ),
    "figure20": Experiment(
        "Size of MinMig's routing table, against beta",
        tables.measure_betas,
        tables.format_betas,
        draw_entries_by_beta,
    ),
    "figure21": Experiment(
        "Migration cost of MinMig, against beta", tables.measure_betas, tables.format_betas, draw_cost_by_beta
    ),
}
