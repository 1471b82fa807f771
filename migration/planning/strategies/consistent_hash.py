"""Consistent hashing as a baseline (Karger et al.; paper 003, sections 2 and 6)."""

import hashlib
import operator

import numpy as np
from numpy.typing import NDArray

from migration.errors import InvalidInput
from migration.model.mixing import GOLDEN_GAMMA, mix_numbers
from migration.model.scattered import ScatteredAssignment
from migration.planning.problem import Problem, Proposal, check_count

DEFAULT_VIRTUAL_NODES = 128  # points per node on the ring; more even out the task counts

_Hashes = NDArray[np.uint64]


def consistent_hash(problem: Problem, seed: int = 0, virtual_nodes: int = DEFAULT_VIRTUAL_NODES) -> Proposal:
    """Nodes and tasks are points on a ring; a task belongs to the next node point clockwise.

    Few tasks move when the node count changes, but it ignores work and state: the cap is reported, not enforced, and
    the result is scattered. When nodes must leave and none is named, the last ones do. The same seed and names give the
    same ring. O((n' * virtual_nodes + m) log).
    """
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise InvalidInput(f"seed is {seed!r}. Give a whole number.")
    seed = operator.index(seed)
    points_each = check_count(virtual_nodes, "virtual_nodes")
    nodes = (*problem.staying, *problem.joining)[: problem.node_count]
    points = np.concatenate([_points(seed, f"node {node}", points_each) for node in nodes])
    owner_of_point = np.repeat(np.arange(len(nodes)), points_each)
    order = np.argsort(points, kind="stable")
    tasks = _points(seed, "task", problem.workload.tasks)
    clockwise = np.searchsorted(points[order], tasks) % len(points)
    owners = owner_of_point[order][clockwise]
    reason = f"consistent hashing, seed {seed}, {points_each} points a node, whatever tasks weigh"
    return Proposal(ScatteredAssignment(nodes, tuple(owners.tolist())), reason)


def _points(seed: int, what: str, count: int) -> _Hashes:
    """Return `count` 64-bit points: the stream of SplitMix64 that starts at a hash of seed and name."""
    digest = hashlib.blake2b(f"{seed}/{what}".encode(), digest_size=8).digest()
    return mix_numbers(np.frombuffer(digest, np.uint64) + GOLDEN_GAMMA * np.arange(count, dtype=np.uint64))
