"""Evaluate a policy (the long-run cost of its choices), and prove bounds on the best one."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mdp.exact.sweep import Choices
from mdp.kernels.evaluate import mark, settle
from mdp.kernels.paths import Floats, Ints
from mdp.process import DecisionProcess

_MAX_ROUNDS = 400
_SETTLED = 1e-9  # of all state: far below any requested error


class ValueBounds(NamedTuple):
    """Proven: every C[P] is within `error` of `values[n][rank of P]`."""

    values: Mapping[int, Floats]
    error: float


def bound_values(process: DecisionProcess, values: Mapping[int, Floats], choices: Mapping[int, Choices]) -> ValueBounds:
    """Derive bounds from one sweep over all partitions with these values (MacQueen's bounds).

    Let T be the right hand side of the definition of C, L <= TC <= U what the sweep found of it, u = max(U - C) and
    d = min(L - C). Then L + d * gamma / (1 - gamma) <= C* <= U + u * gamma / (1 - gamma).
    """
    gamma, later = process.gamma, process.gamma / (1 - process.gamma)
    upper, lower = {}, {}
    for nodes, found in choices.items():
        stay = process.matrix.probability(nodes, nodes) * gamma * values[nodes]
        upper[nodes], lower[nodes] = found.upper + stay, found.lower + stay
    rise = max(float((upper[n] - values[n]).max()) for n in choices)
    fall = min(float((lower[n] - values[n]).min()) for n in choices)
    gap = max(float((upper[n] - lower[n]).max()) for n in choices)
    middle = {n: (upper[n] + lower[n]) / 2 + later * (rise + fall) / 2 for n in choices}
    return ValueBounds(middle, gap / 2 + later * (rise - fall) / 2)


def evaluate_policy(
    process: DecisionProcess, values: Mapping[int, Floats], choices: Mapping[int, Choices]
) -> dict[int, Floats]:
    """The cost of following these choices forever, iterated from `values`.

    Only partitions that are the target of a choice influence others: these are iterated until they converge, then all
    others follow from them at once.
    """
    begin = dict(zip(choices, np.cumsum([0, *(len(found.base) for found in choices.values())])[:-1], strict=True))
    flat = np.concatenate([values[nodes] for nodes in choices])
    chosen = np.zeros(len(flat), np.bool_)
    parts = {}
    for nodes, found in choices.items():
        counts = process.successors(nodes)
        starts: Ints = np.array([begin[after] for after in counts], np.int64)
        weight = process.gamma * np.array([process.matrix.probability(nodes, after) for after in counts])
        scale = 1 / (1 - process.gamma * process.matrix.probability(nodes, nodes))
        mark(chosen, found.target, starts)
        parts[nodes] = (begin[nodes], found.base, found.target, starts, weight, scale)
    settled = _SETTLED * process.workload.total_state
    some = {n: np.flatnonzero(chosen[begin[n] : begin[n] + len(found.base)]) for n, found in choices.items()}
    for _ in range(_MAX_ROUNDS):
        if max(settle(flat, *parts[nodes], some[nodes]) for nodes in choices) <= settled:
            break
    for nodes, found in choices.items():
        settle(flat, *parts[nodes], np.arange(len(found.base)))
    return {nodes: flat[begin[nodes] : begin[nodes] + len(found.base)] for nodes, found in choices.items()}
