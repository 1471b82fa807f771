"""Fitted policy iteration: learn an additive value from partitions that policies pass, and from a random sample."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from mdp.approximate.fitting import TERMS, Fit
from mdp.approximate.foresight import Foresight
from mdp.approximate.lookahead import Lookahead
from mdp.approximate.projection import ONE_STEP, SSM, TWO_STEPS, AdditiveProjection
from mdp.approximate.sampled_partitions import (
    SampledPartitions,
    choose_partitions,
    draw_other_partitions,
    max_sampled_partitions,
)
from mdp.errors import InvalidProjection
from mdp.kernels.paths import Floats, Ints
from mdp.process import DecisionProcess
from mdp.progress import TrainingProgress, ignore_progress
from mdp.simulate import Policy, compare, draw_node_counts, walk
from mdp.workers import LocalWorkers, Workers
from migration.planning.values import AdditiveValue

DEFAULT_ROUNDS = 4
DEFAULT_SAMPLES = 400  # random partitions per node count and round, besides those that policies pass
DEFAULT_SEQUENCES, MIGRATIONS = 40, 125  # of node counts drawn from the matrix, walked in every round
WALK_CANDIDATES = 6  # per decision of a walk: enough to find good partitions, three times as fast as planning with 20
RIDGE = 1.0  # as if one sample had said that a term is 0; between 0.1 and 1 little changes


def train(
    process: DecisionProcess,
    *,
    terms: str = "both",
    rounds: int = DEFAULT_ROUNDS,
    samples: int = DEFAULT_SAMPLES,
    sequences: int = DEFAULT_SEQUENCES,
    seed: int = 0,
    workers: Workers | None = None,
    progress: Callable[[TrainingProgress], None] = ignore_progress,
) -> AdditiveProjection:
    """Learn V_n(P) = v0_n + sum of boundary terms + sum of interval terms, one set of terms per node count.

    Fitted policy iteration, starting with the policy of `ssm`. Every round walks a policy along the same `sequences` of
    node counts, samples the partitions that it passes or nearly chooses, and solves for their values. V is fitted to
    these, and to `samples` random partitions with values derived from them; the policy of the next round has two steps
    of foresight with V. The V whose policies move the least is kept, and compared with `ssm` on sequences that training
    did not see. No error is proven. The same seed gives the same values with any workers. A round costs O(s^2 * n) for
    s sampled partitions, whatever the number of tasks, and the dynamic programs of the walk.
    """
    if terms not in TERMS:
        raise InvalidProjection(f"terms are {terms!r}. Use one of {', '.join(TERMS)}.")
    if min(rounds, samples, sequences) < 1:
        raise InvalidProjection(
            f"{rounds} rounds, {samples} samples and {sequences} sequences are too few to learn from. "
            "Give at least one of each."
        )
    began, workers = time.monotonic(), workers or LocalWorkers()
    rng = np.random.default_rng(seed)
    drawn = [draw_node_counts(process.matrix, MIGRATIONS, rng) for _ in range(sequences)]
    foresight = Foresight(process)
    visited, _ = _walk_policies(process, [foresight], drawn, workers)
    tried: list[tuple[float, AdditiveValue]] = []
    for number in range(1, rounds + 1):
        sampled = SampledPartitions.solve(
            process, choose_partitions(foresight, visited, max_sampled_partitions(process), rng, workers)
        )
        additive = _fit_values(sampled, draw_other_partitions(sampled, samples, rng), terms, workers)
        foresight = Foresight(process, additive)
        ahead = Lookahead(process, additive, WALK_CANDIDATES)
        visited, moved = _walk_policies(process, [foresight, ahead], drawn, workers)
        tried.append((float(moved.sum()), additive))
        progress(TrainingProgress(number, rounds, float(moved[1]), time.monotonic() - began))
    best = min(tried, key=lambda one: one[0])[1]
    policies: dict[str, Policy] = {
        SSM: Foresight(process),
        ONE_STEP: Foresight(process, best),
        TWO_STEPS: Lookahead(process, best),
    }
    comparison = compare(
        process, policies, sequences=sequences, migrations=MIGRATIONS, seed=int(rng.integers(2**32)), workers=workers
    )
    return AdditiveProjection(process, best, terms, comparison)


def _fit_values(sampled: SampledPartitions, others: Mapping[int, Ints], terms: str, workers: Workers) -> AdditiveValue:
    """Fit V to the values of sampled partitions, and to the values of others that follow from them."""
    process, counts = sampled.process, sampled.process.nodes
    said = workers.map(partial(_expected, sampled), [(others[nodes], nodes) for nodes in counts])
    by_nodes = {}
    for nodes, values in zip(counts, said, strict=True):
        fit = Fit(np.concatenate((sampled.rows[nodes], others[nodes])), process.tasks, terms, RIDGE)
        by_nodes[nodes] = fit.as_terms(*fit.solve(np.concatenate((sampled.values[nodes], values))))
    return AdditiveValue(by_nodes, process.gamma)


def _expected(sampled: SampledPartitions, question: tuple[Ints, int]) -> Floats:
    return sampled.expected(*question)


def _walk_policies(
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
