"""The charts: response times of a trial with two migrations, and the curves of the sweep."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.ticker
import numpy as np

from benchmarks.migration.goals import FLINK_PEAK_MS
from benchmarks.migration.measures import summarise_affected, summarise_entered
from benchmarks.migration.sweep import LimitResult, SizeResult
from benchmarks.migration.trial import MORE_NODES, Trial
from benchmarks.report import RESULTS

_BIN_SECONDS = 0.25
_WORST, _MIDDLE = "#c44e52", "#4c72b0"
_MIGRATION, _MOVING = "#f7efd8", "#e8d08c"  # the whole migration, and the time when state moves


def draw_trials(trials: Mapping[str, Trial], state_mb: float) -> Path:
    """Draw a row per engine on one scale: its timeline, and the worst values of every phase."""
    plt = _load_pyplot()
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
        _draw_timeline(line, trial)
        _draw_phases(bars, trial)
    axes[0][0].legend(loc="upper right", fontsize=8, ncols=3)
    axes[0][1].legend(loc="upper left", fontsize=8)
    axes[-1][0].set_xlabel("seconds since the stream became steady")
    # The axis needs a power of ten within its range, or it has no label.
    axes[0][0].set_ylim(100, None)
    figure.suptitle(
        f"Response time in ms, from record to readable result: {state_mb:g} MB of state, 8 -> {MORE_NODES} -> 8 nodes"
    )
    return _save(figure, "migration.png")


def draw_sweep(bounded: Sequence[LimitResult], sized: Sequence[SizeResult]) -> Path:
    plt = _load_pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    limits = [one.mb_per_node for one in bounded]
    left.plot(limits, [one.seconds for one in bounded], "o-", color=_MIDDLE, label="seconds of moving")
    left.set(
        xscale="log", xlabel="limit on MB in flight per node", ylabel="seconds", title="duration and peak by limit"
    )
    left.set_ylim(bottom=0)
    peaks = left.twinx()
    peaks.plot(limits, [one.peak_ms for one in bounded], "s--", color=_WORST, label="peak response time")
    peaks.set_ylabel("ms")
    peaks.set_ylim(bottom=0)
    left.legend(loc="upper center")
    peaks.legend(loc="lower center")
    for mode, marker in zip(dict.fromkeys(one.mode for one in sized), "os^v", strict=False):
        results = [one for one in sized if one.mode == mode]
        right.plot([one.moved_mb for one in results], [one.seconds for one in results], f"{marker}-", label=mode)
    right.set(xscale="log", yscale="log", xlabel="MB moved, out and back", ylabel="seconds", title="duration by size")
    right.legend()
    return _save(figure, "migration_sweep.png")


def _draw_timeline(axes: Any, trial: Trial) -> None:
    """Draw the worst and the median response time of every quarter of a second."""
    responses, zero = trial.responses, trial.steady[0].began
    spent = (responses.readable - responses.entered) / 1e3
    bins = np.floor((responses.readable - zero) / 1e6 / _BIN_SECONDS).astype(np.int64)
    shown = np.unique(bins[bins >= 0])
    for aggregate, colour, label in ((np.max, _WORST, "worst"), (np.median, _MIDDLE, "median")):
        axes.plot(
            shown * _BIN_SECONDS,
            [aggregate(spent[bins == one]) for one in shown],
            ".-",
            ms=3,
            color=colour,
            label=label,
        )
    for move in trial.moves:
        for window, colour in ((move.window, _MIGRATION), (move.moving, _MOVING)):
            axes.axvspan((window.began - zero) / 1e6, (window.ended - zero) / 1e6, color=colour, zorder=0)
    axes.axhline(FLINK_PEAK_MS, color="grey", lw=0.8, ls=":", label="peak of Flink 2.3 at 200 MB")
    axes.set(yscale="log", title=trial.name, ylabel="ms")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_minor_formatter(mpl.ticker.NullFormatter())
    axes.set_xlim(left=0)


def _draw_phases(axes: Any, trial: Trial) -> None:
    before, *_, after = trial.steady
    found = [
        summarise_entered(trial.responses, before),
        *(summarise_affected(trial.responses, move.window) for move in trial.moves),
        summarise_entered(trial.responses, after),
    ]
    places = ["before", "out", "back", "after"]
    for name, colour in (("peak", "#dddddd"), ("p99", _WORST), ("p50", _MIDDLE)):
        axes.bar(places, [getattr(one, name) for one in found], color=colour, label=name)


def _load_pyplot() -> Any:
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    return plt


def _save(figure: Any, name: str) -> Path:
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / name
    figure.savefig(path, dpi=110)
    return path
