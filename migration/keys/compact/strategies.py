"""MinTable, MinMig and Mixed over records instead of keys (paper 000, section IV-A)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from migration.keys.compact.records import Counts, KeyRecords
from migration.keys.kernels.rebalance_groups import rebalance_groups
from migration.keys.strategies.min_mig import DEFAULT_BETA, check_beta
from migration.model.plan import RELATIVE_EPSILON


class NoRecordPlaced(Exception):
    """A strategy found no node that accepts a key of some record; `plan_records` turns it into an error."""


@dataclass(frozen=True)
class RecordProblem:
    """Find a node for all keys of every record such that no node exceeds the cap; as `KeyProblem` for keys."""

    records: KeyRecords
    node_count: int
    theta: float
    most_entries: int

    def with_theta(self, theta: float) -> Self:
        return replace(self, theta=theta)

    @cached_property
    def mean(self) -> float:
        return self.records.total_work / self.node_count

    @property
    def cap(self) -> float:
        """The most work a node may carry."""
        return (1 + self.theta) * self.mean

    @property
    def limit(self) -> float:
        """What running loads are compared with: the cap and half of the tolerance."""
        return self.cap * (1 + RELATIVE_EPSILON / 2)


class RecordProposal(NamedTuple):
    """The same records with their new destinations, split where keys of one record go to several nodes."""

    records: KeyRecords
    reason: str


def min_table(problem: RecordProblem) -> RecordProposal:
    """Move all keys back home, then take keys from overloaded nodes by highest work and place them with LLFD."""
    return RecordProposal(
        _rebalance(problem, problem.records.count, None),
        "all entries moved back, then the keys with the highest work moved",
    )


def min_mig(problem: RecordProblem, beta: float = DEFAULT_BETA) -> RecordProposal:
    """Take keys from overloaded nodes by the largest c^beta / S and place them with LLFD."""
    return RecordProposal(
        _rebalance(problem, np.zeros_like(problem.records.count), check_beta(beta)),
        f"keys of overloaded nodes by work^{beta:g} per state, to the least loaded",
    )


def mixed(problem: RecordProblem, beta: float = DEFAULT_BETA) -> RecordProposal:
    """Move the n smallest entries back and continue as MinMig; n grows by the overflow of the table until it fits.

    The last trial is MinTable; it also follows a trial that cannot place a key. If no trial fits, the answer is the one
    with the fewest entries.
    """
    records = problem.records
    is_away = records.current != records.home
    table = np.flatnonzero(is_away)
    table = table[np.argsort(records.size[table], kind="stable")]
    entries = int(records.count[table].sum())
    trials: list[RecordProposal] = []
    moved_back = 0
    while moved_back < max(entries, 1):
        try:
            trial = _rebalance(problem, _smallest(records, table, moved_back), check_beta(beta))
        except NoRecordPlaced:
            break
        trials.append(RecordProposal(trial, f"{moved_back:,} of {entries:,} entries moved back, then keys moved"))
        if trial.entries <= problem.most_entries:
            break
        moved_back += trial.entries - problem.most_entries
    if not trials or trials[-1].records.entries > problem.most_entries:
        try:
            trials.append(min_table(problem))
        except NoRecordPlaced:
            if not trials:
                raise
    return min(trials, key=lambda trial: trial.records.entries)


RECORD_STRATEGIES: Mapping[str, Callable[..., RecordProposal]] = {
    "mixed": mixed,
    "min-mig": min_mig,
    "min-table": min_table,
}


def _smallest(records: KeyRecords, table: np.ndarray[tuple[int], np.dtype[np.int64]], keys: int) -> Counts:
    """How many keys of each record are among the first `keys` of the records in `table`."""
    taken = np.zeros_like(records.count)
    before = np.cumsum(records.count[table]) - records.count[table]
    taken[table] = np.clip(keys - before, 0, records.count[table])
    return taken


def _rebalance(problem: RecordProblem, moved_back: Counts, beta: float | None) -> KeyRecords:
    """Move back so many keys of each record, then rebalance: by highest work, or by c^beta / S if beta is given.

    A record becomes up to two groups, of the keys that are at home now and of those that stayed.
    """
    records = problem.records
    every = np.arange(len(records))
    back = np.where(records.home == records.current, 0, moved_back)
    record = np.repeat(every, 2)
    node = np.stack([records.home, records.current], axis=1).ravel()
    count = np.stack([back, records.count - back], axis=1).ravel()
    used = count > 0
    record, node, count = record[used], node[used], count[used]
    found = rebalance_groups(
        records.work[record], records.size[record], node, count, problem.node_count, problem.limit, beta
    )
    if found is None:
        raise NoRecordPlaced
    remaining, placed = found
    record = np.concatenate([record, record[placed.group]])
    node = np.concatenate([node, placed.node])
    count = np.concatenate([remaining, placed.keys])
    used = count > 0
    return records.assign(record[used], node[used], count[used])
