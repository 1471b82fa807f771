"""`plan_records`: plan over records on the driver, without a single key."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from migration.errors import InvalidInput, KeysInfeasible, TooManyEntries, UnknownNode
from migration.keys.compact.records import KeyRecords
from migration.keys.compact.strategies import RECORD_STRATEGIES, NoRecordPlaced, RecordProblem, RecordProposal
from migration.keys.problem import DEFAULT_MOST_ENTRIES, DEFAULT_THETA, check_count, check_theta
from migration.registry import find_variant

_THETA_RESOLUTION = 1e-4  # of the mean load; records are no more precise than that


@dataclass(frozen=True)
class RecordPlan:
    """Records with their new destinations, and the loads that follow from the values of the records.

    `theta` is the one that the caller gave and `cap` the one that was used; `loads_before` and `loads_after` are
    estimates, by as much as the discretised values deviate from those of the keys.
    """

    strategy: str
    records: KeyRecords
    theta: float
    cap: float
    most_entries: int
    loads_before: tuple[float, ...]
    loads_after: tuple[float, ...]
    relaxed: bool
    reason: str

    @property
    def entries(self) -> int:
        return self.records.entries

    @property
    def cost(self) -> float:
        """The state that moves, as estimated."""
        return self.records.cost


def plan_records(
    records: KeyRecords,
    nodes: int,
    theta: float = DEFAULT_THETA,
    strategy: str = "mixed",
    most_entries: int = DEFAULT_MOST_ENTRIES,
    relax: bool = False,
    **options: Any,
) -> RecordPlan:
    """Find a node for all keys of every record, such that no node carries more than `(1 + theta)` times the mean.

    Strategies, options, errors and `relax` are those of `plan_keys`, as far as `RECORD_STRATEGIES` has them.
    Its time depends on the number of records only.
    """
    chosen = find_variant("record strategy", RECORD_STRATEGIES, strategy, options)
    problem = _check(records, nodes, theta, most_entries)

    def propose(theta: float) -> RecordProposal | None:
        try:
            return chosen(problem.with_theta(theta), **options)
        except NoRecordPlaced:
            return None

    reasons = []
    proposal = propose(problem.theta)
    if proposal is None:
        smallest, proposal = _smallest_theta(propose, problem)
        if not relax:
            raise KeysInfeasible(
                strategy=strategy,
                keys=records.keys,
                nodes=problem.node_count,
                theta=problem.theta,
                cap=problem.cap,
                heaviest_hash=None,
                heaviest_work=float(records.work.max()),
                smallest_theta=smallest,
            )
        problem = problem.with_theta(smallest)
        reasons.append(f"theta relaxed from {theta:g} to {smallest:.4g}")
    if proposal.records.entries > problem.most_entries:
        if not relax:
            raise TooManyEntries(
                strategy=strategy,
                theta=problem.theta,
                fewest_entries=proposal.records.entries,
                most_entries=problem.most_entries,
            )
        reasons.append(f"most_entries relaxed from {problem.most_entries:,} to {proposal.records.entries:,}")
    return RecordPlan(
        strategy=strategy,
        records=proposal.records,
        theta=float(theta),
        cap=problem.cap,
        most_entries=problem.most_entries,
        loads_before=tuple(records.loads(problem.node_count).tolist()),
        loads_after=tuple(proposal.records.loads(problem.node_count).tolist()),
        relaxed=bool(reasons),
        reason="; ".join([proposal.reason, *reasons]),
    )


def _check(records: KeyRecords, nodes: int, theta: float, most_entries: int) -> RecordProblem:
    if not isinstance(records, KeyRecords) or not len(records):
        raise InvalidInput(f"records is {records!s}. Give KeyRecords with at least one record.")
    if not np.array_equal(records.current, records.destination):
        raise InvalidInput("records have destinations other than their current nodes. Give records of a report.")
    count = check_count(nodes, "nodes")
    most = int(max(records.current.max(), records.home.max()))
    if most >= count:
        raise UnknownNode(str(most), [str(node) for node in range(count)], f"Give indices from 0 to {count - 1}.")
    return RecordProblem(records, count, check_theta(theta), check_count(most_entries, "most_entries"))


def _smallest_theta(
    propose: Callable[[float], RecordProposal | None], problem: RecordProblem
) -> tuple[float, RecordProposal]:
    """The smallest theta that the strategy succeeds with, by doubling and then bisection, and its proposal."""
    failed = max(problem.theta, float(problem.records.work.max()) / problem.mean - 1)
    if failed > problem.theta and (proposal := propose(failed)) is not None:
        return failed, proposal
    step = _THETA_RESOLUTION
    while (proposal := propose(failed + step)) is None:
        failed, step = failed + step, 2 * step
    works = failed + step
    while works - failed > _THETA_RESOLUTION:
        middle = (failed + works) / 2
        better = propose(middle)
        if better is None:
            failed = middle
        else:
            works, proposal = middle, better
    return works, proposal
