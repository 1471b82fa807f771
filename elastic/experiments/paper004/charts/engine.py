"""Completion times and overheads on a running job."""

from typing import TYPE_CHECKING

import numpy as np

from elastic.experiments.paper004.charts.palette import COLOURS, NAMES
from elastic.experiments.results import Rows, group_by
from elastic.experiments.style import add_legend, add_title, label_axes, make_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_completion(rows: Rows) -> "Figure":
    workloads = group_by(rows, "workload")
    figure, (panels,) = make_panels(len(workloads), 9, 4)
    for axes, (workload, mine) in zip(panels, workloads.items(), strict=True):
        for place, row in enumerate(mine):
            x = np.arange(2) + (place - 1) * 0.27
            axes.bar(x, [row.median_ms, row.p99_ms], 0.25, color=COLOURS[row.scheduler], label=NAMES[row.scheduler])
        axes.set_xticks([0, 1], ["median", "99 %"])
        label_axes(axes, workload, ylabel="completion time, ms")
    add_legend(panels[0], loc="upper left")
    return add_title(figure, "Rows with a slow branch are done sooner", "Medians over runs; two senders.")


def draw_overhead(rows: Rows) -> "Figure":
    figure, ((axes,),) = make_panels(1, 7, 4)
    measured = {kind: mine for kind, mine in group_by(rows, "scheduler").items() if kind != "round-robin"}
    for place, (scheduler, mine) in enumerate(measured.items()):
        x = np.arange(len(mine)) + (place - 0.5) * 0.4
        spread = [row.spread_percent / 2 for row in mine]
        heights = [row.overhead_percent for row in mine]
        axes.bar(x, heights, 0.38, yerr=spread, color=COLOURS[scheduler], label=NAMES[scheduler])
        axes.set_xticks(range(len(mine)), [f"{row.microseconds_per_row:g}" for row in mine])
    label_axes(axes, "processor time beyond round-robin, %", "microseconds per row of the operator", "%")
    add_legend(axes)
    return add_title(figure, "What scheduling by cost costs", "Medians over runs; lines span the quartiles.")
