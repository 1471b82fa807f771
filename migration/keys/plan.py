"""`plan_keys`: move single keys between nodes until none exceeds the cap, with the strategy of the caller's choice."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from migration.errors import InvalidInput, KeysInfeasible, TooManyEntries
from migration.keys.bound import quick_bound
from migration.keys.key_plan import KeyPlan
from migration.keys.loads import Floats, KeyLoads
from migration.keys.problem import (
    DEFAULT_MOST_ENTRIES,
    DEFAULT_THETA,
    KeyProblem,
    KeyProposal,
    NotPlaced,
    check_margin,
)
from migration.keys.standbys import KeyStandbys
from migration.keys.strategies import KEY_STRATEGIES, STANDBY_STRATEGIES
from migration.registry import find_variant

Propose = Callable[[KeyProblem], KeyProposal]

# Success is not monotone in theta, so the smallest one is found by bisection, up to this share of the mean load.
_THETA_RESOLUTION = 1e-5
# Nor is it monotone in the size of the table: so many limits are tried one by one before steps double it.
_STEPS_UP = 64


def plan_keys(
    loads: KeyLoads,
    nodes: int | Iterable[str],
    theta: float = DEFAULT_THETA,
    strategy: str = "knap",
    most_entries: int = DEFAULT_MOST_ENTRIES,
    relax: bool = False,
    pinned: Sequence[float] | Floats | None = None,
    margin: float = 0.0,
    standbys: KeyStandbys | None = None,
    **options: Any,
) -> KeyPlan:
    """Find a node for every key such that no node carries more than `(1 + theta) * W / N`.

    `nodes` is a count (names are then node-1, node-2, ...) or the names that the indices in `loads` stand for. The
    routing table that results has at most `most_entries` entries. If the strategy cannot satisfy theta or
    `most_entries`, the call raises `KeysInfeasible` or `TooManyEntries` with the number that works; with `relax` it
    uses that number and states it in the plan. `pinned` is work that stays on each node whatever the plan, for example
    of keys that are not measured one by one; it counts in W and in the load of its node. With a `margin` the plan aims
    at `theta - margin`, for loads that are estimates; where that cannot be reached, it comes as close as it can, up to
    theta. `options` go to the strategy: `beta` for "min-mig", "mixed" and "mixed-bf",
    `beta` and `gamma` for "ftlb" and "switch-first".

    With `standbys`, for "switch-first", "ftlb" and "task-b", a key that goes to a node where it has a standby switches
    roles and moves nothing. Standbys work, too: W has the work of those that keys should have. An entry of the table
    names the nodes of a key and of its standbys. The plan tells which standbys need a new copy. It has no lower bound.
    """
    chosen = find_variant("key strategy", KEY_STRATEGIES, strategy, options)
    problem = KeyProblem.of(loads, nodes, theta, most_entries, pinned, standbys)
    if standbys is not None and strategy not in STANDBY_STRATEGIES:
        raise InvalidInput(
            f"key strategy {strategy!r} does not plan standbys. Use one of {', '.join(STANDBY_STRATEGIES)}."
        )

    def propose(problem: KeyProblem) -> KeyProposal:
        return chosen(problem, **options)

    reasons = []
    aimed = _attempt_below(propose, problem, check_margin(margin))
    if aimed is None:
        proposal = _attempt(propose, problem)
    else:
        problem, proposal = aimed
        reasons.append(f"aims at theta {problem.theta:.4g}, since loads are estimates")
    is_relaxed = proposal is None
    if proposal is None:
        smallest, proposal = _smallest_theta(propose, problem)
        if not relax:
            raise _infeasible(strategy, problem, smallest)
        reasons.append(f"theta relaxed from {theta:g} to {smallest:.4g}, the smallest with which {strategy!r} succeeds")
        problem = problem.with_theta(smallest)
    bound = proposal.bound or (quick_bound(problem) if standbys is None else 0.0)
    if _count_entries(problem, proposal) > problem.most_entries:
        fewest, proposal = _fewest_entries(propose, problem, proposal)
        is_relaxed = True
        if not relax:
            raise TooManyEntries(
                strategy=strategy, theta=problem.theta, fewest_entries=fewest, most_entries=problem.most_entries
            )
        reasons.append(f"most_entries relaxed from {problem.most_entries:,} to {fewest:,}")
        bound = quick_bound(problem) if standbys is None else 0.0  # what was found holds for the smaller table
    return KeyPlan.of(
        problem,
        proposal.destination,
        proposal.standbys,
        strategy=strategy,
        lower_bound=bound,
        theta=float(theta),
        most_entries=problem.most_entries,
        relaxed=is_relaxed,
        reason="; ".join([proposal.reason, *reasons]),
    )


def _attempt(propose: Propose, problem: KeyProblem) -> KeyProposal | None:
    """The strategy's proposal, or None if it has none under the cap."""
    try:
        return propose(problem)
    except NotPlaced:
        return None


