"""Figure 7: loads of nodes if only the hash decides."""

from typing import TYPE_CHECKING

from elastic.experiments.paper000.charts.palette import SERIES
from elastic.experiments.results import Rows, group_by
from elastic.experiments.style import PALE, add_legend, add_title, label_axes, make_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_skewness(rows: Rows) -> "Figure":
    figure, ((left, right),) = make_panels(2, 12, 4.8, sharey=True)
    for axes, (panel, mine) in zip((left, right), group_by(rows, "panel").items(), strict=True):
        for colour, (value, series) in zip(SERIES, group_by(mine, panel).items(), strict=False):
            axes.plot(
                [row.percentile for row in series],
                [row.load for row in series],
                "o-",
                color=colour,
                linewidth=1.8,
                markersize=3.5,
                label=f"{value:,} {panel}",
            )
        axes.axhline(1, color=PALE, linewidth=1)
        axes.set_xlim(0, 102)
        add_legend(axes, loc="upper left")
        other = rows[-1].nodes if panel == "keys" else mine[0].keys
        label_axes(
            axes,
            f"by the number of {panel} ({other:,} {'nodes' if panel == 'keys' else 'keys'})",
            "nodes by ascending load, percentile",
            "load over the mean load" if axes is left else "",
        )
    caption = "Zipf frequencies (z 0.85), given to keys anew in every interval; averages of the ascending loads."
    return add_title(figure, "A hash alone leaves loads uneven: more so with more nodes or fewer keys", caption)
