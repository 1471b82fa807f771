"""The charts of paper 002."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from elastic.experiments.results import Rows, format_value, group_by
from elastic.experiments.style import BARS, add_legend, add_title, label_axes, make_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {
    "min-table": "#c9962f",
    "readj": "#98a3ad",
    "mixed": "#2f74b5",
    "task-b": "#7d5ba6",
    "ftlb": "#5aa9a3",
    "switch-first": "#b5343c",
}
NAMES = {
    "min-table": "MinTable",
    "readj": "Readj",
    "mixed": "Mixed",
    "task-b": "TaskB",
    "ftlb": "FTLB",
    "switch-first": "switch-first (ours)",
}


def draw_sweep(title: str, xlabel: str, *, logarithmic: bool = False) -> "Callable[[Rows], Figure]":
    """Make the function that draws the rows of one figure."""

    def draw(rows: Rows) -> "Figure":
        figure, ((times, costs),) = make_panels(2, 14, 5)
        for strategy, mine in group_by(rows, "strategy").items():
            values = [row.value for row in mine]
            style = {"color": COLOURS[strategy], "label": NAMES[strategy], "marker": "o", "linewidth": 1.8}
            times.plot(values, [row.milliseconds for row in mine], **style)
            costs.errorbar(
                values,
                [row.moved_percent for row in mine],
                [BARS * row.moved_standard_error for row in mine],
                elinewidth=1,
                capsize=2,
                **style,
            )
        for axes in (times, costs):
            if logarithmic:
                axes.set(xscale="log")
            axes.set_xticks([*group_by(rows, "value")], [format_value(value) for value in group_by(rows, "value")])
            axes.minorticks_off()
        times.set(yscale="log")
        label_axes(times, "time of a plan, ms", xlabel, "ms")
        label_axes(costs, "state that a plan moves on the critical path, % of all state", xlabel, "%")
        add_legend(costs)
        return add_title(
            figure, title, f"Means of the plans of several trajectories (times: medians); bars: {BARS} standard errors."
        )

    return draw


def draw_skewness(rows: Rows) -> "Figure":
    parameters = group_by(rows, "parameter")
    figure, (panels,) = make_panels(len(parameters), 14, 5)
    colours = [*COLOURS.values()]
    for axes, (parameter, of_one) in zip(panels, parameters.items(), strict=True):
        for colour, (value, of_value) in zip(colours, group_by(of_one, "value").items(), strict=False):
            for standbys, mine in group_by(of_value, "standbys").items():
                axes.plot(
                    [row.percentile for row in mine],
                    [row.load for row in mine],
                    color=colour,
                    linestyle="-" if standbys else "--",
                    label=f"{value:,} {parameter}" if standbys else None,
                )
        label_axes(axes, f"by number of {parameter}", "percentile of the nodes", "load, in multiples of the mean")
        add_legend(axes)
    return add_title(
        figure, "Standbys even out the loads of nodes", "Solid: one standby for every key; dashed: none. By hash alone."
    )
