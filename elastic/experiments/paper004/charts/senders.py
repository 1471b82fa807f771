"""The makespan of batches that several senders schedule."""

from typing import TYPE_CHECKING

from elastic.experiments.paper004.charts.palette import COLOURS, NAMES
from elastic.experiments.results import Rows, group_by
from elastic.experiments.style import add_legend, add_title, label_axes, make_panels, use_log_scale

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINES = ("-", "--", ":")  # the coarse sketch, the fine one, exact costs


def draw_senders(rows: Rows) -> "Figure":
    figure, ((axes,),) = make_panels(1, 9, 5)
    kinds = [*group_by([row for row in rows if row.scheduler != "round-robin"], "costs")]
    for scheduler, all_mine in group_by(rows, "scheduler").items():
        for costs, mine in group_by(all_mine, "costs").items():
            is_blind = scheduler == "round-robin"
            label = "exact costs" if costs == "exact" else f"epsilon {costs}"
            axes.plot(
                [row.senders for row in mine],
                [100 * (row.makespan - 1) for row in mine],
                "o",
                color=COLOURS[scheduler],
                linewidth=1.8,
                linestyle="-" if is_blind else _LINES[kinds.index(costs)],
                label=NAMES[scheduler] + ("" if is_blind else f", {label}"),
            )
    use_log_scale(axes.yaxis)
    axes.set(xscale="log")
    axes.set_xticks([*group_by(rows, "senders")], [str(count) for count in group_by(rows, "senders")])
    axes.minorticks_off()
    add_legend(axes, loc="upper left", bbox_to_anchor=(1, 1))
    label_axes(axes, "load of the busiest node above the mean, %", "senders", "%")
    caption = "Means over batches of Zipf-1.0 rows with costs of 1 to 64 ms; sketches are from the batch before."
    return add_title(figure, "Senders that do not ask each other balance a batch", caption)
