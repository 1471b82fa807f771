"""Figures 4 to 9 and 12: completion times and speed-ups against one parameter."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from elastic.experiments.paper004.charts.palette import COLOURS, NAMES
from elastic.experiments.results import Rows, group_by
from elastic.experiments.style import PALE, add_legend, add_title, draw_band, label_axes, make_panels, use_log_scale

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_sweep(title: str, xlabel: str, *, logarithmic: bool = False) -> "Callable[[Rows], Figure]":
    """Make the function that draws the rows of one figure."""

    def draw(rows: Rows) -> "Figure":
        figure, ((times, speedups),) = make_panels(2, 13, 5)
        for policy, mine in group_by(rows, "policy").items():
            values, colour = [row.value for row in mine], COLOURS[policy]
            times.plot(
                values,
                [row.mean_ms for row in mine],
                "o-",
                color=colour,
                linewidth=1.8,
                markersize=5,
                label=NAMES[policy],
            )
            if policy != "round-robin":
                bands = [(row.speedup, row.least_speedup, row.most_speedup) for row in mine]
                draw_band(speedups, values, bands, colour, NAMES[policy])
        speedups.axhline(1, color=PALE, linewidth=1)
        for axes in (times, speedups):
            if logarithmic:
                axes.set(xscale="log")
            axes.set_xticks([*group_by(rows, "value")], [f"{value:,g}" for value in group_by(rows, "value")])
            axes.minorticks_off()
        use_log_scale(times.yaxis)
        label_axes(times, "mean completion time, ms", xlabel, "ms")
        label_axes(speedups, "speed-up over round-robin", xlabel)
        add_legend(times, loc="best")
        caption = (
            "Lines: means over streams that differ in the costs of items. Bands: the least and the most of a stream."
        )
        return add_title(figure, title, caption)

    return draw
