"""What the experiments with synthetic streams of keys share: the parameters of a stream, and one plan with its time."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from migration.keys import KEY_STRATEGIES, plan_keys
from migration.keys.problem import KeyProblem, KeyProposal, NotPlaced
from migration.keys.workloads import KeyWorkload

MILLISECOND = 1e-3


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


class TimedProposal(NamedTuple):
    """What a strategy proposes, whether theta had to be relaxed for it, and the time."""

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
