"""Figures 10 and 11 of paper 002: lines over the fluctuation and over the size of state."""

from typing import TYPE_CHECKING

from elastic.experiments.results import Rows, format_value, group_by
from elastic.experiments.style import add_legend, add_title, label_axes, make_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = ("#98a3ad", "#c9962f", "#2f74b5", "#b5343c", "#5aa9a3")


def draw_throughput(rows: Rows) -> "Figure":
    figure, (panels,) = make_panels(2, 12, 4.5, sharey=True)
    for axes, column, title in zip(
        panels, ("rows_per_second", "rows_per_second_lost"), ("no node is lost", "a node is killed"), strict=True
    ):
        for colour, (strategy, mine) in zip(_COLOURS, group_by(rows, "strategy").items(), strict=False):
            axes.plot(
                [row.fluctuation for row in mine],
                [getattr(row, column) for row in mine],
                "o-",
                color=colour,
                label=strategy,
            )
        axes.set_ylim(bottom=0)
        label_axes(axes, title, "fluctuation f", "rows per second")
    add_legend(panels[0], loc="lower left")
    return add_title(figure, "Standbys cost throughput, and save it where a node is lost", "Means over runs.")


def draw_recovery(rows: Rows) -> "Figure":
    figure, (panels,) = make_panels(3, 15, 4.5)
    columns = {
        "recovery_ms": ("until the lost tasks have caught up", "ms"),
        "delay_ms": ("mean response time of rows meanwhile", "ms"),
        "rows_per_second": ("throughput with a lost node", "rows per second"),
    }
    sizes = [*group_by(rows, "state_mb")]
    for axes, (column, (title, unit)) in zip(panels, columns.items(), strict=True):
        for colour, (protection, mine) in zip(_COLOURS[1:], group_by(rows, "protection").items(), strict=False):
            axes.plot(sizes, [getattr(row, column) for row in mine], "o-", color=colour, label=protection)
        axes.set(xscale="log")
        axes.set_xticks(sizes, [format_value(size) for size in sizes])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
        label_axes(axes, title, "state, MB", unit)
    add_legend(panels[0])
    return add_title(figure, "With standbys, recovery does not depend on the size of state", "Medians over runs.")
