"""Migration with foresight (paper 003, section 4.2): cost now plus the discounted value of the target."""

import math
from collections.abc import Iterator
from itertools import islice
from numbers import Real
from typing import NamedTuple

from migration.errors import Infeasible, InvalidInput, ValueDoesNotFit
from migration.kernels import Floats, Ints
from migration.planning import balance
from migration.planning.owners import assign_owners
from migration.planning.problem import Problem, Proposal, check_count
from migration.planning.search import RankedPartition, best_partition, rank_partitions
from migration.planning.strategies.ssm import ssm
from migration.planning.values import SearchGuide, ValueFunction
from migration.registry import find_variant

FALLBACKS = {"ssm": ssm}


def mtm(
    problem: Problem,
    value: ValueFunction | None = None,
    gamma: float | None = None,
    most_candidates: int | None = None,
    fallback: str | None = "ssm",
) -> Proposal:
    """Minimise cost(P, P') + gamma * value(P') over balanced P' with n' intervals (Definition 4.1).

    The guide V of the value function makes this one search for all values. Candidates come in order of falling score:
    the state that stays, less gamma * V. Each is scored again with its value, until gamma * `above` proves that none
    that follows is better, or `most_candidates` were scored. Where V is the value, the first candidate is the answer
    and the dynamic program of `ssm` finds it: as fast with boundary terms, O(band * window) with interval terms.

    `gamma` and `most_candidates` default to the value function's own. If that does not fit, the `fallback` strategy
    plans, and the plan says why; without a fallback, the call raises `ValueDoesNotFit`.
    """
    if value is None:
        raise InvalidInput("strategy 'mtm' needs value=, a value function. Pass one, or use strategy 'ssm'.")
    if problem.allow_idle:
        raise InvalidInput("strategy 'mtm' needs every node at work. Remove allow_idle=True, or use strategy 'ssm'.")
    discount = _check_gamma(value.gamma if gamma is None else gamma)
    planned_otherwise = None if fallback is None else find_variant("fallback", FALLBACKS, fallback, ())
    try:
        value = value.fit_to(problem.workload, problem.node_count, problem.tau)
    except ValueDoesNotFit as misfit:
        if planned_otherwise is None:
            raise
        otherwise = planned_otherwise(problem)
        return otherwise._replace(reason=f"{otherwise.reason}; planned by {fallback}, without foresight: {misfit.why}")
    guide = _check_guide(value.guide(problem.node_count), problem.workload.tasks)
    if most_candidates is not None:
        guide = guide._replace(most_candidates=check_count(most_candidates, "most_candidates"))
    return _plan_with_foresight(problem, value, guide, discount)


def _plan_with_foresight(problem: Problem, value: ValueFunction, guide: SearchGuide, gamma: float) -> Proposal:
    if guide.lazy and problem.node_count == len(problem.current.nodes):
        untouched = ssm(problem)
        if untouched.target is problem.current:
            return untouched._replace(future_cost=gamma * value.value(problem.old_boundaries().tolist()))
    space = _SearchSpace.of(problem, guide, gamma)
    if not gamma:
        boundaries, reason = space.best(), "the least cost now, exactly: later costs do not count"
    elif guide.exact:
        boundaries, reason = space.best(), "the least of cost now and additive value later, exactly"
    else:
        boundaries, reason = _best_by_search(space, value, guide, gamma)
    target = assign_owners(problem, boundaries, space.old, space.gain)
    return Proposal(target, reason, future_cost=gamma * value.value(boundaries))


class _SearchSpace(NamedTuple):
    """The problem in numbers, with gamma * V as costs of boundaries and intervals."""

    problem: Problem
    old: Ints
    gain: Floats
    first: Ints
    boundary_cost: Floats
    interval_cost: Floats | None

    @classmethod
    def of(cls, problem: Problem, guide: SearchGuide, gamma: float) -> "_SearchSpace":
        boundary_cost = gamma * guide.terms.boundary
        boundary_cost[[0, -1]] = 0.0  # only inner boundaries count
        return cls(
            problem,
            problem.old_boundaries(),
            problem.gain_prefix(count_empty_state=False),
            balance.earliest_starts(problem.workload, problem.cap),
            boundary_cost,
            None if guide.terms.interval is None else gamma * guide.terms.interval,
        )

    def best(self) -> tuple[int, ...]:
        boundaries = best_partition(
            self.problem.workload.work_prefix,
            self.gain,
            self.first,
            self.old,
            self.problem.node_count,
            boundary_cost=self.boundary_cost,
            interval_cost=self.interval_cost,
        )
        if boundaries is None:
            raise self.infeasible_error()
        return tuple(boundaries.tolist())

    def ranked(self) -> Iterator[RankedPartition]:
        return rank_partitions(
            self.gain, self.first, self.old, self.problem.node_count, self.boundary_cost, self.interval_cost
        )

    def infeasible_error(self) -> Infeasible:
        return balance.infeasible_error(self.problem.workload, self.problem.node_count, self.problem.tau)


def _best_by_search(
    space: _SearchSpace, value: ValueFunction, guide: SearchGuide, gamma: float
) -> tuple[tuple[int, ...], str]:
    candidates = space.ranked()
    terms = guide.terms
    # A candidate's gain is less the costs of its boundaries and intervals; the constant is the same for all of them.
    hope = gamma * (guide.above - terms.constant)
    best: tuple[int, ...] = ()
    best_score = -math.inf
    looked_at = 0
    for candidate in islice(candidates, guide.most_candidates):
        if candidate.gain + hope <= best_score:
            return best, f"the least of cost now and value later, proven after {looked_at:,} candidates"
        looked_at += 1
        over = terms.value(candidate.boundaries) - terms.constant - value.value(candidate.boundaries)
        score = candidate.gain + gamma * over
        if score > best_score or not best:
            best, best_score = candidate.boundaries, score
    if not best:
        raise space.infeasible_error()
    following = next(candidates, None)
    if following is None:
        return best, f"the least of cost now and value later among all {looked_at:,} balanced partitions"
    gap = following.gain + hope - best_score
    if gap <= 0:
        return best, f"the least of cost now and value later, proven after {looked_at:,} candidates"
    of_these = f"the best of the {looked_at:,} most promising candidates by cost now and value later, not proven"
    if math.isinf(gap):
        return best, of_these
    return best, f"{of_these}: at most {gap:g} above the least; raise most_candidates"


def _check_gamma(gamma: object) -> float:
    if isinstance(gamma, bool) or not isinstance(gamma, Real) or not 0 <= float(gamma) <= 1:
        raise InvalidInput(f"gamma is {gamma!r}. Give a discount between 0 and 1.")
    return float(gamma)


def _check_guide(guide: SearchGuide, tasks: int) -> SearchGuide:
    """Check the shape here, because the kernels do not."""
    if guide.terms.tasks != tasks:
        raise InvalidInput(
            f"the guide is for {guide.terms.tasks} tasks, the workload has {tasks}. Make it for all tasks."
        )
    if math.isnan(guide.above):
        raise InvalidInput("the guide's above is not a number. Give how far it can be above the value, or inf.")
    return guide
