"""What foresight is worth, case by case: the state moved, and what is saved over a single step."""

from typing import TYPE_CHECKING, Any

from mdp.experiments.contests import EVEN, RING, SSM
from mdp.experiments.foresight import cases_of
from mdp.experiments.lab import EXACT, ONE_STEP, TWO_STEPS
from mdp.experiments.outcome import Rows, by
from mdp.experiments.pictures.style import BARS, COLOURS, NAMES, PALE, dot, headed, legend, panels, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHIFT = 0.22  # of a line, so that error bars do not lie on each other


def draw_foresights(rows: Rows) -> "Figure":
    of_tau = by(rows, "tau")
    lines = [len(cases_of(mine)) for mine in of_tau.values()]
    figure, axes = panels(2, 13, 3.2 + 0.42 * sum(lines), len(of_tau), height_ratios=lines, sharex="col", sharey="row")
    for (moved, saved), (tau, mine) in zip(axes, of_tau.items(), strict=True):
        _cases(moved, saved, mine)
        headed(moved, f"tau {tau:g}: state moved by a migration, % of all state")
        headed(saved, f"tau {tau:g}: less than single step moves, %")
    axes[0][0].set_xlim(left=0)
    for axis in axes[-1]:
        axis.set_xlabel("%", fontsize=9.5)
    names = [dot(COLOURS[name], NAMES[name]) for name in (EVEN, RING, SSM, ONE_STEP, TWO_STEPS, EXACT)]
    legend(figure, names, loc="outside upper right", ncols=6, columnspacing=1.2, handletextpad=0.2)
    caption = (
        f"Bars: {BARS} standard errors, of the difference on common sequences where savings are shown. Reduced: the "
        "same case with so few tasks that exact values can be had.\nTweets: learned on the first month of a log, "
        "judged by the node counts of the time after it."
    )
    return titled(figure, "What foresight is worth", caption)


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
