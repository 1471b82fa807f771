"""Simulate policies: draw node counts from a matrix, and measure the state that every migration moves."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from mdp.kernels.additive import stay
from mdp.kernels.paths import Floats, Ints
from mdp.matrix import TransitionMatrix
from mdp.process import DecisionProcess
from mdp.workers import LocalWorkers, Workers
from migration.kernels.shared import band

Policy = Callable[[Ints, int], Ints]
"""From the current boundaries and the next node count to the next boundaries."""


def draw_node_counts(matrix: TransitionMatrix, migrations: int, rng: np.random.Generator) -> list[int]:
    """Draw a first node count uniformly, then the node count after every migration."""
    cumulated = np.cumsum(matrix.probabilities, axis=1)
    cumulated /= cumulated[:, -1:]
    places = [int(rng.integers(len(matrix.nodes)))]
    for chance in rng.random(migrations):
        places.append(int(np.searchsorted(cumulated[places[-1]], chance, side="right")))
    return [matrix.nodes[place] for place in places]


def walk(process: DecisionProcess, policy: Policy, node_counts: Sequence[int]) -> Iterator[tuple[Ints, float]]:
    """Yield the boundaries after every migration, and the state it moved; starts with the rightmost partition."""
    state, total = process.workload.state_prefix, process.workload.total_state
    boundaries = rightmost_partition(process, node_counts[0])
    for nodes in node_counts[1:]:
        chosen = policy(boundaries, nodes)
        yield chosen, total - stay(state, boundaries, chosen)
        boundaries = chosen


def simulate(process: DecisionProcess, policy: Policy, node_counts: Sequence[int]) -> Floats:
    """The state that every migration of `walk` moved."""
    return np.array([moved for _, moved in walk(process, policy, node_counts)])


def rightmost_partition(process: DecisionProcess, nodes: int) -> Ints:
    """A balanced partition: every node takes as many tasks as it may and as the nodes after it can spare."""
    return band(process.first[nodes], nodes, False)[1]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Policies by name: the share of all state that a migration moved, one mean per sequence of node counts.

    All policies see the same sequences, so their differences are more precise than their means.
    """

    moved: Mapping[str, Floats]

    def mean(self, policy: str) -> float:
        return float(self.moved[policy].mean())

    def standard_error(self, policy: str) -> float:
        """The standard error of the mean."""
        return _standard_error(self.moved[policy])

    def gain(self, policy: str, over: str = "ssm") -> float:
        """The share of the state moved by the other policy that this one saves; negative if it moves more."""
        other = self.mean(over)
        return 1 - self.mean(policy) / other if other else 0.0

    def gain_standard_error(self, policy: str, over: str = "ssm") -> float:
        """The standard error of the gain."""
        other = self.mean(over)
        return _standard_error((self.moved[over] - self.moved[policy]) / other) if other else 0.0


def compare(
    process: DecisionProcess,
    policies: Mapping[str, Policy],
    *,
    sequences: int = 40,
    migrations: int = 125,
    seed: int = 0,
    workers: Workers | None = None,
) -> Comparison:
    """Walk every policy along the same `sequences` of node counts, drawn from the matrix."""
    rng = np.random.default_rng(seed)
    drawn = [draw_node_counts(process.matrix, migrations, rng) for _ in range(sequences)]
    means = np.array((workers or LocalWorkers()).map(partial(_means, process, dict(policies)), drawn))
    total = process.workload.total_state or 1.0
    return Comparison({name: means[:, place] / total for place, name in enumerate(policies)})


def _means(process: DecisionProcess, policies: Mapping[str, Policy], node_counts: Sequence[int]) -> list[float]:
    return [float(simulate(process, policy, node_counts).mean()) for policy in policies.values()]


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
