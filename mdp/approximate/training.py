"""Fitted policy iteration: learn an additive value from where policies pass and from sampled partitions."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from mdp.approximate.fitting import TERMS, Fit
from mdp.approximate.foresight import Foresight
from mdp.approximate.lookahead import Lookahead
from mdp.approximate.projection import ONE_STEP, SSM, TWO_STEPS, AdditiveProjection
from mdp.approximate.samples import most_stations, others_than, stations_of
from mdp.approximate.stations import Stations
from mdp.errors import InvalidProjection
from mdp.kernels.paths import Floats, Ints
from mdp.process import DecisionProcess
from mdp.simulate import Policy, compare, draw_node_counts, walk
from mdp.workers import Here, Workers
from migration.planning.values import AdditiveValue

DEFAULT_ROUNDS = 4
DEFAULT_SAMPLES = 400  # of all partitions, a node count and round, besides stations
DEFAULT_SEQUENCES, MIGRATIONS = 40, 125  # of node counts drawn from the matrix, walked in every round
WALK_CANDIDATES = 6  # of a decision on a walk: enough to find stations, and three times as fast as planning with 20
RIDGE = 1.0  # as if one sample had said that a term is 0; between 0.1 and 1 little changes


class Progress(NamedTuple):
    """A round is done. `moved` is the share of all state that a migration moves, two steps ahead with its values."""

    round: int
    rounds: int
    moved: float
    seconds: float


def silent(_progress: Progress) -> None:
    """For whoever does not look."""


def train(
    process: DecisionProcess,
    *,
    terms: str = "both",
    rounds: int = DEFAULT_ROUNDS,
    samples: int = DEFAULT_SAMPLES,
    sequences: int = DEFAULT_SEQUENCES,
    seed: int = 0,
    workers: Workers | None = None,
    progress: Callable[[Progress], None] = silent,
) -> AdditiveProjection:
    """V_n(P) = v0_n + sum of boundary terms + sum of interval terms, one set a node count.

    Fitted policy iteration. It begins with the policy of `ssm`. In every round a policy is walked along `sequences` of
    node counts, always the same ones; the partitions it passes and nearly passes become stations, whose values are
    solved for; V is fitted to these, and to `samples` of all partitions with what stations say of them; the policy of
    the next round looks two steps ahead with V. The V whose policies moved least is kept, and compared with `ssm` on
    sequences that training did not see. No error is proven. The same seed gives the same values, whoever the workers
    are. A round is O(stations^2 * n), whatever the number of tasks, and the dynamic programs of the walk.
    """
    if terms not in TERMS:
        raise InvalidProjection(f"terms are {terms!r}. Use one of {', '.join(TERMS)}.")
    if min(rounds, samples, sequences) < 1:
        raise InvalidProjection(
            f"{rounds} rounds, {samples} samples and {sequences} sequences teach nothing. Give at least one of each."
        )
    began, workers = time.monotonic(), workers or Here()
    rng = np.random.default_rng(seed)
    drawn = [draw_node_counts(process.matrix, MIGRATIONS, rng) for _ in range(sequences)]
    foresight = Foresight(process)
    visited, _ = _walked(process, [foresight], drawn, workers)
    tried: list[tuple[float, AdditiveValue]] = []
    for number in range(1, rounds + 1):
        stations = Stations.of(process, stations_of(foresight, visited, most_stations(process), rng, workers))
        additive = _fitted(stations, others_than(stations, samples, rng), terms, workers)
        foresight = Foresight(process, additive)
        ahead = Lookahead(process, additive, WALK_CANDIDATES)
        visited, moved = _walked(process, [foresight, ahead], drawn, workers)
        tried.append((float(moved.sum()), additive))
        progress(Progress(number, rounds, float(moved[1]), time.monotonic() - began))
    best = min(tried, key=lambda one: one[0])[1]
    policies: dict[str, Policy] = {
        SSM: Foresight(process),
        ONE_STEP: Foresight(process, best),
        TWO_STEPS: Lookahead(process, best),
    }
    measured = compare(
        process, policies, sequences=sequences, migrations=MIGRATIONS, seed=int(rng.integers(2**32)), workers=workers
    )
    return AdditiveProjection(process, best, terms, measured)


def _fitted(stations: Stations, others: Mapping[int, Ints], terms: str, workers: Workers) -> AdditiveValue:
    """V near the values of stations, and near what these say of other partitions."""
    process, counts = stations.process, stations.process.nodes
    said = workers.map(partial(_expected, stations), [(others[nodes], nodes) for nodes in counts])
    by_nodes = {}
    for nodes, values in zip(counts, said, strict=True):
        fit = Fit(np.concatenate((stations.rows[nodes], others[nodes])), process.tasks, terms, RIDGE)
        by_nodes[nodes] = fit.as_terms(*fit.solve(np.concatenate((stations.values[nodes], values))))
    return AdditiveValue(by_nodes, process.gamma)


def _expected(stations: Stations, question: tuple[Ints, int]) -> Floats:
    return stations.expected(*question)


def _walked(
    process: DecisionProcess, policies: Sequence[Policy], sequences: Sequence[Sequence[int]], workers: Workers
) -> tuple[dict[int, list[Ints]], Floats]:
    """Every partition that the last policy visited, by node count, and the mean share of all state each moved."""
    visited: dict[int, list[Ints]] = {nodes: [] for nodes in process.nodes}
    means = []
    for rows, moved in workers.map(partial(_walk, process, policies), sequences):
        means.append(moved)
        for boundaries in rows:
            visited[len(boundaries) - 1].append(boundaries)
    return visited, np.mean(means, axis=0) / (process.workload.total_state or 1.0)


def _walk(
    process: DecisionProcess, policies: Sequence[Policy], node_counts: Sequence[int]
) -> tuple[list[Ints], list[float]]:
    walks = [list(walk(process, policy, node_counts)) for policy in policies]
    return [row for row, _ in walks[-1]], [float(np.mean([moved for _, moved in steps])) for steps in walks]
