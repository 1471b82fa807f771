"""What a policy costs in the long run, learned from what it does with some partitions."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from mdp.approximate.fitting import Fit
from mdp.approximate.foresight import Foresight
from mdp.kernels.paths import Floats, Ints
from mdp.process import DecisionProcess
from mdp.workers import Workers
from migration.planning.values import AdditiveValue

EVALUATIONS = 25  # of one policy: 0.8^25 leaves four parts in a thousand, nearly the same for all partitions
RIDGE = 0.1  # as if a tenth of a sample had said that a term is 0; between 0.01 and 1 nothing changes


class Decisions(NamedTuple):
    """What a policy does with partitions onto `nodes` nodes when `after` nodes come next: targets, and what stays."""

    nodes: int
    after: int
    targets: Ints
    stays: Floats


def decided(foresight: Foresight, rows: Mapping[int, Ints], workers: Workers) -> list[Decisions]:
    """One dynamic program for every row of boundaries and every successor count."""
    pairs = [(nodes, after) for nodes in rows for after in foresight.process.successors(nodes)]
    found = workers.map(partial(_solved, foresight), [(rows[nodes], after) for nodes, after in pairs])
    return [Decisions(*pair, *answer) for pair, answer in zip(pairs, found, strict=True)]


def _solved(foresight: Foresight, question: tuple[Ints, int]) -> tuple[Ints, Floats]:
    return foresight.targets(*question)


def evaluated(
    process: DecisionProcess, rows: Mapping[int, Ints], decisions: Sequence[Decisions], terms: str
) -> AdditiveValue:
    """V of following the decisions: C[P] = sum over n' of M[n, n'] * (cost(P, P') + gamma * V(P')), fitted, repeated.

    P' is the decision for P, so one evaluation is a multiplication by matrices that do not change and a solution of
    normal equations that are factorised once. n nodes that stay n stay as they are, at no cost: solved for C[P].
    """
    gamma, matrix, total = process.gamma, process.matrix, process.workload.total_state
    fits = {nodes: Fit(rows[nodes], process.tasks, terms, RIDGE) for nodes in rows}
    scale = {nodes: 1 / (1 - gamma * matrix.probability(nodes, nodes)) for nodes in rows}
    base = {nodes: np.zeros(len(rows[nodes])) for nodes in rows}
    steps = []
    for nodes, after, targets, stays in decisions:
        chance = scale[nodes] * matrix.probability(nodes, after)
        base[nodes] += chance * (total - stays)
        steps.append((nodes, after, gamma * chance, fits[after].designed(targets)))
    values = base
    for _ in range(EVALUATIONS if gamma else 0):
        fitted = {nodes: fit.solve(values[nodes]) for nodes, fit in fits.items()}
        values = {nodes: base[nodes].copy() for nodes in rows}
        for nodes, after, weight, design in steps:
            constant, term = fitted[after]
            values[nodes] += weight * (constant + design @ term)
    return AdditiveValue({nodes: fit.as_terms(*fit.solve(values[nodes])) for nodes, fit in fits.items()}, gamma)
