"""The picture: response times of all batches around all kills on one clock, one panel per kind of job."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import numpy as np

from benchmarks.failover.kills import Measured
from benchmarks.report import RESULTS

_BATCH, _KILL, _SERVING, _STEADY = "#33475b", "#c0392b", "#2e8b57", "#8a94a0"


def draw(measured: Mapping[str, Measured], path: Path = RESULTS / "failover.png") -> Path:
    """Draw a panel for each job: response times by arrival since the kill, and when all units served again."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(
        1, len(measured), figsize=(max(7.0, 4.2 * len(measured)), 4), layout="constrained", sharey=True, squeeze=False
    )
    for panel, (name, one) in zip(axes[0], measured.items(), strict=True):
        since, response = np.array(one.since_kill).T
        serving = [recovery.serving / 1e3 for recovery in one.recoveries]
        panel.scatter(since, response, s=10, color=_BATCH, alpha=0.6, linewidths=0)
        panel.axhline(np.quantile(one.steady, 0.99), color=_STEADY, lw=1, ls="--")
        panel.axvspan(0, float(np.median(serving)), color=_KILL, alpha=0.15, lw=0)
        panel.axvline(0, color=_KILL, lw=1)
        panel.set(xlabel="arrival of the batch, seconds since kill -9")
        panel.set_ylim(bottom=0)
        panel.set_title(f"with {name}: served again after {1e3 * np.median(serving):.0f} ms", fontsize=10, loc="left")
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
    axes[0][0].set_ylabel("response time, ms")
    figure.suptitle("Response time of every batch around kill -9 of a node (dashed: p99 before it)", fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path
