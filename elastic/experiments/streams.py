"""Shared by the experiments with synthetic streams of keys: the parameters of a stream, and plans with their times."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from migration.keys import KEY_STRATEGIES, KeyLoads, plan_keys
from migration.keys.loads import Nodes
from migration.keys.problem import KeyProblem, KeyProposal, NotPlaced
from migration.keys.workloads import KeyWorkload

MILLISECOND = 1e-3

Sample = TypeVar("Sample")


@dataclass(frozen=True)
class StreamSetting:
    """The parameters of a trajectory; see Table II of paper 000."""

    keys: int
    nodes: int
    skew: float
    fluctuation: float
    window: int
    theta: float
    most_entries: int

    def workload(self, seed: int) -> KeyWorkload:
        return KeyWorkload.zipf(self.keys, self.nodes, self.skew, self.fluctuation, self.window, seed)


def follow_trajectory(
    workload: KeyWorkload, intervals: int, plan_interval: Callable[[KeyLoads], tuple[Sample, Nodes]]
) -> list[Sample]:
    """Plan every interval of a stream from the assignment of the one before, and return the samples of the plans.

    `plan_interval` returns a sample and the node of every key after its plan. The first plan, from the hashes alone, is
    not reported. The load of one node grows in every interval, and which one depends on the assignment.
    """
    current: Nodes | None = None
    samples = []
    for _ in range(intervals + 1):
        sample, current = plan_interval(workload.loads(current))
        samples.append(sample)
        workload = workload.advance(current)
    return samples[1:]


class MeanOfRuns(NamedTuple):
    """The mean of the means of several runs, and its standard error; 0 for one run."""

    mean: float
    standard_error: float

    @classmethod
    def of(cls, runs: Sequence[Sequence[float]]) -> "MeanOfRuns":
        means = np.array([np.mean(values) for values in runs])
        return cls(float(means.mean()), float(means.std(ddof=1) / np.sqrt(len(means))) if len(means) > 1 else 0.0)


class TimedProposal(NamedTuple):
    """The proposal of a strategy, whether theta had to be relaxed for it, and the time."""

    proposal: KeyProposal
    relaxed: bool
    milliseconds: float


def propose(problem: KeyProblem, strategy: str, options: Mapping[str, Any]) -> TimedProposal:
    """Run a strategy once, with the smallest theta that works where the problem's is too small."""
    began = time.perf_counter()
    try:
        proposal, relaxed = KEY_STRATEGIES[strategy](problem, **options), False
    except NotPlaced:
        proposal, relaxed = _relax(problem, strategy, options), True
    return TimedProposal(proposal, relaxed, (time.perf_counter() - began) / MILLISECOND)


def _relax(problem: KeyProblem, strategy: str, options: Mapping[str, Any]) -> KeyProposal:
    loads, standbys = problem.loads, problem.standbys
    limits = problem.theta, strategy, problem.most_entries
    plan = plan_keys(loads, problem.nodes, *limits, relax=True, standbys=standbys, **options)
    if standbys is not None:
        destination, places = plan.entries.route(loads.hashes, loads.home, standbys.home)
        return KeyProposal(destination, plan.reason, standbys=places)
    destination = np.array(loads.current)
    destination[np.searchsorted(loads.hashes, plan.moves.hashes)] = plan.moves.targets
    return KeyProposal(destination, plan.reason)
