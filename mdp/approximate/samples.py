"""Partitions to learn from: where the policy of now leads, and all others alike."""

from collections.abc import Mapping, Sequence

import numpy as np

from mdp.kernels.additive import uniform_paths
from mdp.kernels.paths import Ints
from mdp.process import DecisionProcess
from migration.kernels.shared import band
from migration.planning.partitions import all_partitions, count_partitions

MOST_VISITED = 0.7  # of the samples: the others show what the policy does not


def samples_of(
    process: DecisionProcess, visited: Mapping[int, Sequence[Ints]], samples: int, rng: np.random.Generator
) -> dict[int, Ints]:
    """Rows of boundaries by node count: all balanced partitions if these are few, else some visited, some uniform."""
    found = {}
    for nodes in process.nodes:
        if count_partitions(process.first[nodes], nodes) <= samples:
            found[nodes] = all_partitions(process.first[nodes], nodes)
            continue
        seen = np.unique(np.array(visited[nodes], np.int64).reshape(-1, nodes + 1), axis=0)
        some = rng.permutation(seen)[: int(MOST_VISITED * samples)]
        found[nodes] = np.concatenate((some, uniform_partitions(process, nodes, samples - len(some), rng)))
    return found


def uniform_partitions(process: DecisionProcess, nodes: int, count: int, rng: np.random.Generator) -> Ints:
    """So many balanced partitions, each drawn from all of them alike."""
    first = process.first[nodes]
    low, high = band(first, nodes, False)
    furthest = np.searchsorted(first, np.arange(len(first)), side="right") - 1
    return uniform_paths(low, high, furthest, rng.random((count, nodes)))
