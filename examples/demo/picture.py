"""The picture of a demo: response times, owners and standbys of tasks, over the same time axis."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from examples.demo.response_times import response_times
from examples.demo.timeline import Timeline

_SHADES = {"scaling": "#f5e6b8", "loss": "#f3c9c4", "switch": "#cfe3d4"}
_NODES = ("#4477aa", "#ee7733", "#228833", "#cc3311", "#aa3377", "#b8860b", "#33bbee", "#777777")
_LINE, _NOBODY = "#33475b", "#f4f4f4"
_HEADROOM = 1.35  # above the slowest batch, for the labels
_LEAST_WIDTH = 0.15  # of a shade, in seconds, so that a failover of milliseconds is visible


def draw(timeline: Timeline, path: Path) -> Path:
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    ratios = [3, 2, 2] if timeline.has_standbys else [3, 2]
    figure, axes = plt.subplots(
        len(ratios), 1, figsize=(12, 1.3 * sum(ratios)), sharex=True, layout="constrained", height_ratios=ratios
    )
    zero = timeline.periods[0].ended  # the picture starts after the warm-up
    _responses(axes[0], timeline, zero)
    names = sorted(_names(timeline), key=_number)
    _tasks(axes[1], timeline, zero, names, [owned.owners for owned in timeline.owned], "owner of task")
    if timeline.has_standbys:
        _tasks(axes[2], timeline, zero, names, _first_standbys(timeline), "standby of task")
    for lower in axes[1:]:
        _mark(lower, timeline, zero)
    axes[-1].set_xlabel("seconds")
    axes[-1].set_xlim(0, timeline.periods[-1].ended - zero)
    handles = [mpl.patches.Patch(color=_colour(place), label=name) for place, name in enumerate(names)]
    figure.legend(handles=handles, loc="outside right center", frameon=False)
    figure.suptitle("Frequent patterns while the job scales and loses a node")
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def _responses(axes: Any, timeline: Timeline, zero: float) -> None:
    arrival, seconds = response_times(timeline)
    visible = arrival >= zero
    axes.plot(arrival[visible] - zero, seconds[visible] * 1_000, ".-", color=_LINE, lw=0.8, ms=4)
    top = float(seconds[visible].max(initial=0.1)) * 1_000 * _HEADROOM
    axes.set(ylim=(0, top), ylabel="response time, ms")
    for period in timeline.periods:
        if period.kind in _SHADES:
            began, ended = period.began - zero, max(period.ended, period.began + _LEAST_WIDTH) - zero
            axes.axvspan(began, ended, color=_SHADES[period.kind], zorder=0)
            axes.annotate(period.title, (ended, top), (3, -4), textcoords="offset points", va="top", fontsize=9)


def _mark(axes: Any, timeline: Timeline, zero: float) -> None:
    """Draw a line where a node was killed or roles switched back, through the panels of tasks."""
    for period in timeline.periods:
        if period.kind in ("loss", "switch"):
            axes.axvline(period.began - zero, color="white", lw=1, ls=":")


def _tasks(
    axes: Any, timeline: Timeline, zero: float, names: Sequence[str], nodes: Sequence[Sequence[str]], label: str
) -> None:
    """Draw a column for every assignment, as wide as it lasted; tasks without such a node stay blank."""
    edges = np.array([*(owned.moment for owned in timeline.owned), timeline.periods[-1].ended]) - zero
    places = np.array([[names.index(name) if name else -1 for name in column] for column in nodes]).T
    colours = mpl.colors.ListedColormap([_NOBODY, *(_colour(place) for place in range(len(names)))])
    axes.pcolormesh(edges, np.arange(len(places) + 1), places, cmap=colours, vmin=-1.5, vmax=len(names) - 0.5)
    axes.invert_yaxis()
    axes.set_ylabel(label)


def _first_standbys(timeline: Timeline) -> list[list[str]]:
    """Return the preferred standby of every task for each assignment; "" for a task that has none."""
    return [
        [next(iter(owned.standbys[task] if owned.standbys else ()), "") for task in range(len(owned.owners))]
        for owned in timeline.owned
    ]


def _names(timeline: Timeline) -> set[str]:
    followers = {name for owned in timeline.owned for nodes in owned.standbys for name in nodes}
    return followers.union(*(owned.owners for owned in timeline.owned))


def _colour(place: int) -> str:
    return _NODES[place % len(_NODES)]


def _number(name: str) -> tuple[int, str]:
    """Return a sort key by which node-10 comes after node-9."""
    digits = name.rpartition("-")[2]
    return (int(digits) if digits.isdigit() else 0, name)
