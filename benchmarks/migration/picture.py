"""The pictures: response times over a day with two migrations, and the curves of the sweep."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.ticker
import numpy as np

from benchmarks.migration.goals import FLINK_PEAK_MS
from benchmarks.migration.measures import touched_by, within
from benchmarks.migration.sweep import Bounded, Sized
from benchmarks.migration.trial import MORE_NODES, Trial
from benchmarks.report import RESULTS

_BIN_SECONDS = 0.25
_WORST, _MIDDLE = "#c44e52", "#4c72b0"
_MIGRATION, _MOVING = "#f7efd8", "#e8d08c"  # all of it, and in it the time when state moves


def picture(trials: Mapping[str, Trial], state_mb: float) -> Path:
    """A row for every engine on one scale, and beside them the worst of every phase."""
    plt = _pyplot()
    figure, axes = plt.subplots(
        len(trials),
        2,
        figsize=(13, 1 + 2 * len(trials)),
        layout="constrained",
        squeeze=False,
        sharey=True,
        width_ratios=[3, 1],
    )
    for (line, bars), trial in zip(axes, trials.values(), strict=True):
        _timeline(line, trial)
        _phases(bars, trial)
    axes[0][0].legend(loc="upper right", fontsize=8, ncols=3)
    axes[0][1].legend(loc="upper left", fontsize=8)
    axes[-1][0].set_xlabel("seconds since the stream became steady")
    # A power of ten above and below, or the axis would have no number on it.
    axes[0][0].set_ylim(100, None)
    figure.suptitle(
        f"Response time in ms, record in to result readable: {state_mb:g} MB of state, 8 -> {MORE_NODES} -> 8 nodes"
    )
    return _saved(figure, "migration.png")


def sweep_picture(bounded: Sequence[Bounded], sized: Sequence[Sized]) -> Path:
    plt = _pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    bounds = [one.mb_per_node for one in bounded]
    left.plot(bounds, [one.seconds for one in bounded], "o-", color=_MIDDLE, label="seconds of moving")
    left.set(xscale="log", xlabel="bound on MB in flight per node", ylabel="seconds", title="the trade-off of a bound")
    left.set_ylim(bottom=0)
    peaks = left.twinx()
    peaks.plot(bounds, [one.peak_ms for one in bounded], "s--", color=_WORST, label="peak response time")
    peaks.set_ylabel("ms")
    peaks.set_ylim(bottom=0)
    left.legend(loc="upper center")
    peaks.legend(loc="lower center")
    for mode, marker in zip(dict.fromkeys(one.mode for one in sized), "os^v", strict=False):
        mine = [one for one in sized if one.mode == mode]
        right.plot([one.moved_mb for one in mine], [one.seconds for one in mine], f"{marker}-", label=mode)
    right.set(xscale="log", yscale="log", xlabel="MB moved, out and back", ylabel="seconds", title="time against size")
    right.legend()
    return _saved(figure, "migration_sweep.png")


def _timeline(axes: Any, trial: Trial) -> None:
    """The worst and the median of the results of every quarter of a second."""
    responses, zero = trial.responses, trial.steady[0].began
    spent = (responses.readable - responses.entered) / 1e3
    bins = np.floor((responses.readable - zero) / 1e6 / _BIN_SECONDS).astype(np.int64)
    shown = np.unique(bins[bins >= 0])
    for how, colour, label in ((np.max, _WORST, "worst"), (np.median, _MIDDLE, "median")):
        axes.plot(
            shown * _BIN_SECONDS, [how(spent[bins == one]) for one in shown], ".-", ms=3, color=colour, label=label
        )
    for move in trial.moves:
        for window, colour in ((move.window, _MIGRATION), (move.moving, _MOVING)):
            axes.axvspan((window.began - zero) / 1e6, (window.ended - zero) / 1e6, color=colour, zorder=0)
    axes.axhline(FLINK_PEAK_MS, color="grey", lw=0.8, ls=":", label="peak of Flink 2.3 at 200 MB")
    axes.set(yscale="log", title=trial.name, ylabel="ms")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_minor_formatter(mpl.ticker.NullFormatter())
    axes.set_xlim(left=0)


def _phases(axes: Any, trial: Trial) -> None:
    before, *_, after = trial.steady
    found = [
        within(trial.responses, before),
        *(touched_by(trial.responses, move.window) for move in trial.moves),
        within(trial.responses, after),
    ]
    places = ["before", "out", "back", "after"]
    for name, colour in (("peak", "#dddddd"), ("p99", _WORST), ("p50", _MIDDLE)):
        axes.bar(places, [getattr(one, name) for one in found], color=colour, label=name)


def _pyplot() -> Any:
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    return plt


def _saved(figure: Any, name: str) -> Path:
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / name
    figure.savefig(path, dpi=110)
    return path
