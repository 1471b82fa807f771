"""What a migration must reach, next to what it reached."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from benchmarks.migration.engines import SPARK
from benchmarks.migration.measures import silence, touched_by, within
from benchmarks.migration.throughput import PACED, SATURATED, Throughput
from benchmarks.migration.trial import Trial

OURS = "progressive"
Speeds = Mapping[tuple[str, str], Throughput]  # by mode and load
# Flink 2.3 rescaling a job of 200 MB with its adaptive scheduler on two cores, at worst.
FLINK_SILENCE_SECONDS = 1.6
FLINK_PEAK_MS = 3_300.0


class Goal(NamedTuple):
    """`found` must not be above `limit`; both in the goal's unit. Not a number where it was not measured."""

    what: str
    found: float
    limit: float
    unit: str

    @property
    def verdict(self) -> str:
        if math.isnan(self.found) or math.isnan(self.limit):
            return "not measured"
        return "met" if self.found <= self.limit else "missed"


def goals(trials: Mapping[str, Trial], speeds: Speeds) -> list[Goal]:
    """Those of the default mode, of which there must be a trial."""
    ours = trials[OURS]
    quiet = longest_silence(ours)
    during = max(touched_by(ours.responses, move.window).p99 for move in ours.moves)
    steady = within(ours.responses, ours.steady[0]).p99
    lost = {load: 100 * (1 - found.share) for (mode, load), found in speeds.items() if mode == OURS}
    return [
        Goal("longest silence of tasks that stay", quiet, 1.0, "s"),
        Goal("p99 during a move, against 2 times steady", during, 2 * steady, "ms"),
        Goal("peak, against a 20th of Spark's own way", peak(trials, OURS), peak(trials, SPARK) / 20, "ms"),
        Goal("peak, against a 10th of restart", peak(trials, OURS), peak(trials, "restart") / 10, "ms"),
        Goal("peak, against Flink 2.3", peak(trials, OURS), FLINK_PEAK_MS, "ms"),
        Goal("silence, against Flink 2.3", quiet, FLINK_SILENCE_SECONDS, "s"),
        Goal("throughput lost in migrations, paced", lost.get(PACED, math.nan), 10.0, "%"),
        Goal("throughput lost in migrations, saturated", lost.get(SATURATED, math.nan), 10.0, "%"),
    ]


def longest_silence(trial: Trial) -> float:
    """Of results that a consumer can read, in tasks that stay."""
    return max(silence(trial.responses, move.stays, move.window).readable for move in trial.moves)


def peak(trials: Mapping[str, Trial], name: str) -> float:
    if name not in trials:
        return math.nan
    trial = trials[name]
    return max(touched_by(trial.responses, move.window).peak for move in trial.moves)
