"""What experiments share: strategies that rebalance a synthetic stream, interval by interval."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from elastic.experiments.paper000.scale import FULL, ExperimentScale
from elastic.experiments.progress import ExperimentProgress, SilentProgress
from elastic.experiments.streams import MeanOfRuns, StreamSetting, follow_trajectory, propose
from migration.keys import KeyLoads
from migration.keys.bound import lower_bound
from migration.keys.loads import Nodes
from migration.keys.problem import KeyProblem


class Sample(NamedTuple):
    """One plan: its time, and shares of all state in per cent. `relaxed` plans exceed theta or the table."""

    milliseconds: float
    moved_percent: float
    bound_percent: float
    entries: int
    theta_reached: float
    relaxed: bool


class Mean(NamedTuple):
    """Means over the plans of several trajectories; the standard error is that of the trajectories' means."""

    milliseconds: float  # the median
    moved_percent: float
    moved_standard_error: float
    bound_percent: float
    entries: float
    theta_reached: float
    relaxed_percent: float


@dataclass(eq=False)
class Lab:
    """The same seed gives the same results, except for times."""

    scale: ExperimentScale = FULL
    seed: int = 0
    progress: ExperimentProgress = field(default_factory=SilentProgress)
    _cache: dict[Hashable, list[Sample]] = field(default_factory=dict, init=False, repr=False)

    def setting(self, **changes: Any) -> StreamSetting:
        """The default parameters with some changed."""
        names = ("keys", "nodes", "skew", "fluctuation", "window", "theta", "most_entries")
        return StreamSetting(**{name: changes.get(name, getattr(self.scale, name)) for name in names})

    def mean(self, strategy: str, setting: StreamSetting, options: Mapping[str, Any] | None = None) -> Mean:
        """Run a strategy along several trajectories; fewer and shorter ones for the most keys."""
        is_large = setting.keys >= self.scale.key_counts[-1]
        runs = self.scale.large_runs if is_large else self.scale.runs
        intervals = self.scale.large_intervals if is_large else self.scale.intervals
        return summarise([self.run(strategy, setting, intervals, number, options) for number in range(runs)])

    def run(
        self,
        strategy: str,
        setting: StreamSetting,
        intervals: int,
        number: int = 0,
        options: Mapping[str, Any] | None = None,
    ) -> list[Sample]:
        """Plan every interval of one trajectory; each strategy continues from its own assignment."""
        options = dict(options or {})
        key = strategy, setting, intervals, number, tuple(sorted(options.items()))
        if key not in self._cache:
            self.progress.status(f"{strategy}: {setting.keys:,} keys, {setting.nodes} nodes, trajectory {number + 1}")
            self._cache[key] = follow_trajectory(
                setting.workload(1_000 * self.seed + number),
                intervals,
                lambda loads: plan_once(loads, strategy, setting, options),
            )
        return self._cache[key]


def plan_once(
    loads: KeyLoads, strategy: str, setting: StreamSetting, options: Mapping[str, Any]
) -> tuple[Sample, Nodes]:
    """One plan with its time, relaxed where it has to be, and the node of every key after it."""
    problem = KeyProblem.of(loads, setting.nodes, setting.theta, setting.most_entries)
    proposal, relaxed, milliseconds = propose(problem, strategy, options)
    destination = proposal.destination
    entries = int(np.count_nonzero(destination != loads.home))
    reached = float(problem.loads_of(destination).max()) / problem.mean - 1
    # No plan satisfies what had to be relaxed, so no number bounds it; the bound is that of the relaxed problem.
    answered = problem.with_most_entries(max(entries, problem.most_entries)).with_theta(max(problem.theta, reached))
    moved = float(loads.size[destination != loads.current].sum())
    sample = Sample(
        milliseconds,
        100 * moved / loads.total_size,
        100 * lower_bound(answered) / loads.total_size,
        entries,
        reached,
        relaxed or entries > setting.most_entries,
    )
    return sample, destination


def summarise(trajectories: Sequence[Sequence[Sample]]) -> Mean:
    every = [sample for samples in trajectories for sample in samples]
    return Mean(
        float(np.median([sample.milliseconds for sample in every])),
        *MeanOfRuns.of([[sample.moved_percent for sample in samples] for samples in trajectories]),
        float(np.mean([sample.bound_percent for sample in every])),
        float(np.mean([sample.entries for sample in every])),
        float(np.mean([sample.theta_reached for sample in every])),
        100 * float(np.mean([sample.relaxed for sample in every])),
    )
