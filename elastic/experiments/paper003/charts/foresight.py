"""The benefit of foresight by case: the state moved, and the saving over a single step."""

from typing import TYPE_CHECKING, Any

from elastic.experiments.paper003.charts.palette import COLOURS, NAMES
from elastic.experiments.paper003.contests import EVEN, EXACT, ONE_STEP, RING, SSM, TWO_STEPS
from elastic.experiments.paper003.foresight import cases_of
from elastic.experiments.results import Rows, group_by
from elastic.experiments.style import BARS, PALE, add_legend, add_title, label_axes, legend_entry, make_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHIFT = 0.22  # of a line, so that error bars do not lie on each other


def draw_foresight(rows: Rows) -> "Figure":
    of_tau = group_by(rows, "tau")
    lines = [len(cases_of(mine)) for mine in of_tau.values()]
    figure, axes = make_panels(
        2, 13, 3.2 + 0.42 * sum(lines), len(of_tau), height_ratios=lines, sharex="col", sharey="row"
    )
    for (moved, saved), (tau, mine) in zip(axes, of_tau.items(), strict=True):
        _cases(moved, saved, mine)
        label_axes(moved, f"tau {tau:g}: state moved by a migration, % of all state")
        label_axes(saved, f"tau {tau:g}: saving over single step, %")
    axes[0][0].set_xlim(left=0)
    for axis in axes[-1]:
        axis.set_xlabel("%", fontsize=9.5)
    names = [legend_entry(COLOURS[name], NAMES[name]) for name in (EVEN, RING, SSM, ONE_STEP, TWO_STEPS, EXACT)]
    add_legend(figure, names, loc="outside upper right", ncols=6, columnspacing=1.2, handletextpad=0.2)
    caption = (
        f"Bars: {BARS} standard errors, of the difference on common sequences where savings are shown. Reduced: the "
        "same case with few enough tasks for exact values.\nTweets: learned on the first month of a log, "
        "evaluated on the node counts after it."
    )
    return add_title(figure, "Benefit of foresight", caption)


def _cases(moved: Any, saved: Any, rows: Rows) -> None:
    cases = cases_of(rows)
    labels = []
    for line, ((_, case, instance), policies) in enumerate(cases.items()):
        labels.append(case if instance == "whole" else f"{case}\n{policies[SSM].tasks} tasks")
        for name, row in policies.items():
            _bar(moved, row.moved_percent, row.moved_standard_error, line, COLOURS[name])
        for shift, name in zip((-_SHIFT, 0, _SHIFT), (ONE_STEP, TWO_STEPS, EXACT), strict=True):
            if name in policies:
                row = policies[name]
                _bar(saved, row.saving_percent, row.saving_standard_error, line + shift, COLOURS[name])
    saved.axvline(0, color=PALE, linewidth=1)
    moved.set_yticks(range(len(cases)), labels)
    moved.set_ylim(len(cases) - 0.5, -0.5)


def _bar(axes: Any, value: float, spread: float, line: float, colour: str) -> None:
    axes.errorbar(
        value, line, xerr=BARS * spread, fmt="o", color=colour, markersize=6, elinewidth=1.3, capsize=2.5, zorder=3
    )
