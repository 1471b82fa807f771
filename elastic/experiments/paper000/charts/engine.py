"""Figures 13 to 16: throughput and latency of a running job."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from elastic.experiments.paper000.charts.palette import COLOURS, NAMES
from elastic.experiments.results import Rows, format_value, group_by
from elastic.experiments.style import INK, add_title, label_axes, legend_entry, make_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CAPTION = "Nodes are threads, rows cost a fixed time by sleeping; every window equals a batch computation."


def draw_throughput(xlabel: str) -> "Callable[[Rows], Figure]":
    """Make the function that draws throughput and latency of each application against one parameter."""

    def draw(rows: Rows) -> "Figure":
        applications = group_by(rows, "application")
        figure, panels = make_panels(2, 14, 4.6 * len(applications), rows=len(applications))
        for (speeds, latencies), (name, mine) in zip(panels, applications.items(), strict=True):
            for strategy, series in group_by(mine, "strategy").items():
                values = [row.value for row in series]
                style = {"color": COLOURS[strategy], "linewidth": 1.8, "markersize": 5}
                spreads = [row.rows_per_second_spread for row in series]
                speeds.errorbar(values, [row.rows_per_second for row in series], spreads, fmt="o-", capsize=2, **style)
                latencies.plot(values, [row.latency_ms for row in series], "o-", **style)
            for axes in (speeds, latencies):
                axes.set_ylim(bottom=0)
                axes.yaxis.set_major_formatter("{x:,.0f}")
                axes.set_xticks([*group_by(mine, "value")], [format_value(value) for value in group_by(mine, "value")])
            label_axes(speeds, f"{name}: rows per second", xlabel, "")
            label_axes(latencies, f"{name}: mean latency, ms", xlabel, "")
        _add_strategies(figure, rows)
        return add_title(figure, "Rebalancing by key brings a skewed stream close to a uniform one", _CAPTION)

    return draw


def draw_scale_out(rows: Rows) -> "Figure":
    applications = group_by(rows, "application")
    figure, (panels,) = make_panels(len(applications), 7 * len(applications), 5)
    for axes, (name, mine) in zip(panels, applications.items(), strict=True):
        for strategy, series in group_by(mine, "strategy").items():
            seconds, speeds = [row.seconds for row in series[1:]], [row.rows_per_second for row in series[1:]]
            axes.plot(seconds, speeds, "o-", color=COLOURS[strategy], linewidth=1.8, markersize=4)
            joined = next((row for row in series if row.nodes != series[0].nodes), None)
            if joined is not None:
                axes.plot(joined.seconds, joined.rows_per_second, "o", color=COLOURS[strategy], markersize=9)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter("{x:,.0f}")
        label_axes(axes, f"{name}: rows per second", "seconds", "")
    _add_strategies(figure, rows)
    return add_title(figure, "A node joins (large points)", _CAPTION)


def draw_query(rows: Rows) -> "Figure":
    """Draw throughput over time, one panel for each theta; strategies that move nothing are in all of them."""
    thetas = dict(group_by(rows, "theta"))
    unmoved = thetas.pop(None)
    figure, (panels,) = make_panels(len(thetas), 8 * len(thetas), 5)
    for axes, (theta, moved) in zip(panels, thetas.items(), strict=True):
        for strategy, series in group_by([*unmoved, *moved], "strategy").items():
            seconds, speeds = [row.seconds for row in series[1:]], [row.rows_per_second for row in series[1:]]
            axes.plot(seconds, speeds, "o-", color=COLOURS[strategy], linewidth=1.8, markersize=4)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter("{x:,.0f}")
        label_axes(axes, f"rows per second, theta {theta:g}", "seconds", "")
    _add_strategies(figure, rows)
    return add_title(figure, "TPC-H query 5 while hot customers and suppliers change", _CAPTION)


def _add_strategies(figure: "Figure", rows: Rows) -> None:
    entries = [legend_entry(COLOURS[one], NAMES[one], line="-") for one in group_by(rows, "strategy")]
    figure.legend(handles=entries, loc="outside right upper", frameon=False, fontsize=9, labelcolor=INK)
