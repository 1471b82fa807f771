"""The goals of a migration, next to the measured values."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from benchmarks.migration.engines import SPARK
from benchmarks.migration.measures import measure_silence, summarise_affected, summarise_entered
from benchmarks.migration.throughput import PACED, SATURATED, Throughput
from benchmarks.migration.trial import Trial

DEFAULT_MODE = "progressive"
WARM = "warm"
LARGE_STATE_MB = 1_000.0
Speeds = Mapping[tuple[str, str], Throughput]  # by mode and load
# Worst values of Flink 2.3 rescaling a job of 200 MB with its adaptive scheduler on two cores.
FLINK_SILENCE_SECONDS = 1.6
FLINK_PEAK_MS = 3_300.0


class Goal(NamedTuple):
    """`found` must not exceed `limit`, both in `unit`; NaN if it was not measured."""

    what: str
    found: float
    limit: float
    unit: str

    @property
    def verdict(self) -> str:
        if math.isnan(self.found) or math.isnan(self.limit):
            return "not measured"
        return "met" if self.found <= self.limit else "missed"


def list_goals(trials: Mapping[str, Trial], speeds: Speeds) -> list[Goal]:
    """Return the goals of the default mode, which must have a trial."""
    default = trials[DEFAULT_MODE]
    silence = find_longest_silence(default)
    during = max(summarise_affected(default.responses, move.window).p99 for move in default.moves)
    steady = summarise_entered(default.responses, default.steady[0]).p99
    lost = {load: 100 * (1 - found.share) for (mode, load), found in speeds.items() if mode == DEFAULT_MODE}
    return [
        Goal("longest silence of tasks that do not move", silence, 1.0, "s"),
        Goal("p99 during a migration, against twice the steady p99", during, 2 * steady, "ms"),
        Goal(
            "peak, against a twentieth of Spark's own way",
            find_peak(trials, DEFAULT_MODE),
            find_peak(trials, SPARK) / 20,
            "ms",
        ),
        Goal(
            "peak, against a tenth of restart", find_peak(trials, DEFAULT_MODE), find_peak(trials, "restart") / 10, "ms"
        ),
        Goal("peak, against Flink 2.3", find_peak(trials, DEFAULT_MODE), FLINK_PEAK_MS, "ms"),
        Goal("silence, against Flink 2.3", silence, FLINK_SILENCE_SECONDS, "s"),
        Goal("throughput lost in migrations, paced", lost.get(PACED, math.nan), 10.0, "%"),
        Goal("throughput lost in migrations, saturated", lost.get(SATURATED, math.nan), 10.0, "%"),
    ]


def list_warm_goals(trial: Trial, speeds: Speeds, state_mb: float) -> list[Goal]:
    """Return the goals of warm hand-overs, which should not be noticed; steady is all time without a migration."""
    steady = [summarise_entered(trial.responses, window) for window in trial.steady]
    during = [summarise_affected(trial.responses, move.window) for move in trial.moves]
    times = 2.0 if state_mb >= LARGE_STATE_MB else 1.5
    kept = {load: 100 * found.share for (mode, load), found in speeds.items() if mode == trial.name}
    return [
        Goal(
            "p99 during a migration, against 1.2 times the steady p99",
            max(one.p99 for one in during),
            1.2 * max(one.p99 for one in steady),
            "ms",
        ),
        Goal(
            f"peak during a migration, against {times:g} times the steady peak",
            max(one.peak for one in during),
            times * max(one.peak for one in steady),
            "ms",
        ),
        Goal("throughput lost in migrations, paced", 100 - kept.get(PACED, math.nan), 5.0, "%"),
        Goal("throughput lost in migrations, saturated", 100 - kept.get(SATURATED, math.nan), 10.0, "%"),
    ]


def find_longest_silence(trial: Trial) -> float:
    """Return the longest time without readable results of tasks that do not move."""
    return max(measure_silence(trial.responses, move.stays, move.window).readable for move in trial.moves)


def find_peak(trials: Mapping[str, Trial], name: str) -> float:
    if name not in trials:
        return math.nan
    trial = trials[name]
    return max(summarise_affected(trial.responses, move.window).peak for move in trial.moves)
