"""Measure the quality of an approximate projection on a smaller instance that has exact values."""

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
    def captured_share(self) -> float:
        """The share of the saving of exact values over `ssm` that the approximation reaches; 1 if nothing is saved."""
        saved = self.comparison.gain("exact")
        return self.comparison.gain("two steps") / saved if saved > 0 else 1.0

    def to_dict(self) -> dict[str, Any]:
        moved = {policy: self.comparison.mean(policy) for policy in self.comparison.moved}
        return {"tasks": self.tasks, "partitions": self.partitions, "moved": moved, "captured": self.captured_share}


def merge_tasks(workload: Workload, tasks: int) -> Workload:
    """Merge neighbouring tasks until `tasks` are left, as evenly as their number allows."""
    starts = np.arange(tasks) * workload.tasks // tasks
    return Workload(np.add.reduceat(workload.work, starts), np.add.reduceat(workload.state, starts))


def reduce_process(process: DecisionProcess, most: int = REDUCED_PARTITIONS) -> DecisionProcess:
    """The same process on fewer tasks: as many as leave at most `most` balanced partitions."""
    for tasks in range(min(process.tasks, 64), process.nodes[-1], -1):
        smaller = DecisionProcess(
            merge_tasks(process.workload, tasks), process.matrix, process.tau, process.gamma, relax=True
        )
        if sum(smaller.partitions().values()) <= most:
            return smaller
    return DecisionProcess(
        merge_tasks(process.workload, process.nodes[-1]), process.matrix, process.tau, process.gamma, relax=True
    )


def find_exact_policy(
    process: DecisionProcess, *, error: float = _EXACT_ERROR, workers: Workers | None = None
) -> Policy:
    """Project exactly, and return the policy of the values."""
    found = project_exactly(process, error=error, workers=workers)
    return ExactValues.fit(process, found.values)


def measure_quality(process: DecisionProcess, *, terms: str = "both", seed: int = 0) -> Quality:
    """Compare exact and approximate values on the reduced instance, on the same sequences of node counts."""
    smaller = reduce_process(process)
    additive = train(smaller, terms=terms, seed=seed).additive
    policies: dict[str, Policy] = {
        "ssm": Foresight(smaller),
        "one step": Foresight(smaller, additive),
        "two steps": Lookahead(smaller, additive),
        "exact": find_exact_policy(smaller),
    }
    return Quality(smaller.tasks, sum(smaller.partitions().values()), compare(smaller, policies, seed=seed + 1))
