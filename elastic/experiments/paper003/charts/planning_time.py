"""Figures 10 and 12: the time of a plan."""

from typing import TYPE_CHECKING, Any

from elastic.experiments.paper003.charts.palette import COLOURS
from elastic.experiments.results import Rows
from elastic.experiments.style import BARS, PALE, add_legend, add_title, draw_band, draw_points, label_axes, make_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CALL, _KERNEL = COLOURS["ssm"], COLOURS["consistent-hash"]
_SPREAD = "Lines: medians; bands: 10th to 90th percentile"


def draw_times_by_tau(rows: Rows) -> "Figure":
    figure, ((left, right),) = make_panels(2, 11, 4.6)
    taus = [row.tau for row in rows]
    draw_band(left, taus, [(row.call_us, row.call_p10_us, row.call_p90_us) for row in rows], _CALL, "call")
    draw_band(right, taus, [(row.kernel_us, row.kernel_p10_us, row.kernel_p90_us) for row in rows], _KERNEL, "kernel")
    for axes in (left, right):
        axes.set_ylim(bottom=0)
        axes.set_xticks(taus)
    label_axes(left, "the whole call, from objects to a plan with its moves, µs", "load balancing factor tau", "µs")
    label_axes(right, "the dynamic program in it, µs", "load balancing factor tau")
    caption = f"{rows[0].tasks} tasks, migrations drawn from the learned matrix. {_SPREAD} over repeated calls."
    if relaxed := [row for row in rows if row.relaxed_call_us is not None]:
        cases = (f"{row.relaxed_percent:.0f} % at tau {row.tau:g} ({row.relaxed_call_us:,.0f} µs)" for row in relaxed)
        caption += f"\nWithout migrations to node counts that have no balanced partition: {', '.join(cases)}."
    return add_title(figure, "A single-step plan takes microseconds at every tau", caption)


def draw_times_by_tasks(rows: Rows) -> "Figure":
    figure, ((left, right),) = make_panels(2, 12, 4.8)
    tasks = [row.tasks for row in rows]
    draw_band(left, tasks, [(row.call_us, row.call_p10_us, row.call_p90_us) for row in rows], _CALL, "whole call")
    kernels = [(row.kernel_us, row.kernel_p10_us, row.kernel_p90_us) for row in rows]
    draw_band(left, tasks, kernels, _KERNEL, "dynamic program alone")
    first, last = rows[0], rows[-1]
    slope = [first.kernel_us / 2, first.kernel_us / 2 * last.tasks / first.tasks]
    left.plot([first.tasks, last.tasks], slope, ":", color=PALE, label="growth in proportion to m")
    left.set(xscale="log", yscale="log")
    left.yaxis.set_major_formatter("{x:,.0f}")
    add_legend(left, loc="upper left")
    right.plot(tasks, [row.moved_percent for row in rows], color=_CALL, linewidth=1.8)
    draw_points(right, [(row.tasks, row.moved_percent, row.moved_standard_error) for row in rows], _CALL)
    right.set(xscale="log")
    right.set_ylim(bottom=0)
    for axes in (left, right):
        _ticks(axes, tasks)
    label_axes(left, "time of a plan, µs", "tasks m", "µs")
    label_axes(right, "state moved by a migration, % of all state", "tasks m", "%")
    caption = (
        f"tau {first.tau:g}, migrations drawn from the learned matrix, every task log-normal. {_SPREAD} over repeated "
        f"calls. Right: means, bars: {BARS} standard errors."
    )
    return add_title(figure, "More tasks: finer plans, still in milliseconds", caption)


def _ticks(axes: Any, tasks: list[int]) -> None:
    axes.set_xticks(tasks, [f"{m:,}" for m in tasks], rotation=35, ha="right", rotation_mode="anchor")
    axes.minorticks_off()
