"""`plan`: reassign tasks to another number of nodes, with the strategy of the caller's choice."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from migration.errors import Infeasible
from migration.model.ownership import Ownership
from migration.model.plan import Plan
from migration.model.standbys import Standbys
from migration.model.workload import Workload
from migration.planning.problem import DEFAULT_STANDBY_SHARE, Problem
from migration.planning.strategies import STRATEGIES
from migration.registry import find_variant

DEFAULT_TAU = 0.2  # the paper's default: a node may carry a fifth more than the mean


def plan(
    current: Ownership,
    nodes: int | Iterable[str],
    workload: Workload,
    tau: float = DEFAULT_TAU,
    strategy: str = "ssm",
    *,
    leaving: Iterable[str] = (),
    new_nodes: Sequence[str] = (),
    allow_idle: bool = False,
    relax: bool = False,
    standbys: Standbys | Mapping[int, Iterable[str]] | None = None,
    standby_count: int | None = None,
    standby_share: float = DEFAULT_STANDBY_SHARE,
    **knowledge: Any,
) -> Plan:
    """Reassign the tasks of `current` to `nodes` nodes under `workload`.

    `nodes` is a count, or the names of the nodes that remain (all others leave). With a count, `leaving` names nodes
    that must leave; `new_nodes` names the joining ones (else node-k, in ascending order). No node may carry more than
    `(1 + tau) * W / n'`; if no assignment satisfies that, the call raises `Infeasible`, or with `relax` uses the
    smallest feasible cap and states it in the plan. Every node gets work unless `allow_idle`. `knowledge` goes to the
    strategy: `value`, `gamma`, `most_candidates` and `fallback` for "mtm", `seed` and `virtual_nodes` for
    "consistent-hash".

    `standbys` are the copies that exist: the nodes that follow each task, its owner not among them. A task whose new
    owner holds a copy moves for nothing, and "ssm" makes the most of it; other strategies do not look at copies. The
    plan names the standbys afterwards, `standby_count` for every task (as many as there are now, if None), where
    `Standbys.place` has them, and the copies that this needs. `standby_share` is the work of a standby as a share of
    what its owner does for the same task. It counts in the loads and the cap of the plan. The requirement is still
    that no node owns more than `(1 + tau) * W / n'`: then no node follows more than that times the neighbours whose
    tasks it may follow, either.
    """
    propose = find_variant("strategy", STRATEGIES, strategy, knowledge)
    problem = Problem.of(
        current,
        nodes,
        workload,
        tau,
        leaving=leaving,
        new_nodes=new_nodes,
        allow_idle=allow_idle,
        standbys=standbys,
        standby_count=standby_count,
        standby_share=standby_share,
    )
    relaxed = ""
    try:
        proposal = propose(problem, **knowledge)
    except Infeasible as cause:
        if not relax:
            raise
        asked, problem = problem.cap, problem.relax()
        proposal = propose(problem, **knowledge)
        relaxed = (
            f"; cap relaxed from {asked:g} to {problem.cap:g} (tau {cause.smallest_tau:.3g}), the smallest feasible one"
        )
    return Plan.between(
        current,
        proposal.target,
        workload,
        strategy=strategy,
        tau=problem.tau,
        cap=problem.load_cap,
        standbys_before=problem.standbys,
        standbys=None if problem.standbys is None else Standbys.place(proposal.target, problem.standby_count),
        standby_share=problem.standby_share,
        relaxed=bool(relaxed),
        reason=proposal.reason + relaxed,
        future_cost=proposal.future_cost,
    )
