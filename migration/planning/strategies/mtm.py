"""Migration with foresight (paper 003, section 4.2): cost now plus the discounted value of where it leads."""

from itertools import islice

import numpy as np

from migration.errors import InvalidInput
from migration.kernels import Floats, Ints
from migration.planning import balance
from migration.planning.labelling import labelled
from migration.planning.problem import Problem, checked_count
from migration.planning.search import RankedPartition, best_partition, ranked_partitions
from migration.planning.strategies.proposal import Proposal
from migration.planning.values import AdditiveTerms, ValueFunction

DEFAULT_GAMMA = 0.8  # the paper's discount: a migration one step later counts four fifths
DEFAULT_MOST_CANDIDATES = 20_000  # partitions looked at before a search that is not additive gives up its proof


def mtm(
    problem: Problem,
    value: ValueFunction | None = None,
    gamma: float = DEFAULT_GAMMA,
    most_candidates: int = DEFAULT_MOST_CANDIDATES,
) -> Proposal:
    """Minimise cost(P, P') + gamma * V(P') over balanced P' with n' intervals (Definition 4.1).

    An additive V is part of the same dynamic program as `ssm`: exact, as fast with boundary terms, O(band * window)
    with interval terms. Any other V is searched in order of rising cost until `value.at_least(n')` proves that
    nothing better can follow; after `most_candidates` partitions the best one so far is taken, and the plan says so.
    """
    if value is None:
        raise InvalidInput("strategy 'mtm' needs value=, a value function. Hand one in, or use strategy 'ssm'.")
    if problem.allow_idle:
        raise InvalidInput("strategy 'mtm' needs every node at work. Drop allow_idle=True, or use strategy 'ssm'.")
    if isinstance(gamma, bool) or not isinstance(gamma, int | float) or not 0 <= gamma <= 1:
        raise InvalidInput(f"gamma is {gamma!r}. Give a discount between 0 and 1.")
    most = checked_count(most_candidates, "most_candidates")
    old, gain = problem.old_boundaries(), problem.gain_prefix(count_empty_state=False)
    terms = value.terms(problem.node_count)
    if terms is not None:
        boundaries, reason = _best_by_terms(problem, old, gain, terms, gamma)
    else:
        boundaries, reason = _best_by_search(problem, old, gain, value, gamma, most)
    target = labelled(problem, boundaries, old, gain)
    return Proposal(target, reason, future_cost=gamma * value.value(boundaries))


def _best_by_terms(
    problem: Problem, old: Ints, gain: Floats, terms: AdditiveTerms, gamma: float
) -> tuple[tuple[int, ...], str]:
    if terms.tasks != problem.workload.tasks:
        raise InvalidInput(
            f"the value function is for {terms.tasks} tasks, the workload has {problem.workload.tasks}. "
            "Project it again for this operator."
        )
    boundary_cost = gamma * terms.boundary
    boundary_cost[[0, -1]] = 0.0  # only inner boundaries count
    boundaries = best_partition(
        problem.workload.work_prefix,
        gain,
        balance.earliest_starts(problem.workload, problem.cap),
        old,
        problem.node_count,
        boundary_cost=boundary_cost,
        interval_cost=None if terms.interval is None else gamma * terms.interval,
    )
    if boundaries is None:
        raise balance.infeasible(problem.workload, problem.node_count, problem.tau)
    return tuple(boundaries.tolist()), "the least of cost now and additive value later, exactly"


def _best_by_search(
    problem: Problem, old: Ints, gain: Floats, value: ValueFunction, gamma: float, most: int
) -> tuple[tuple[int, ...], str]:
    first = balance.earliest_starts(problem.workload, problem.cap)
    candidates = ranked_partitions(gain, first, old, problem.node_count)
    floor = gamma * value.at_least(problem.node_count)
    best: RankedPartition | None = None
    best_score = -np.inf
    looked_at = 0
    for candidate in islice(candidates, most):
        if best is not None and candidate.gain - floor <= best_score:
            return best.boundaries, f"the least of cost now and value later, proven after {looked_at:,} candidates"
        looked_at += 1
        score = candidate.gain - gamma * value.value(candidate.boundaries)
        if best is None or score > best_score:
            best, best_score = candidate, score
    if best is None:
        raise balance.infeasible(problem.workload, problem.node_count, problem.tau)
    if looked_at < most or next(candidates, None) is None:
        return best.boundaries, f"the least of cost now and value later among all {looked_at:,} balanced partitions"
    return best.boundaries, f"the best of the {looked_at:,} cheapest candidates, not proven: raise most_candidates"
