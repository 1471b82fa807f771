"""Figures 8, 9, 10, 12 and 19: time and migration cost against one parameter."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from elastic.experiments.paper000.charts.palette import BOUND, COLOURS, NAMES
from elastic.experiments.results import Rows, format_value, group_by
from elastic.experiments.style import BARS, INK, add_title, label_axes, legend_entry, make_panels, use_log_scale

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_sweep(title: str, xlabel: str, *, logarithmic: bool = False) -> "Callable[[Rows], Figure]":
    """Make the function that draws the rows of one figure."""

    def draw(rows: Rows) -> "Figure":
        figure, ((times, costs),) = make_panels(2, 14, 5)
        windows = [*group_by(rows, "window")]
        by_window = rows[0].parameter != "window" and len(windows) > 1
        for strategy, mine in group_by(rows, "strategy").items():
            for window, series in group_by(mine, "window").items() if by_window else {windows[-1]: mine}.items():
                dashed = by_window and window != windows[-1]
                _draw_series(times, costs, series, COLOURS[strategy], dashed=dashed)
        bound = [row for row in rows if row.strategy == rows[-1].strategy]
        for window, series in group_by(bound, "window").items() if by_window else {windows[-1]: bound}.items():
            dashed = by_window and window != windows[-1]
            costs.plot(
                [row.value for row in series],
                [row.bound_percent for row in series],
                linestyle=(0, (1, 2.5)) if dashed else ":",
                color=BOUND,
                linewidth=1.2 if dashed else 2,
            )
        for axes in (times, costs):
            if logarithmic:
                axes.set(xscale="log")
            axes.set_xticks([*group_by(rows, "value")], [format_value(value) for value in group_by(rows, "value")])
            axes.minorticks_off()
            use_log_scale(axes.yaxis)
        label_axes(times, "time of a plan, ms", xlabel, "ms")
        label_axes(costs, "state moved by a plan, % of all state", xlabel, "%")
        figure.legend(
            handles=_entries(rows, windows if by_window else []),
            loc="outside right upper",
            frameon=False,
            fontsize=9,
            labelcolor=INK,
        )
        caption = (
            "Means of the plans of several trajectories (times: medians); bars: "
            f"{BARS} standard errors. The lower bound is that of the states that {NAMES[rows[-1].strategy]} meets."
        )
        if by_window:
            caption += f" Solid: window {windows[-1]}, dashed: window {windows[0]}."
        return add_title(figure, title, caption)

    return draw


def _draw_series(times: Any, costs: Any, series: Rows, colour: str, *, dashed: bool) -> None:
    values = [row.value for row in series]
    style = {"color": colour, "linewidth": 1.8, "markersize": 5, "linestyle": "--" if dashed else "-", "marker": "o"}
    if dashed:
        style["markerfacecolor"] = "white"
    times.plot(values, [row.milliseconds for row in series], **style)
    costs.errorbar(
        values,
        [max(row.moved_percent, 1e-3) for row in series],
        [BARS * row.moved_standard_error for row in series],
        elinewidth=1,
        capsize=2,
        **style,
    )


def _entries(rows: Rows, windows: list[int]) -> list[Any]:
    from matplotlib.lines import Line2D

    entries = [legend_entry(COLOURS[one], NAMES[one], line="-") for one in group_by(rows, "strategy")]
    entries.append(Line2D([], [], color=BOUND, linestyle=":", linewidth=2, label="lower bound"))
    if windows:
        entries.append(Line2D([], [], color=BOUND, linestyle="--", linewidth=1.2, label=f"dashed: w = {windows[0]}"))
    return entries
