"""Figure 14: cost and time against gamma."""

from typing import TYPE_CHECKING

from elastic.experiments.paper003.charts.palette import COLOURS, NAMES
from elastic.experiments.paper003.contests import EXACT
from elastic.experiments.results import Rows
from elastic.experiments.style import BARS, add_legend, add_title, draw_points, label_axes, legend_entry, make_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MTM, _SSM = COLOURS["mtm-aware"], COLOURS["ssm"]


def draw_discount(rows: Rows) -> "Figure":
    figure, ((cost, saving, seconds),) = make_panels(3, 14, 4.6)
    gammas = [row.gamma for row in rows]
    cost.plot(gammas, [row.ssm_moved_percent for row in rows], color=_SSM, linewidth=1.8)
    for axes, field in ((cost, "moved_percent"), (saving, "saving_percent"), (seconds, "seconds")):
        axes.plot(gammas, [getattr(row, field) for row in rows], color=_MTM, linewidth=1.8)
    saving.axhline(0, color=_SSM, linewidth=1.8)
    for row in rows:
        hollow = row.method != EXACT
        draw_points(cost, [(row.gamma, row.moved_percent, row.moved_standard_error)], _MTM, hollow=hollow)
        draw_points(saving, [(row.gamma, row.saving_percent, row.saving_standard_error)], _MTM, hollow=hollow)
        draw_points(seconds, [(row.gamma, row.seconds, 0.0)], _MTM, hollow=hollow)
    for axes in (cost, seconds):
        axes.set_ylim(bottom=0)
    how = "exact" if all(row.method == EXACT for row in rows) else "hollow: two steps of foresight"
    add_legend(
        cost,
        [legend_entry(_MTM, f"{NAMES['mtm-aware']} ({how})", line="-"), legend_entry(_SSM, NAMES["ssm"], line="-")],
        loc="lower left",
    )
    label_axes(cost, "state moved by a migration, % of all state", "discount gamma", "%")
    label_axes(saving, "saving over single step, %", "discount gamma", "%")
    label_axes(seconds, "seconds to project costs", "discount gamma", "s")
    caption = (
        f"{rows[0].partitions:,} balanced partitions. The same sequences of node counts for every gamma; bars: {BARS} "
        "standard errors; in the middle, of the difference on common sequences, which is more precise than the means."
    )
    return add_title(figure, "A higher discount factor moves less state and takes longer to project", caption)
