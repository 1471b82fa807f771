"""Figure 9: the state moved, the saving of foresight, and the heaviest load."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from elastic.experiments.paper003.charts.palette import COLOURS, NAMES
from elastic.experiments.paper003.contests import EVEN, EXACT, RING, SSM
from elastic.experiments.paper003.migration_cost import MTM
from elastic.experiments.results import Rows, group_by
from elastic.experiments.style import (
    BARS,
    INK,
    add_legend,
    add_title,
    draw_points,
    label_axes,
    label_line_end,
    legend_entry,
    make_panels,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TAU = "load balancing factor tau"


def draw_migration_cost(rows: Rows) -> "Figure":
    figure, ((cost, saving, load),) = make_panels(3, 15.5, 5.4, width_ratios=[1.5, 1, 1])
    strategies = group_by(rows, "strategy")
    _costs(cost, strategies)
    _savings(saving, strategies[MTM])
    _loads(load, strategies)
    for axes in (cost, saving, load):
        axes.set_xticks([row.tau for row in strategies[SSM]])
        axes.xaxis.set_major_formatter("{x:g}")
    label_axes(cost, "state moved by a migration, % of all state", _TAU, "%")
    label_axes(saving, "saving of MTM-aware over single step, %", _TAU, "%")
    label_axes(load, "work of the heaviest node / mean, after a migration", _TAU)
    kinds = [
        legend_entry(COLOURS[MTM], "MTM-aware by exact projected costs"),
        legend_entry(COLOURS[MTM], "by approximate ones, two steps of foresight", hollow=True),
    ]
    add_legend(figure, kinds, loc="outside upper right", ncols=2, columnspacing=1.2, handletextpad=0.2)
    one = rows[0]
    caption = (
        f"Means over {one.sequences} sequences, {one.migrations:,} migrations, the same for every strategy and "
        f"every tau; bars: {BARS} standard errors, of the difference on common sequences where savings are shown.\n"
        "Even split and consistent hashing ignore work and tau: above the dashed line they exceed the cap. "
        "Where no partition is within the cap, the smallest feasible cap is used."
    )
    return add_title(figure, "State moved by migrations: foresight saves most where tau is large", caption)


def _costs(axes: Any, strategies: Mapping[str, Rows]) -> None:
    for name in (EVEN, RING, SSM, MTM):
        mine, colour = strategies[name], COLOURS[name]
        axes.plot([row.tau for row in mine], [row.moved_percent for row in mine], color=colour, linewidth=1.8)
        for row in mine:
            draw_points(axes, [(row.tau, row.moved_percent, row.moved_standard_error)], colour, hollow=_is_hollow(row))
    axes.set_ylim(bottom=0)
    ends = {name: rows[-1] for name, rows in strategies.items()}
    close = ends[SSM].moved_percent - ends[MTM].moved_percent < 0.06 * ends[EVEN].moved_percent
    lift = {SSM: 10.0, MTM: -2.0} if close else {}
    for name, row in ends.items():
        label_line_end(axes, row.tau, row.moved_percent, NAMES[name], COLOURS[name], lift.get(name, 0.0))
    left, right = axes.get_xlim()
    axes.set_xlim(left, right + 0.33 * (right - left))  # room for the names


def _savings(axes: Any, rows: Rows) -> None:
    axes.axhline(0, color=COLOURS[SSM], linewidth=1.8)
    axes.plot([row.tau for row in rows], [row.saving_percent for row in rows], color=COLOURS[MTM], linewidth=1.8)
    for row in rows:
        draw_points(
            axes, [(row.tau, row.saving_percent, row.saving_standard_error)], COLOURS[MTM], hollow=_is_hollow(row)
        )


def _loads(axes: Any, strategies: Mapping[str, Rows]) -> None:
    for name in (EVEN, RING, SSM, MTM):
        mine, colour = strategies[name], COLOURS[name]
        axes.plot([row.tau for row in mine], [row.heaviest_over_mean for row in mine], "o-", color=colour, markersize=5)
    taus = [row.tau for row in strategies[SSM]]
    axes.plot(taus, [1 + tau for tau in taus], color=INK, linewidth=1.2, linestyle="--", zorder=1)
    place = (taus[-1], 1 + taus[-1])
    axes.annotate("the cap, 1 + tau", place, (-4, 6), textcoords="offset points", ha="right", fontsize=9, color=INK)
    axes.set_ylim(bottom=1)


def _is_hollow(row: Any) -> bool:
    return bool(row.strategy == MTM and row.method != EXACT)
