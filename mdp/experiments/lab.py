"""What experiments share: workloads, matrices, sequences, and projections that are made once."""

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from mdp.approximate import Foresight, Lookahead, train
from mdp.approximate import Progress as TrainingProgress
from mdp.exact import Progress as SweepProgress
from mdp.exact import project_exactly
from mdp.exact.values import ExactValues
from mdp.experiments.contests import SSM, Contender, Contest, following
from mdp.experiments.matrices import Months, learned_from_all, months
from mdp.experiments.progress import Progress, Unwatched
from mdp.experiments.scale import FULL, Scale
from mdp.experiments.workloads import WORKLOADS
from mdp.learning import Log
from mdp.matrix import TransitionMatrix
from mdp.process import DecisionProcess
from mdp.simulate import Policy, draw_node_counts
from migration import Workload

EXACT, ONE_STEP, TWO_STEPS = "exact", "one step", "two steps"


class Exact(NamedTuple):
    """The policy of exact values; `error` is proven, a share of all state."""

    policy: Policy
    error: float
    sweeps: int
    seconds: float


class Approximate(NamedTuple):
    """The policies of a trained additive value, with nothing proven."""

    one_step: Policy
    two_steps: Policy
    seconds: float


class MtmAware(NamedTuple):
    """The better of the two that can be had, and by which method."""

    method: str
    policy: Policy
    seconds: float
    sweeps: int | None
    error: float | None


@dataclass(eq=False)
class Lab:
    """Everything that two experiments would otherwise make twice. The same seed makes the same of all but times."""

    logs: Mapping[str, Log]
    scale: Scale = FULL
    seed: int = 0
    progress: Progress = field(default_factory=Unwatched)
    _made: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def months(self) -> list[Months]:
        return [months(name, log, self.scale.low, self.scale.high) for name, log in self.logs.items()]

    @cached_property
    def matrix(self) -> TransitionMatrix:
        """Learned from the first months of all logs."""
        return learned_from_all(self.months, self.scale.low, self.scale.high)

    def workload(self, kind: str = "log-normal", tasks: int | None = None) -> Workload:
        return WORKLOADS[kind](tasks or self.scale.tasks, self.seed)

    def process(
        self, workload: Workload, matrix: TransitionMatrix, tau: float | None = None, gamma: float | None = None
    ) -> DecisionProcess:
        """Caps that nothing fits under are relaxed: at tau 0.1 many node counts have no balanced partition."""
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

    def contest(self, contenders: Mapping[str, Contender], sequences: Sequence[Sequence[int]]) -> Contest:
        return Contest.held(
            contenders, sequences, lambda done: self.progress.status(f"walked {done} of {len(sequences)} sequences")
        )

    def ssm(self, process: DecisionProcess) -> dict[str, Contender]:
        return {SSM: following(process, Foresight(process))}

    def mtm_aware(self, process: DecisionProcess) -> MtmAware:
        """By exact values where there are few enough partitions, else with two steps of foresight."""
        if partitions_of(process) <= self.scale.most_exact:
            exact = self.exact(process)
            return MtmAware(EXACT, exact.policy, exact.seconds, exact.sweeps, exact.error)
        approximate = self.approximate(process)
        return MtmAware(TWO_STEPS, approximate.two_steps, approximate.seconds, None, None)

    def exact(self, process: DecisionProcess) -> Exact:
        key = EXACT, *_key(process)
        if key not in self._made:
            self._made[key] = self._projected(process)
        return cast(Exact, self._made[key])

    def approximate(self, process: DecisionProcess) -> Approximate:
        key = TWO_STEPS, *_key(process)
        if key not in self._made:
            self._made[key] = self._trained(process)
        return cast(Approximate, self._made[key])

    def _projected(self, process: DecisionProcess) -> Exact:
        began = time.perf_counter()
        rounds, samples, sequences = self.scale.training
        start = train(  # as `project` does
            process, rounds=min(2, rounds), samples=samples, sequences=min(8, sequences), seed=self.seed
        )
        found = project_exactly(process, start=start.starting_terms(), progress=self._tell_sweep)
        seconds = time.perf_counter() - began
        return Exact(ExactValues.fitted(process, found.values), found.relative_error, found.sweeps, seconds)

    def _trained(self, process: DecisionProcess) -> Approximate:
        began = time.perf_counter()
        rounds, samples, sequences = self.scale.training
        additive = train(
            process, rounds=rounds, samples=samples, sequences=sequences, seed=self.seed, progress=self._tell_round
        ).additive
        seconds = time.perf_counter() - began
        return Approximate(Foresight(process, additive), Lookahead(process, additive), seconds)

    def _tell_sweep(self, told: SweepProgress) -> None:
        error = "" if told.error is None else f", proven error {told.error:.2%} of all state"
        self.progress.status(f"exact values: sweep {told.sweep}, {told.done / max(told.blocks, 1):.0%}{error}")

    def _tell_round(self, told: TrainingProgress) -> None:
        self.progress.status(f"training: round {told.round} of {told.rounds}, a migration moves {told.moved:.2%}")


def partitions_of(process: DecisionProcess) -> int:
    return sum(process.partitions().values())


def _key(process: DecisionProcess) -> tuple[Hashable, ...]:
    return process.workload, process.matrix, process.tau, process.gamma
