"""Optimal migration sequence (paper 003, section 4.1): plan several known node counts together."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from migration.errors import InvalidInput, TooManyPartitions
from migration.kernels import Floats, Ints, cheapest_sources, undominated
from migration.model.ownership import Ownership
from migration.model.plan import Plan
from migration.model.workload import Workload
from migration.planning import balance
from migration.planning.owners import assign_owners
from migration.planning.partitions import all_partitions, count_partitions
from migration.planning.plan import DEFAULT_TAU, plan
from migration.planning.problem import Problem
from migration.planning.search import best_partition, rank_partitions
from migration.registry import find_variant

DEFAULT_LIMIT = 1_000_000  # partitions enumerated over all layers; about 150 MB at 16 nodes
BEAM_WIDTH = 32  # partitions kept after every step of the beam, and cheapest targets tried from each


@dataclass(frozen=True)
class _Step:
    """One migration of the sequence: its node count, the window of every position, and its number of partitions."""

    nodes: int
    tau: float
    first: Ints
    partitions: int


@dataclass(frozen=True)
class _Frontier:
    """The partitions to continue from after some steps: the cost of each so far, and the row it came from."""

    rows: Ints
    spent: Floats
    parents: Ints

    def sort_by_cost(self) -> "_Frontier":
        return self.select(np.argsort(self.spent, kind="stable"))

    def select(self, which: Ints) -> "_Frontier":
        return _Frontier(self.rows[which], self.spent[which], self.parents[which])


def plan_sequence(
    current: Ownership,
    node_counts: Iterable[int],
    workload: Workload,
    tau: float | Sequence[float] = DEFAULT_TAU,
    *,
    limit: int = DEFAULT_LIMIT,
    fallback: str | None = None,
) -> list[Plan]:
    """Plan a migration to every node count in turn, with the least total cost.

    Exact, by layers instead of the paper's recursion: after each step only partitions are kept that no other one
    reaches at no extra cost (cost is a metric, so the rest can never be better), and the last step is one `ssm` from
    each of them. All layers but the last are enumerated; if they hold more than `limit` partitions,
    `TooManyPartitions` says how many, unless a `fallback` is named: "beam" looks at the cheapest targets only and is
    never more expensive than "ssm", which plans every step by itself.
    """
    counts = list(node_counts)
    if not counts:
        raise InvalidInput("there are no node counts to plan for. Give at least one.")
    planned_otherwise = None if fallback is None else find_variant("fallback", _FALLBACKS, fallback, ())
    steps = _steps(current, counts, workload, tau)
    sizes = [step.partitions for step in steps[:-1]]
    if sum(sizes) <= limit:
        return _plan_layers(current, steps, workload, lambda step, *_: all_partitions(step.first, step.nodes), "oms")
    if planned_otherwise is None:
        raise TooManyPartitions(
            counts=sizes,
            limit=limit,
            what=f"the exact sequence {counts}",
            advice='Pass fallback="beam" for a good sequence without proof or "ssm" for single steps, or raise limit.',
        )
    return planned_otherwise(current, steps, workload)


def _steps(current: Ownership, counts: Sequence[int], workload: Workload, tau: float | Sequence[float]) -> list[_Step]:
    taus = list(tau) if isinstance(tau, Sequence) else [tau] * len(counts)
    if len(taus) != len(counts):
        raise InvalidInput(f"{len(counts)} node counts but {len(taus)} taus. Give one tau, or one for every step.")
    steps = []
    for count, step_tau in zip(counts, taus, strict=True):
        problem = Problem.of(current, count, workload, step_tau)
        first = balance.earliest_starts(workload, problem.cap)
        partitions = count_partitions(first, problem.node_count)
        if not partitions:
            raise balance.infeasible_error(workload, problem.node_count, problem.tau)
        steps.append(_Step(problem.node_count, problem.tau, first, partitions))
    return steps


_Layer = Callable[[_Step, _Frontier, Floats], Ints]


def _plan_layers(
    current: Ownership,
    steps: Sequence[_Step],
    workload: Workload,
    layer_of: _Layer,
    strategy: str,
    width: int | None = None,
) -> list[Plan]:
    """Walk the layers forwards, keep undominated partitions, then follow the cheapest end back to the start."""
    start = Problem.of(current, steps[0].nodes, workload, steps[0].tau)
    start.check_contiguous()
    gain = start.gain_prefix()
    slack = float(gain[-1]) * 1e-12
    frontiers = [_Frontier(start.old_boundaries()[None, :], np.zeros(1), np.zeros(1, np.int64))]
    for step in steps[:-1]:
        before = frontiers[-1]
        rows = layer_of(step, before, gain)
        spent, parents = cheapest_sources(gain, before.rows, before.spent, rows)
        reached = _Frontier(rows, spent, parents).sort_by_cost()
        frontiers.append(reached.select(undominated(gain, reached.rows, reached.spent, slack)[:width]))
    frontiers.append(_last_step(steps[-1], frontiers[-1], gain, workload))
    return _assign_path(current, steps, workload, _cheapest_path(frontiers), gain, strategy)


def _last_step(step: _Step, before: _Frontier, gain: Floats, workload: Workload) -> _Frontier:
    """The cheapest single step from every partition of the frontier."""
    work = workload.work_prefix
    rows = np.array([best_partition(work, gain, step.first, row, step.nodes) for row in before.rows])
    spent = [
        cheapest_sources(gain, old[None, :], cost[None], new[None, :])[0][0]
        for old, cost, new in zip(before.rows, before.spent, rows, strict=True)
    ]
    return _Frontier(rows, np.array(spent), np.arange(len(rows)))


def _cheapest_path(frontiers: Sequence[_Frontier]) -> list[Ints]:
    path = []
    row = int(np.argmin(frontiers[-1].spent))
    for frontier in reversed(frontiers[1:]):
        path.append(frontier.rows[row])
        row = int(frontier.parents[row])
    return path[::-1]


def _assign_path(
    current: Ownership, steps: Sequence[_Step], workload: Workload, path: Sequence[Ints], gain: Floats, strategy: str
) -> list[Plan]:
    plans = []
    for step, row in zip(steps, path, strict=True):
        problem = Problem.of(current, step.nodes, workload, step.tau)
        target = assign_owners(problem, row, problem.old_boundaries(), gain)
        plans.append(
            Plan.between(
                current,
                target,
                workload,
                strategy=strategy,
                tau=problem.tau,
                cap=problem.cap,
                reason=_REASONS[strategy],
            )
        )
        current = target
    return plans


def _plan_with_beam(current: Ownership, steps: Sequence[_Step], workload: Workload) -> list[Plan]:
    def cheapest_targets(step: _Step, before: _Frontier, gain: Floats) -> Ints:
        nearest: set[tuple[int, ...]] = set()
        for row in before.rows:
            targets = rank_partitions(gain, step.first, row, step.nodes)
            nearest.update(target.boundaries for target in islice(targets, BEAM_WIDTH))
        return np.array(sorted(nearest))

    beam = _plan_layers(current, steps, workload, cheapest_targets, "oms-beam", BEAM_WIDTH)
    single = _plan_single_steps(current, steps, workload)
    return min(beam, single, key=lambda plans: sum(plan.cost for plan in plans))


def _plan_single_steps(current: Ownership, steps: Sequence[_Step], workload: Workload) -> list[Plan]:
    plans = []
    for step in steps:
        plans.append(plan(current, step.nodes, workload, step.tau))
        current = plans[-1].target
    return plans


_REASONS = {
    "oms": "a step of the least total cost over the whole sequence",
    "oms-beam": f"a step of the best sequence found with a beam of {BEAM_WIDTH}; not proven",
}
_FALLBACKS: Mapping[str, Callable[[Ownership, Sequence[_Step], Workload], list[Plan]]] = {
    "beam": _plan_with_beam,
    "ssm": _plan_single_steps,
}
