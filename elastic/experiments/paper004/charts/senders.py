"""The makespan of batches that several senders schedule."""

from typing import TYPE_CHECKING

from elastic.experiments.paper004.charts.palette import COLOURS, NAMES
from elastic.experiments.results import Rows, group_by
from elastic.experiments.style import add_legend, add_title, label_axes, make_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_senders(rows: Rows) -> "Figure":
    figure, ((makespans, speeds),) = make_panels(2, 12, 4.8)
    for scheduler, all_mine in group_by(rows, "scheduler").items():
        for costs, mine in group_by(all_mine, "costs").items():
            style = {"color": COLOURS[scheduler], "linewidth": 1.8, "linestyle": "--" if costs == "exact" else "-"}
            senders, name = [row.senders for row in mine], f"{NAMES[scheduler]}, {costs} costs"
            makespans.plot(senders, [row.makespan for row in mine], "o", label=name, **style)
            if costs != "exact":
                speeds.plot(senders, [row.rows_per_second / 1e6 for row in mine], "o", **style)
    for axes in (makespans, speeds):
        axes.set(xscale="log")
        axes.set_xticks([*group_by(rows, "senders")], [str(count) for count in group_by(rows, "senders")])
        axes.minorticks_off()
    speeds.set_ylim(bottom=0)
    add_legend(makespans, loc="best")
    label_axes(makespans, "load of the busiest node, over the mean", "senders")
    label_axes(speeds, "estimating and choosing, million rows/s of one sender", "senders")
    caption = "One batch of Zipf-1.0 rows with costs of 1 to 64 ms; estimates are from the batch before."
    return add_title(figure, "Senders that do not ask each other still balance a batch", caption)
