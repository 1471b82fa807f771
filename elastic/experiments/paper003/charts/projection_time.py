"""Figure 11: the time and the quality of a projection."""

from typing import TYPE_CHECKING, Any

from elastic.experiments.paper003.charts.palette import COLOURS
from elastic.experiments.paper003.contests import EXACT
from elastic.experiments.paper003.projection_time import APPROXIMATE
from elastic.experiments.results import Rows, group_by
from elastic.experiments.style import BARS, INK, PALE, add_legend, add_title, draw_points, label_axes, make_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TAU = "load balancing factor tau"


def draw_projection_time(rows: Rows) -> "Figure":
    figure, ((seconds, partitions, share),) = make_panels(3, 15.5, 5, width_ratios=[1.35, 1, 1])
    methods = group_by(rows, "method")
    for method, mine in methods.items():
        _line(seconds, mine, method)
    seconds.set(yscale="log")
    seconds.yaxis.set_major_formatter("{x:g}")
    add_legend(seconds, loc="lower right")
    counts = {row.tau: row.partitions for row in rows}
    partitions.plot(list(counts), list(counts.values()), "o-", color=INK, linewidth=1.8, markersize=5.5)
    partitions.set(yscale="log")
    _quality(share, methods[APPROXIMATE])
    for axes in (seconds, partitions, share):
        axes.set_xticks(list(counts))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.margins(x=0.08)
    label_axes(seconds, "seconds to project the cost of all partitions", _TAU, "s")
    label_axes(partitions, "balanced partitions", _TAU)
    label_axes(share, "share of the exact saving, %", _TAU, "%")
    caption = (
        "In threads of one process. Exact only where there are few enough partitions. The share is that of two steps "
        "of foresight: on the instance itself where it has exact values,\nelse on one with so few tasks that it has, "
        f"named at the point; bars: {BARS} standard errors."
    )
    return add_title(figure, "Partitions grow exponentially with tau; the time of the approximation does not", caption)


def _line(axes: Any, rows: Rows, method: str) -> None:
    errors = [row.proven_error_percent for row in rows if row.proven_error_percent is not None]
    name = f"{method} (proven error at most {max(errors):.2f} % of all state)" if errors else method
    axes.plot(
        [row.tau for row in rows],
        [row.seconds for row in rows],
        "o-",
        color=COLOURS[method],
        markerfacecolor=COLOURS[method] if method == EXACT else "white",
        markeredgewidth=1.6,
        markersize=6.5,
        linewidth=1.8,
        label=name,
    )


def _quality(axes: Any, rows: Rows) -> None:
    most = max(row.judged_on_tasks for row in rows)
    known = [row for row in rows if row.captured_percent is not None]
    axes.axhline(100, color=COLOURS[EXACT], linewidth=1.4)
    for row in known:
        spot = (row.tau, row.captured_percent, row.captured_standard_error)
        draw_points(axes, [spot], COLOURS[APPROXIMATE], hollow=True)
        if row.judged_on_tasks < most:
            low = row.captured_percent - BARS * row.captured_standard_error
            note, place = f"{row.judged_on_tasks} tasks", (row.tau, low)
            axes.annotate(note, place, (0, -12), textcoords="offset points", ha="center", fontsize=8, color=PALE)
    axes.set_ylim(bottom=0)
