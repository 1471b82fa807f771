"""Figure 11: time and error of plans over compact records."""

from typing import TYPE_CHECKING

from elastic.experiments.paper000.charts.palette import COLOURS
from elastic.experiments.results import Rows
from elastic.experiments.style import INK, PALE, add_legend, add_title, label_axes, make_panels, use_log_scale

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_compact(rows: Rows) -> "Figure":
    figure, ((times, errors, reports),) = make_panels(3, 15.5, 4.8)
    exact = next(row for row in rows if row.degree is None)
    records = [row for row in rows if row.degree is not None]
    degrees = [row.degree for row in records]
    times.axhline(exact.plan_milliseconds, color=INK, linewidth=1.4, label="plan over all keys")
    times.plot(degrees, [row.plan_milliseconds for row in records], "o-", color=COLOURS["mixed"], label="plan")
    both = [row.plan_milliseconds + row.materialise_milliseconds for row in records]
    times.plot(degrees, both, "o-", color=COLOURS["knap"], label="plan and materialise")
    paper = [row for row in rows if row.paper_milliseconds is not None]
    times.plot(
        [row.degree or degrees[0] for row in paper],
        [row.paper_milliseconds for row in paper],
        "x",
        color=PALE,
        markersize=8,
        label="the paper: all keys (left), and R = 8",
    )
    errors.plot(
        degrees, [row.load_error_percent for row in records], "o-", color=COLOURS["mixed"], label="means of keys (ours)"
    )
    errors.plot(
        degrees,
        [row.paper_load_error_percent for row in records],
        "o--",
        color=PALE,
        label="representative values (paper)",
    )
    reports.plot(degrees, [row.times_smaller for row in records], "o-", color=COLOURS["mixed"])
    for axes in (times, errors, reports):
        axes.set(xscale="log")
        axes.set_xticks(degrees, [f"{degree:g}" for degree in degrees])
        axes.minorticks_off()
        use_log_scale(axes.yaxis)
    add_legend(errors, loc="best", fontsize=8.5)
    add_legend(times, loc="upper right", fontsize=8.5)
    degree = "degree of discretisation R"
    label_axes(times, "time, ms", degree, "ms")
    label_axes(errors, "largest error of a node's load, %", degree, "%")
    label_axes(reports, "report: times smaller than one of all keys", degree)
    caption = "Mixed; medians over intervals. Nodes build the records; building them is not part of these times."
    return add_title(figure, "Records instead of keys: plans in a millisecond, loads nearly exact", caption)
