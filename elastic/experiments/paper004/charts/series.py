"""Figures 10 and 11: completion times over time."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from elastic.experiments.paper004.charts.palette import COLOURS, NAMES
from elastic.experiments.results import Rows, group_by
from elastic.experiments.style import PALE, add_legend, add_title, label_axes, make_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_series(title: str, caption: str) -> "Callable[[Rows], Figure]":
    """Make the function that draws the rows of one figure."""

    def draw(rows: Rows) -> "Figure":
        figure, ((axes,),) = make_panels(1, 11, 5)
        for policy, mine in group_by(rows, "policy").items():
            at, colour = [row.row for row in mine], COLOURS[policy]
            axes.fill_between(
                at, [row.min_ms for row in mine], [row.max_ms for row in mine], color=colour, alpha=0.1, linewidth=0
            )
            axes.plot(at, [row.mean_ms for row in mine], color=colour, linewidth=1.8, label=NAMES[policy])
        axes.axvline(rows[-1].row / 2, color=PALE, linewidth=1)
        axes.set_ylim(bottom=0)
        label_axes(axes, "completion time, ms", "rows", "ms")
        add_legend(axes, loc="upper left")
        return add_title(figure, title, caption)

    return draw
