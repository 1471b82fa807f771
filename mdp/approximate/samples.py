"""Partitions to learn from: where policies pass, what they could choose instead, and all others alike."""

from collections.abc import Mapping, Sequence
from functools import partial
from math import isqrt

import numpy as np

from mdp.approximate.foresight import Foresight
from mdp.approximate.stations import Stations
from mdp.kernels.additive import uniform_paths
from mdp.kernels.paths import Ints
from mdp.process import DecisionProcess
from mdp.workers import Workers
from migration.kernels.shared import band
from migration.planning.partitions import all_partitions, count_partitions

NEARBY = 6  # targets kept of every decision that is looked at
DECISIONS = 150  # partitions a node count whose decisions are looked at
LEAST_STATIONS = 30  # where policies hardly ever pass
MOST_PAIRS = 8_000_000  # of stations whose costs are kept: 64 MB


def most_stations(process: DecisionProcess) -> int:
    """So many a node count that the costs of all pairs can be kept."""
    pairs = sum(len(process.successors(nodes)) for nodes in process.nodes)
    return isqrt(MOST_PAIRS // max(pairs, 1))


def stations_of(
    foresight: Foresight,
    visited: Mapping[int, Sequence[Ints]],
    most: int,
    rng: np.random.Generator,
    workers: Workers,
) -> dict[int, Ints]:
    """Rows of boundaries by node count: all balanced partitions if they are at most `most`.

    Else those that were visited most, then the best targets of decisions on the way, those that are chosen nearly.
    """
    process = foresight.process
    seen = {nodes: _most_frequent(visited[nodes], nodes) for nodes in process.nodes}
    pairs = [(nodes, after) for nodes in process.nodes for after in process.successors(nodes)]
    nearby = workers.map(partial(_promising, foresight), [(seen[nodes][:DECISIONS], after) for nodes, after in pairs])
    found = {}
    for nodes in process.nodes:
        if count_partitions(process.first[nodes], nodes) <= most:
            found[nodes] = all_partitions(process.first[nodes], nodes)
            continue
        targets = [rows for (_, after), rows in zip(pairs, nearby, strict=True) if after == nodes]
        near = rng.permutation(np.concatenate([np.empty((0, nodes + 1), np.int64), *targets]))
        rest = uniform_partitions(process, nodes, LEAST_STATIONS, rng)[len(seen[nodes]) + len(near) :]
        found[nodes] = _distinct(np.concatenate((seen[nodes], near, rest)))[:most]
    return found


def others_than(stations: Stations, count: int, rng: np.random.Generator) -> dict[int, Ints]:
    """So many of all balanced partitions for every node count; none where all are stations."""
    process, found = stations.process, {}
    for nodes, rows in stations.rows.items():
        complete = len(rows) == count_partitions(process.first[nodes], nodes)
        found[nodes] = uniform_partitions(process, nodes, 0 if complete else count, rng)
    return found


def uniform_partitions(process: DecisionProcess, nodes: int, count: int, rng: np.random.Generator) -> Ints:
    """So many balanced partitions, each drawn from all of them alike."""
    first = process.first[nodes]
    low, high = band(first, nodes, False)
    furthest = np.searchsorted(first, np.arange(len(first)), side="right") - 1
    return uniform_paths(low, high, furthest, rng.random((count, nodes)))


def _promising(foresight: Foresight, question: tuple[Ints, int]) -> Ints:
    rows, after = question
    targets = [foresight.promising(row, after, NEARBY)[0] for row in rows]
    return np.concatenate([np.empty((0, after + 1), np.int64), *targets])


def _most_frequent(rows: Sequence[Ints], nodes: int) -> Ints:
    distinct, counts = np.unique(np.array(rows, np.int64).reshape(-1, nodes + 1), axis=0, return_counts=True)
    return np.ascontiguousarray(distinct[np.argsort(-counts, kind="stable")])


def _distinct(rows: Ints) -> Ints:
    """Every row once, where it comes first."""
    _, places = np.unique(rows, axis=0, return_index=True)
    return np.ascontiguousarray(rows[np.sort(places)])
