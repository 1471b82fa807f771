"""Fitted policy iteration: learn an additive value from sampled partitions and from where the policy leads."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from mdp.approximate.evaluation import decided, evaluated
from mdp.approximate.fitting import TERMS
from mdp.approximate.foresight import Foresight
from mdp.approximate.lookahead import Lookahead
from mdp.approximate.projection import ONE_STEP, SSM, TWO_STEPS, AdditiveProjection
from mdp.approximate.samples import samples_of
from mdp.errors import InvalidProjection
from mdp.kernels.paths import Ints
from mdp.process import DecisionProcess
from mdp.simulate import Policy, compare, draw_node_counts, walk
from mdp.workers import Here, Workers
from migration.planning.values import AdditiveValue

DEFAULT_ROUNDS = 5
DEFAULT_SAMPLES = 1_500  # partitions a node count, in every round
DEFAULT_SEQUENCES, MIGRATIONS = 40, 125  # of node counts drawn from the matrix, walked in every round


class Progress(NamedTuple):
    """A round is done. `moved` is the share of all state that a migration moves with the values it ended with."""

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

    It begins with the policy of `ssm`. In every round partitions are sampled from where the policy came and from all
    others; what it costs in the long run is fitted; the policy of the next round looks one step ahead with that and is
    walked along `sequences` of node counts, always the same ones. The values whose policy moved least are kept, and
    compared with `ssm` on sequences that training did not see. No error is proven. The same seed gives the same values,
    whoever the workers are. O(rounds * samples * sum over pairs n, n' of the planner's dynamic program).
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
    visited, _ = _walked(Foresight(process), drawn, workers)
    policy, tried = Foresight(process), list[tuple[float, AdditiveValue]]()
    for number in range(1, rounds + 1):
        rows = samples_of(process, visited, samples, rng)
        additive = evaluated(process, rows, decided(policy, rows, workers), terms)
        policy = Foresight(process, additive)
        visited, moved = _walked(policy, drawn, workers)
        tried.append((moved, additive))
        progress(Progress(number, rounds, moved, time.monotonic() - began))
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


def _walked(
    policy: Foresight, sequences: Sequence[Sequence[int]], workers: Workers
) -> tuple[dict[int, list[Ints]], float]:
    """Every partition visited, by node count, and the mean share of all state moved by a migration."""
    visited: dict[int, list[Ints]] = {nodes: [] for nodes in policy.process.nodes}
    moved = []
    for steps in workers.map(partial(_walk, policy), sequences):
        for boundaries, state in steps:
            visited[len(boundaries) - 1].append(boundaries)
            moved.append(state)
    return visited, float(np.mean(moved)) / (policy.process.workload.total_state or 1.0)


def _walk(policy: Foresight, node_counts: Sequence[int]) -> list[tuple[Ints, float]]:
    return list(walk(policy.process, policy, node_counts))
