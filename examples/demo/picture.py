"""The picture of a demo: response times above, ownership of tasks below, over the same time axis."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from examples.demo.response_times import response_times
from examples.demo.timeline import Timeline

_SHADES = {"scaling": "#f5e6b8", "loss": "#f3c9c4"}
_NODES = mpl.colormaps["tab10"].colors  # type: ignore[attr-defined]
_HEADROOM = 1.35  # above the slowest batch, for the labels


def draw(timeline: Timeline, path: Path) -> Path:
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (above, below) = plt.subplots(
        2, 1, figsize=(12, 6), sharex=True, layout="constrained", height_ratios=[3, 2]
    )
    zero = timeline.periods[0].ended  # the picture starts after the warm-up
    _responses(above, timeline, zero)
    _ownership(below, timeline, zero)
    below.set_xlabel("seconds")
    below.set_xlim(0, timeline.periods[-1].ended - zero)
    figure.suptitle("Frequent patterns while the job scales and loses a node")
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def _responses(axes: Any, timeline: Timeline, zero: float) -> None:
    arrival, seconds = response_times(timeline)
    visible = arrival >= zero
    axes.plot(arrival[visible] - zero, seconds[visible] * 1_000, ".-", color="#33475b", lw=0.8, ms=4)
    top = float(seconds[visible].max(initial=0.1)) * 1_000 * _HEADROOM
    axes.set(ylim=(0, top), ylabel="response time, ms")
    for period in timeline.periods:
        if period.kind in _SHADES:
            began, ended = period.began - zero, period.ended - zero
            axes.axvspan(began, ended, color=_SHADES[period.kind], zorder=0)
            axes.annotate(period.title, (ended, top), (3, -4), textcoords="offset points", va="top", fontsize=9)


def _ownership(axes: Any, timeline: Timeline, zero: float) -> None:
    """Draw a column for every assignment, as wide as it lasted."""
    names = sorted({name for owned in timeline.owned for name in owned.owners}, key=_number)
    edges = np.array([*(owned.moment for owned in timeline.owned), timeline.periods[-1].ended]) - zero
    owners = np.array([[names.index(name) for name in owned.owners] for owned in timeline.owned]).T
    colours = mpl.colors.ListedColormap([_NODES[place % len(_NODES)] for place in range(len(names))])
    rows = np.arange(owners.shape[0] + 1)
    axes.pcolormesh(edges, rows, owners, cmap=colours, vmin=-0.5, vmax=len(names) - 0.5)
    axes.invert_yaxis()
    axes.set_ylabel("task, coloured by node")
    handles = [mpl.patches.Patch(color=colours(place), label=name) for place, name in enumerate(names)]
    axes.legend(handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def _number(name: str) -> tuple[int, str]:
    """Return a sort key by which node-10 comes after node-9."""
    digits = name.rpartition("-")[2]
    return (int(digits) if digits.isdigit() else 0, name)
