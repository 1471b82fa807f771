"""Figure 14: what gamma does to cost and time."""

from typing import TYPE_CHECKING

from mdp.experiments.lab import EXACT
from mdp.experiments.outcome import Rows
from mdp.experiments.pictures.style import BARS, COLOURS, NAMES, dot, headed, legend, panels, points, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MTM, _SSM = COLOURS["mtm-aware"], COLOURS["ssm"]


def draw_discounts(rows: Rows) -> "Figure":
    figure, ((cost, saving, seconds),) = panels(3, 14, 4.6)
    gammas = [row.gamma for row in rows]
    cost.plot(gammas, [row.ssm_moved_percent for row in rows], color=_SSM, linewidth=1.8)
    for axes, field in ((cost, "moved_percent"), (saving, "saving_percent"), (seconds, "seconds")):
        axes.plot(gammas, [getattr(row, field) for row in rows], color=_MTM, linewidth=1.8)
    saving.axhline(0, color=_SSM, linewidth=1.8)
    for row in rows:
        hollow = row.method != EXACT
        points(cost, [(row.gamma, row.moved_percent, row.moved_standard_error)], _MTM, hollow=hollow)
        points(saving, [(row.gamma, row.saving_percent, row.saving_standard_error)], _MTM, hollow=hollow)
        points(seconds, [(row.gamma, row.seconds, 0.0)], _MTM, hollow=hollow)
    for axes in (cost, seconds):
        axes.set_ylim(bottom=0)
    how = "exact" if all(row.method == EXACT for row in rows) else "hollow: two steps of foresight"
    legend(
        cost,
        [dot(_MTM, f"{NAMES['mtm-aware']} ({how})", line="-"), dot(_SSM, NAMES["ssm"], line="-")],
        loc="lower left",
    )
    headed(cost, "state moved by a migration, % of all state", "discount gamma", "%")
    headed(saving, "less than single step moves, %", "discount gamma", "%")
    headed(seconds, "seconds to project costs", "discount gamma", "s")
    caption = (
        f"{rows[0].partitions:,} balanced partitions. The same sequences of node counts for every gamma; bars: {BARS} "
        "standard errors, in the middle of the difference on common sequences, which is much surer than the means."
    )
    return titled(figure, "Looking further ahead moves less and takes longer to prepare", caption)
