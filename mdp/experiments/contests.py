"""Policies and baselines on the same node counts: what every migration moved, and how heavy the heaviest node was."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Self

import numpy as np

from mdp.kernels.paths import Floats
from mdp.process import DecisionProcess
from mdp.simulate import Comparison, Policy, walk
from mdp.workers import Here, ignored
from migration import Assignment, Ownership, Plan, Workload, plan
from migration.model.plan import RELATIVE_EPSILON

EVEN, RING, SSM = "even", "consistent-hash", "ssm"


class Trace(NamedTuple):
    """Of every migration along some node counts: the share of state it moved, and the heaviest load over the mean."""

    moved: Floats
    heaviest: Floats


Contender = Callable[[Sequence[int], int], Trace]
"""From node counts, and the number of their sequence, to what happened."""


def following(process: DecisionProcess, policy: Policy) -> Contender:
    """A policy over boundaries, from the balanced partition with the rightmost ones."""

    def run(node_counts: Sequence[int], _number: int) -> Trace:
        work, total = process.workload.work_prefix, process.workload.total_state
        moved, heaviest = [], []
        for boundaries, state in walk(process, policy, node_counts):
            moved.append(state / total)
            heaviest.append((len(boundaries) - 1) * np.diff(work[boundaries]).max() / work[-1])
        return Trace(np.array(moved), np.array(heaviest))

    return run


def baselines(workload: Workload) -> dict[str, Contender]:
    """Strategies that look at neither work nor state, so that tau is nothing to them.

    Each is fed what it decided before. Every sequence has a ring of its own, so that the mean is one over rings, too.
    """
    return {
        EVEN: lambda counts, _number: _planned(workload, counts, lambda now, n: plan(now, n, workload, strategy=EVEN)),
        RING: lambda counts, number: _planned(
            workload, counts, lambda now, n: plan(now, n, workload, strategy=RING, seed=number)
        ),
    }


def _planned(workload: Workload, node_counts: Sequence[int], step: Callable[[Ownership, int], Plan]) -> Trace:
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
    """The traces of every contender, one a sequence; all contenders saw the same sequences."""

    traces: Mapping[str, Sequence[Trace]]

    @classmethod
    def held(
        cls,
        contenders: Mapping[str, Contender],
        sequences: Sequence[Sequence[int]],
        on_done: Callable[[int], None] = ignored,
    ) -> Self:
        found = Here().map(partial(_all, contenders), list(enumerate(sequences)), on_done)
        return cls({name: [traces[name] for traces in found] for name in contenders})

    @classmethod
    def joined(cls, contests: Sequence[Self]) -> Self:
        """Of the same contenders on several lists of sequences."""
        return cls({name: [one for contest in contests for one in contest.traces[name]] for name in contests[0].traces})

    def with_others(self, other: "Contest") -> "Contest":
        """Of more contenders on the same sequences."""
        return Contest({**self.traces, **other.traces})

    def comparison(self, block: int | None = None) -> Comparison:
        """Means a sequence, or a block of so many consecutive migrations where there are few sequences."""
        return Comparison({name: _means(traces, block) for name, traces in self.traces.items()})

    @property
    def migrations(self) -> int:
        """Of every contender."""
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
