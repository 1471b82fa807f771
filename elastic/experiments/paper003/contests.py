"""Run policies and baselines on the same node counts: the state each migration moves, and the heaviest load."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Self

import numpy as np

from mdp.kernels.paths import Floats
from mdp.process import DecisionProcess
from mdp.progress import ignore_progress
from mdp.simulate import Comparison, Policy, walk
from mdp.workers import LocalWorkers
from migration import Assignment, Ownership, Plan, Workload, plan
from migration.model.plan import RELATIVE_EPSILON

EVEN, RING, SSM = "even", "consistent-hash", "ssm"
ONE_STEP, TWO_STEPS, EXACT = "one step", "two steps", "exact"


class Trace(NamedTuple):
    """Per migration along a sequence of node counts: the share of state moved, and the heaviest load over the mean."""

    moved: Floats
    heaviest: Floats


Contender = Callable[[Sequence[int], int], Trace]
"""From node counts, and the number of their sequence, to a trace."""


def follow_policy(process: DecisionProcess, policy: Policy) -> Contender:
    """A contender that follows a policy over boundaries, from the rightmost balanced partition."""

    def run(node_counts: Sequence[int], _number: int) -> Trace:
        work, total = process.workload.work_prefix, process.workload.total_state
        moved, heaviest = [], []
        for boundaries, state in walk(process, policy, node_counts):
            moved.append(state / total)
            heaviest.append((len(boundaries) - 1) * np.diff(work[boundaries]).max() / work[-1])
        return Trace(np.array(moved), np.array(heaviest))

    return run


def baselines(workload: Workload) -> dict[str, Contender]:
    """Strategies that ignore work and state, and so tau.

    Each continues from its own decisions. Every sequence has its own ring, so means are over rings, too.
    """
    return {
        EVEN: lambda counts, _number: _follow_strategy(
            workload, counts, lambda now, n: plan(now, n, workload, strategy=EVEN)
        ),
        RING: lambda counts, number: _follow_strategy(
            workload, counts, lambda now, n: plan(now, n, workload, strategy=RING, seed=number)
        ),
    }


def _follow_strategy(workload: Workload, node_counts: Sequence[int], step: Callable[[Ownership, int], Plan]) -> Trace:
    now: Ownership = step(Assignment.even(workload.tasks, node_counts[0]), node_counts[0]).target
    moved, heaviest = [], []
    for nodes in node_counts[1:]:
        made = step(now, nodes)
        now = made.target
        moved.append(made.cost_share)
        heaviest.append(nodes * made.heaviest.work / workload.total_work)
    return Trace(np.array(moved), np.array(heaviest))


@dataclass(frozen=True, eq=False)
class Contest:
    """The traces of every contender, one per sequence; all contenders see the same sequences."""

    traces: Mapping[str, Sequence[Trace]]

    @classmethod
    def run(
        cls,
        contenders: Mapping[str, Contender],
        sequences: Sequence[Sequence[int]],
        on_done: Callable[[int], None] = ignore_progress,
    ) -> Self:
        found = LocalWorkers().map(partial(_all, contenders), list(enumerate(sequences)), on_done)
        return cls({name: [traces[name] for traces in found] for name in contenders})

    @classmethod
    def concatenate(cls, contests: Sequence[Self]) -> Self:
        """Concatenate contests of the same contenders on several lists of sequences."""
        return cls({name: [one for contest in contests for one in contest.traces[name]] for name in contests[0].traces})

    def merge(self, other: "Contest") -> "Contest":
        """Add other contenders on the same sequences."""
        return Contest({**self.traces, **other.traces})

    def comparison(self, block: int | None = None) -> Comparison:
        """Means per sequence, or per `block` of consecutive migrations if there are few sequences."""
        return Comparison({name: _means(traces, block) for name, traces in self.traces.items()})

    @property
    def migrations(self) -> int:
        """The number of migrations per contender."""
        return sum(len(trace.moved) for trace in next(iter(self.traces.values())))

    def heaviest(self, name: str) -> float:
        """The load of the heaviest node over the mean, averaged over migrations."""
        return float(np.concatenate([trace.heaviest for trace in self.traces[name]]).mean())

    def above_cap(self, name: str, tau: float) -> float:
        """The share of migrations after which some node carried more than (1 + tau) times the mean."""
        loads = np.concatenate([trace.heaviest for trace in self.traces[name]])
        return float((loads > (1 + tau) * (1 + RELATIVE_EPSILON)).mean())


def _all(contenders: Mapping[str, Contender], numbered: tuple[int, Sequence[int]]) -> dict[str, Trace]:
    number, node_counts = numbered
    return {name: contender(node_counts, number) for name, contender in contenders.items()}


def _means(traces: Sequence[Trace], block: int | None) -> Floats:
    if block is None:
        return np.array([trace.moved.mean() for trace in traces])
    return np.array(
        [
            part.mean()
            for trace in traces
            for part in np.array_split(trace.moved, max(1, round(len(trace.moved) / block)))
        ]
    )


class CapturedShare(NamedTuple):
    mean: float
    standard_error: float


def captured_share(found: Comparison, policy: str = TWO_STEPS) -> CapturedShare | None:
    """(ssm - policy) / (ssm - exact) of the means, with the jackknife's standard error; None if nothing is saved.

    A ratio of two sums over the same sequences: leaving out one sequence after the other shows how much it varies.
    """
    ours = found.moved[SSM] - found.moved[policy]
    best = found.moved[SSM] - found.moved[EXACT]
    if best.mean() <= 0:
        return None
    count = len(best)
    without = (ours.sum() - ours) / (best.sum() - best) if count > 1 else np.zeros(1)
    spread = np.sqrt((count - 1) / count * ((without - without.mean()) ** 2).sum())
    return CapturedShare(float(ours.sum() / best.sum()), float(spread))
