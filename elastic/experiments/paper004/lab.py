"""What experiments share: streams that are simulated under several policies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from elastic.experiments.paper004.scale import FULL, ExperimentScale
from elastic.experiments.paper004.streams import MILLISECOND, Setting
from elastic.experiments.progress import ExperimentProgress, SilentProgress
from elastic.routing.shuffle import SketchShape
from elastic.routing.shuffle.simulation import (
    FULL_KNOWLEDGE,
    READINGS,
    ROUND_ROBIN,
    Reading,
    SimulationResult,
    simulate,
)
from elastic.routing.shuffle.sketch import Floats

BEST_1024 = "best-1024"
POLICIES: Mapping[str, str | Reading] = {
    ROUND_ROBIN: ROUND_ROBIN,
    "text": "text",
    "rec": "rec",
    BEST_1024: replace(READINGS["best"], window=READINGS["text"].window),
    "best": "best",
    FULL_KNOWLEDGE: FULL_KNOWLEDGE,
}


class Comparison(NamedTuple):
    """A policy over several streams: mean completion times in milliseconds, and how much faster than round-robin.

    The speed-up is that of all streams together; the least and the most are those of single streams.
    """

    mean_ms: float
    min_ms: float
    max_ms: float
    speedup: float
    least_speedup: float
    most_speedup: float


@dataclass(eq=False)
class Lab:
    """The same seed gives the same results."""

    scale: ExperimentScale = FULL
    seed: int = 0
    progress: ExperimentProgress = field(default_factory=SilentProgress)

    def setting(self, **changes: Any) -> Setting:
        """The default parameters with some changed."""
        return replace(Setting(self.scale.rows, self.scale.items), **changes)

    def simulate(self, setting: Setting, policy: str, number: int = 0, delay: float = 0.0) -> SimulationResult:
        """Simulate stream `number` of a setting under one policy."""
        return self._simulate_all(setting, [policy], number, delay)[policy]

    def compare(
        self, setting: Setting, policies: Sequence[str], streams: int | None = None
    ) -> Mapping[str, Comparison]:
        """Simulate several streams under each policy, and round-robin."""
        means: dict[str, list[float]] = {policy: [] for policy in (ROUND_ROBIN, *policies)}
        for number in range(streams or self.scale.streams):
            for policy, result in self._simulate_all(setting, list(means), number).items():
                means[policy].append(result.mean_completion / MILLISECOND)
        rows = {policy: np.array(values) for policy, values in means.items()}
        return {policy: summarise(values, rows[ROUND_ROBIN]) for policy, values in rows.items()}

    def _simulate_all(
        self, setting: Setting, policies: Sequence[str], number: int, delay: float = 0.0
    ) -> dict[str, SimulationResult]:
        seed = 1_000 * self.seed + number
        stream, shape = setting.stream(seed), SketchShape.of_precision(setting.epsilon, seed=seed)
        return {policy: simulate(stream, POLICIES[policy], shape, delay=delay) for policy in policies}


def summarise(means: Floats, round_robin: Floats) -> Comparison:
    """Compare the mean completion times of streams with those of round-robin on the same streams."""
    ratios = round_robin / means
    return Comparison(
        float(means.mean()),
        float(means.min()),
        float(means.max()),
        float(round_robin.sum() / means.sum()),
        float(ratios.min()),
        float(ratios.max()),
    )
