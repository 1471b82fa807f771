"""How good an approximate projection is, told by a smaller instance on which exact values can be had."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mdp.approximate import Lookahead, train
from mdp.approximate.foresight import Foresight
from mdp.exact import project_exactly
from mdp.exact.values import ExactValues
from mdp.process import DecisionProcess
from mdp.simulate import Comparison, Policy, compare
from mdp.workers import Workers
from migration import Workload

REDUCED_PARTITIONS = 200_000  # exact in about ten seconds
_EXACT_ERROR = 0.003


@dataclass(frozen=True)
class Quality:
    """State moved by `ssm`, by the approximation and by exact values, on an instance with fewer tasks."""

    tasks: int
    partitions: int
    comparison: Comparison

    @property
    def captured(self) -> float:
        """The share of what exact values save over `ssm` that the approximation saves too; 1 if there is nothing."""
        saved = self.comparison.gain("exact")
        return self.comparison.gain("two steps") / saved if saved > 0 else 1.0

    def to_dict(self) -> dict[str, Any]:
        moved = {policy: self.comparison.mean(policy) for policy in self.comparison.moved}
        return {"tasks": self.tasks, "partitions": self.partitions, "moved": moved, "captured": self.captured}


def merged(workload: Workload, tasks: int) -> Workload:
    """Neighbouring tasks put together until `tasks` are left, as evenly as their number allows."""
    starts = np.arange(tasks) * workload.tasks // tasks
    return Workload(np.add.reduceat(workload.work, starts), np.add.reduceat(workload.state, starts))


def reduced(process: DecisionProcess, most: int = REDUCED_PARTITIONS) -> DecisionProcess:
    """The same process on fewer tasks, the most that leave at most so many balanced partitions."""
    for tasks in range(min(process.tasks, 64), process.nodes[-1], -1):
        smaller = DecisionProcess(
            merged(process.workload, tasks), process.matrix, process.tau, process.gamma, relax=True
        )
        if sum(smaller.partitions().values()) <= most:
            return smaller
    return DecisionProcess(
        merged(process.workload, process.nodes[-1]), process.matrix, process.tau, process.gamma, relax=True
    )


def exact_policy(process: DecisionProcess, *, error: float = _EXACT_ERROR, workers: Workers | None = None) -> Policy:
    """What exact values decide."""
    found = project_exactly(process, error=error, workers=workers)
    return ExactValues.fitted(process, found.values)


def measured(process: DecisionProcess, *, terms: str = "both", seed: int = 0) -> Quality:
    """Exact and approximate on the reduced instance, on the same sequences of node counts."""
    smaller = reduced(process)
    additive = train(smaller, terms=terms, seed=seed).additive
    policies: dict[str, Policy] = {
        "ssm": Foresight(smaller),
        "one step": Foresight(smaller, additive),
        "two steps": Lookahead(smaller, additive),
        "exact": exact_policy(smaller),
    }
    return Quality(smaller.tasks, sum(smaller.partitions().values()), compare(smaller, policies, seed=seed + 1))
