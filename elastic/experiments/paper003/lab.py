"""What experiments share: workloads, matrices, sequences, and cached projections."""

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from elastic.experiments.paper003.contests import EXACT, SSM, TWO_STEPS, Contender, Contest, follow_policy
from elastic.experiments.paper003.matrices import MonthSplit, learn_from_all, split_months
from elastic.experiments.paper003.scale import FULL, ExperimentScale
from elastic.experiments.paper003.workloads import WORKLOADS
from elastic.experiments.progress import ExperimentProgress, SilentProgress
from mdp.approximate import Foresight, Lookahead, train
from mdp.exact import project_exactly
from mdp.exact.values import ExactValues
from mdp.learning import Log
from mdp.matrix import TransitionMatrix
from mdp.process import DecisionProcess
from mdp.progress import SweepProgress, TrainingProgress
from mdp.simulate import Policy, draw_node_counts
from migration import Workload


class ExactPolicy(NamedTuple):
    """The policy of exact values; `error` is proven, a share of all state."""

    policy: Policy
    error: float
    sweeps: int
    seconds: float


class ApproximatePolicies(NamedTuple):
    """The policies of a trained additive value, with nothing proven."""

    one_step: Policy
    two_steps: Policy
    seconds: float


class MtmAwarePolicy(NamedTuple):
    """The best policy that is feasible, and its method."""

    method: str
    policy: Policy
    seconds: float
    sweeps: int | None
    error: float | None


@dataclass(eq=False)
class Lab:
    """Inputs and projections that several experiments use. The same seed gives the same results, except for times."""

    logs: Mapping[str, Log]
    scale: ExperimentScale = FULL
    seed: int = 0
    progress: ExperimentProgress = field(default_factory=SilentProgress)
    _cache: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def split_months(self) -> list[MonthSplit]:
        return [split_months(name, log, self.scale.low, self.scale.high) for name, log in self.logs.items()]

    @cached_property
    def matrix(self) -> TransitionMatrix:
        """Learned from the first months of all logs."""
        return learn_from_all(self.split_months, self.scale.low, self.scale.high)

    def workload(self, kind: str = "log-normal", tasks: int | None = None) -> Workload:
        return WORKLOADS[kind](tasks or self.scale.tasks, self.seed)

    def process(
        self, workload: Workload, matrix: TransitionMatrix, tau: float | None = None, gamma: float | None = None
    ) -> DecisionProcess:
        """With relaxed caps: at tau 0.1 many node counts have no balanced partition."""
        return DecisionProcess(
            workload,
            matrix,
            self.scale.tau if tau is None else tau,
            self.scale.gamma if gamma is None else gamma,
            relax=True,
        )

    def sequences(self, matrix: TransitionMatrix, count: int | None = None) -> list[list[int]]:
        """Node counts drawn from a matrix: the same for all policies, and for all tau and gamma."""
        rng = np.random.default_rng([self.seed, 4])
        return [draw_node_counts(matrix, self.scale.migrations, rng) for _ in range(count or self.scale.sequences)]

    def run_contest(self, contenders: Mapping[str, Contender], sequences: Sequence[Sequence[int]]) -> Contest:
        return Contest.run(
            contenders, sequences, lambda done: self.progress.status(f"walked {done} of {len(sequences)} sequences")
        )

    def ssm(self, process: DecisionProcess) -> dict[str, Contender]:
        return {SSM: follow_policy(process, Foresight(process))}

    def mtm_aware(self, process: DecisionProcess) -> MtmAwarePolicy:
        """Exact values if there are few enough partitions, else two steps of foresight."""
        if total_partitions(process) <= self.scale.most_exact:
            exact = self.exact(process)
            return MtmAwarePolicy(EXACT, exact.policy, exact.seconds, exact.sweeps, exact.error)
        approximate = self.approximate(process)
        return MtmAwarePolicy(TWO_STEPS, approximate.two_steps, approximate.seconds, None, None)

    def exact(self, process: DecisionProcess) -> ExactPolicy:
        key = EXACT, *_key(process)
        if key not in self._cache:
            self._cache[key] = self._project(process)
        return cast(ExactPolicy, self._cache[key])

    def approximate(self, process: DecisionProcess) -> ApproximatePolicies:
        key = TWO_STEPS, *_key(process)
        if key not in self._cache:
            self._cache[key] = self._train(process)
        return cast(ApproximatePolicies, self._cache[key])

    def _project(self, process: DecisionProcess) -> ExactPolicy:
        began = time.perf_counter()
        rounds, samples, sequences = self.scale.training
        start = train(  # as `project` does
            process, rounds=min(2, rounds), samples=samples, sequences=min(8, sequences), seed=self.seed
        )
        found = project_exactly(process, start=start.starting_terms(), progress=self._report_sweep)
        seconds = time.perf_counter() - began
        return ExactPolicy(ExactValues.fit(process, found.values), found.relative_error, found.sweeps, seconds)

    def _train(self, process: DecisionProcess) -> ApproximatePolicies:
        began = time.perf_counter()
        rounds, samples, sequences = self.scale.training
        additive = train(
            process, rounds=rounds, samples=samples, sequences=sequences, seed=self.seed, progress=self._report_round
        ).additive
        seconds = time.perf_counter() - began
        return ApproximatePolicies(Foresight(process, additive), Lookahead(process, additive), seconds)

    def _report_sweep(self, sweep: SweepProgress) -> None:
        error = "" if sweep.error is None else f", proven error {sweep.error:.2%} of all state"
        self.progress.status(f"exact values: sweep {sweep.sweep}, {sweep.done / max(sweep.blocks, 1):.0%}{error}")

    def _report_round(self, done: TrainingProgress) -> None:
        self.progress.status(f"training: round {done.round} of {done.rounds}, a migration moves {done.moved:.2%}")


def total_partitions(process: DecisionProcess) -> int:
    return sum(process.partitions().values())


def _key(process: DecisionProcess) -> tuple[Hashable, ...]:
    return process.workload, process.matrix, process.tau, process.gamma
