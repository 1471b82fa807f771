"""What experiments share: strategies that rebalance a synthetic stream of keys with standbys, interval by interval."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from elastic.experiments.paper002.scale import FULL, ExperimentScale
from elastic.experiments.progress import ExperimentProgress, SilentProgress
from elastic.experiments.streams import MeanOfRuns, StreamSetting, follow_trajectory, propose
from migration.keys import STANDBY_STRATEGIES, KeyLoads, KeyStandbys, hash_standbys
from migration.keys.key_plan import find_new_copies
from migration.keys.loads import Nodes
from migration.keys.problem import KeyProblem, KeyProposal
from migration.keys.standbys import NOWHERE, NodeRows
from migration.keys.workloads import KeyWorkload

Sample = dict[str, float]  # by column of `Mean`


class Mean(NamedTuple):
    """Means over the plans of several trajectories; per cents are of all state."""

    milliseconds: float  # the median
    moved_percent: float  # on the critical path
    moved_standard_error: float
    background_percent: float
    switches: float
    entries: float
    relaxed_percent: float


@dataclass(frozen=True)
class Setting(StreamSetting):
    """The parameters of a trajectory. `covered` keys of all have `count` standbys, by `next_node` on the next."""

    share: float
    covered: float = 1.0
    count: int = 1
    next_node: bool = False

    def standby_homes(self, workload: KeyWorkload) -> NodeRows:
        """Where standbys are by hash; a service level covers keys regardless of their work."""
        has_one = np.arange(self.keys) % 1_000 < 1_000 * self.covered
        if self.next_node:
            return np.where(has_one, (workload.home + 1) % self.nodes, NOWHERE)[:, None].astype(np.int32)
        return hash_standbys(workload.hashes, workload.home, self.nodes, self.count * has_one.astype(np.int32))


@dataclass(eq=False)
class Lab:
    """The same seed gives the same results, except for times."""

    scale: ExperimentScale = FULL
    seed: int = 0
    progress: ExperimentProgress = field(default_factory=SilentProgress)
    _cache: dict[Hashable, Mean] = field(default_factory=dict, init=False, repr=False)

    def setting(self, **changes: Any) -> Setting:
        """The default parameters with some changed."""
        names = ("keys", "nodes", "skew", "fluctuation", "window", "theta", "most_entries", "share")
        return Setting(**{**{name: getattr(self.scale, name) for name in names}, **changes})

    def mean(self, strategy: str, setting: Setting) -> Mean:
        """Run a strategy along several trajectories. Those that plan no standbys run without any."""
        key = strategy, setting
        if key not in self._cache:
            runs = 1 if setting.keys >= self.scale.large_keys else self.scale.runs
            self.progress.status(f"{strategy}: {setting.keys:,} keys, {setting.nodes} nodes")
            self._cache[key] = summarise(
                [run(strategy, setting, self.scale.intervals, 1_000 * self.seed + number) for number in range(runs)]
            )
        return self._cache[key]


def run(strategy: str, setting: Setting, intervals: int, seed: int) -> list[Sample]:
    """Plan every interval of one trajectory."""
    workload = setting.workload(seed)
    homes = setting.standby_homes(workload) if strategy in STANDBY_STRATEGIES else None
    places: NodeRows | None = None

    def plan_interval(loads: KeyLoads) -> tuple[Sample, Nodes]:
        nonlocal places
        standbys = None if homes is None else KeyStandbys(homes, places, setting.share)
        sample, proposal = _plan_once(loads, strategy, setting, standbys)
        places = proposal.standbys
        return sample, proposal.destination

    return follow_trajectory(workload, intervals, plan_interval)


def _plan_once(
    loads: KeyLoads, strategy: str, setting: Setting, standbys: KeyStandbys | None
) -> tuple[Sample, KeyProposal]:
    """One plan with its time; with the smallest theta that works where theta is too small."""
    problem = KeyProblem.of(loads, setting.nodes, setting.theta, setting.most_entries, None, standbys)
    proposal, relaxed, milliseconds = propose(problem, strategy, {})
    entries = len(problem.find_overrides(proposal.destination, proposal.standbys))
    background, switches = 0.0, 0
    if standbys is not None and proposal.standbys is not None:
        background = float(loads.size[find_new_copies(standbys, loads, proposal.standbys)[0]].sum())
        moved = np.flatnonzero(proposal.destination != loads.current)
        switches = int((standbys.current[moved] == proposal.destination[moved, None]).any(axis=1).sum())
    sample = {
        "milliseconds": milliseconds,
        "moved_percent": 100 * problem.critical_size(proposal.destination) / loads.total_size,
        "background_percent": 100 * background / loads.total_size,
        "switches": switches,
        "entries": entries,
        "relaxed_percent": 100.0 * (relaxed or entries > setting.most_entries),
    }
    return sample, proposal


def summarise(trajectories: list[list[Sample]]) -> Mean:
    every = [sample for samples in trajectories for sample in samples]

    def mean(name: str) -> float:
        return float(np.mean([sample[name] for sample in every]))

    return Mean(
        float(np.median([sample["milliseconds"] for sample in every])),
        *MeanOfRuns.of([[sample["moved_percent"] for sample in samples] for samples in trajectories]),
        mean("background_percent"),
        mean("switches"),
        mean("entries"),
        mean("relaxed_percent"),
    )
