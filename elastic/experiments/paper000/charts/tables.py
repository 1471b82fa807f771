"""Figures 17, 18, 20 and 21: the size of the routing table, and beta."""

from typing import TYPE_CHECKING

from elastic.experiments.paper000.charts.palette import BOUND, COLOURS, NAMES, SERIES
from elastic.experiments.results import Rows, group_by
from elastic.experiments.style import BARS, PALE, add_legend, add_title, label_axes, make_panels, use_log_scale

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_table_sizes(rows: Rows) -> "Figure":
    figure, ((axes,),) = make_panels(1, 8.5, 5)
    for colour, (theta, series) in zip(
        SERIES, group_by([row for row in rows if row.strategy == "mixed"], "theta").items(), strict=False
    ):
        sizes = [row.most_entries for row in series]
        axes.errorbar(
            sizes,
            [row.moved_percent for row in series],
            [BARS * row.moved_standard_error for row in series],
            fmt="o-",
            color=colour,
            markersize=5,
            capsize=2,
            label=f"Mixed, theta {theta:g}",
        )
    ours = [row for row in rows if row.strategy == "knap"]
    sizes = [row.most_entries for row in ours]
    axes.plot(
        sizes, [row.moved_percent for row in ours], "o-", color=COLOURS["knap"], label=f"knap, theta {ours[0].theta:g}"
    )
    axes.plot(
        sizes,
        [row.bound_percent for row in ours],
        ":",
        color=BOUND,
        linewidth=2,
        label=f"lower bound, theta {ours[0].theta:g}",
    )
    axes.set_ylim(bottom=0)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    add_legend(axes, loc="best")
    label_axes(axes, "state moved by a plan, % of all state", "most entries of the routing table", "%")
    return add_title(figure, "A larger table saves migrations", _MEANS)


def draw_growth(rows: Rows) -> "Figure":
    figure, ((axes,),) = make_panels(1, 8.5, 5)
    for colour, (theta, series) in zip(SERIES, group_by(rows, "theta").items(), strict=False):
        axes.plot(
            [row.adjustment for row in series],
            [row.entries for row in series],
            color=colour,
            linewidth=1.8,
            label=f"theta {theta:g}",
        )
    axes.axhline(rows[0].limit, color=PALE, linewidth=1.2, linestyle="--", label="K (N - 1) / N: homes by chance")
    add_legend(axes, loc="best")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    label_axes(axes, "entries of the routing table", "adjustments", "")
    return add_title(
        figure, "MinMig does not heed the size of its table", "One trajectory for each theta; a plan in every interval."
    )


def draw_entries_by_beta(rows: Rows) -> "Figure":
    figure, ((axes,),) = make_panels(1, 8.5, 5)
    for colour, (window, series) in zip((SERIES[2], SERIES[3]), group_by(rows, "window").items(), strict=False):
        axes.plot(
            [row.beta for row in series], [row.entries for row in series], "o-", color=colour, label=f"window {window}"
        )
    use_log_scale(axes.yaxis)
    add_legend(axes, loc="best")
    label_axes(axes, "entries of the routing table", "beta")
    return add_title(figure, "MinMig: a larger beta keeps the table small", _MEANS)


def draw_cost_by_beta(rows: Rows) -> "Figure":
    figure, ((axes,),) = make_panels(1, 8.5, 5)
    for colour, (window, series) in zip((SERIES[2], SERIES[3]), group_by(rows, "window").items(), strict=False):
        betas = [row.beta for row in series]
        axes.errorbar(
            betas,
            [row.moved_percent for row in series],
            [BARS * row.moved_standard_error for row in series],
            fmt="o-",
            color=colour,
            capsize=2,
            label=f"{NAMES['min-mig']}, window {window}",
        )
        axes.plot(
            betas,
            [row.bound_percent for row in series],
            ":",
            color=colour,
            linewidth=2,
            label=f"lower bound, window {window}",
        )
    use_log_scale(axes.yaxis)
    add_legend(axes, loc="best")
    label_axes(axes, "state moved by a plan, % of all state", "beta", "%")
    return add_title(figure, "MinMig: a larger beta moves more state", _MEANS)


_MEANS = f"Means over the plans of several trajectories; bars: {BARS} standard errors."