def _attempt_below(propose: Propose, problem: KeyProblem, margin: float) -> tuple[KeyProblem, KeyProposal] | None:
    """The problem with the least theta from `theta - margin` on that the strategy can solve, and its proposal.

    None if that theta is not below the one of the problem, or takes a larger table.
    """
    tighter = problem.with_theta(max(0.0, problem.theta - margin))
    if tighter.theta == problem.theta:
        return None
    proposal = _attempt(propose, tighter)
    if proposal is None:
        smallest, proposal = _smallest_theta(propose, tighter)
        tighter = tighter.with_theta(smallest)
    fits = tighter.theta < problem.theta and _count_entries(tighter, proposal) <= problem.most_entries
    return (tighter, proposal) if fits else None


def _smallest_theta(propose: Propose, problem: KeyProblem) -> tuple[float, KeyProposal]:
    """The smallest theta that the strategy succeeds with, and its proposal.

    No strategy succeeds below `least_theta`; if this one does not succeed there either, double the distance until it
    does, then bisect. A proposal is often more balanced than it has to be, so the theta that it reaches is tried too.
    """
    failed = max(problem.theta, problem.least_theta)
    if failed > problem.theta:
        proposal = _attempt(propose, problem.with_theta(failed))
        if proposal is not None:
            return failed, proposal
    step = _THETA_RESOLUTION
    while (proposal := _attempt(propose, problem.with_theta(failed + step))) is None:
        failed, step = failed + step, 2 * step
    works = failed + step
    while True:
        reached = float(problem.loads_of(proposal.destination, proposal.standbys).max()) / problem.mean - 1
        for theta in (reached, (failed + works) / 2):
            if failed < theta < works:
                better = _attempt(propose, problem.with_theta(theta))
                if better is None:
                    failed = max(failed, theta) if theta != reached else failed
                else:
                    works, proposal = theta, better
        if works - failed <= _THETA_RESOLUTION:
            return works, proposal


def _count_entries(problem: KeyProblem, proposal: KeyProposal) -> int:
    return len(problem.find_overrides(proposal.destination, proposal.standbys))


def _fewest_entries(propose: Propose, problem: KeyProblem, proposal: KeyProposal) -> tuple[int, KeyProposal]:
    """The smallest limit found that the strategy keeps, and its proposal with that limit.

    Given another limit a strategy may take another way, and keep 5 entries with 4 while it exceeds 4. So one entry less
    is tried until that fails, and then one more until the strategy keeps the limit that is named. If it keeps none, not
    even one that all keys fit in, the answer is what the given proposal needs.
    """
    needed = fewest = _count_entries(problem, proposal)
    while fewest > 1:
        other = _attempt(propose, problem.with_most_entries(fewest - 1))
        if other is None or _count_entries(problem, other) >= fewest:
            break
        fewest = _count_entries(problem, other)
    tried, most_useful = 0, 2 * max(problem.loads.keys, needed)
    while fewest <= most_useful:
        kept = _attempt(propose, problem.with_most_entries(fewest))
        if kept is not None and _count_entries(problem, kept) <= fewest:
            return fewest, kept
        fewest += 1 if tried < _STEPS_UP else fewest
        tried += 1
    return needed, proposal


def _infeasible(strategy: str, problem: KeyProblem, smallest_theta: float) -> KeysInfeasible:
    row = int(np.argmax(problem.loads.work))
    heaviest, least_pinned = float(problem.loads.work[row]), min(problem.pinned)
    pinned_work = max(problem.pinned)
    node = problem.nodes[problem.pinned.index(pinned_work)]
    return KeysInfeasible(
        strategy=strategy,
        keys=problem.loads.keys,
        nodes=problem.node_count,
        theta=problem.theta,
        cap=problem.cap,
        heaviest_hash=int(problem.loads.hashes[row]) if least_pinned + heaviest > problem.limit else None,
        heaviest_work=heaviest,
        smallest_theta=smallest_theta,
        pinned_node=node if pinned_work > problem.limit else None,
        pinned_work=pinned_work,
        least_pinned=least_pinned,
    )
